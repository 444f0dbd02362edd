// ioredis: one leaderboard's life, in the client's default way. story_ioredis.js PORT [redis|""] [PACKAGE]
"use strict";
const installed = process.argv[4] ?? "ioredis";
const Redis = require(installed);
const { Story, sleep } = require("./story");

const board = "ioredis:board";
const isRedis = process.argv[3] === "redis";
const story = new Story(`ioredis ${require(`${installed}/package.json`).version}`);

async function main() {
    const client = new Redis({ port: Number(process.argv[2]), connectionName: "story" });
    await client.del(board);
    story.equal("connects and pings", await client.ping(), "PONG");
    story.equal("adds players", await client.zadd(board, 50, "zoe", 20, "adam", 7, "carl"), 3);
    story.equal("adds nobody twice", await client.zadd(board, 50, "zoe"), 0);
    story.equal("counts changes", await client.zadd(board, "CH", 60, "zoe", 1, "bob"), 2);
    story.equal("increments", await client.zincrby(board, 40, "zoe"), "100");
    story.equal("increments through ZADD", await client.zadd(board, "INCR", 80, "adam"), "100");
    story.equal("ranks the first at a score first", await client.zrevrange(board, 0, 1),
        ["zoe", "adam"]);
    if (!isRedis) {
        await client.zadd(`${board}:ties`, 5, "adam");
        await client.zadd(`${board}:ties`, 5, "zoe");
        story.equal("ranks by arrival whatever the names are",
            await client.zrevrange(`${board}:ties`, 0, -1), ["adam", "zoe"]);
        await client.del(`${board}:ties`);
    }
    story.equal("tells ranks", [await client.zrevrank(board, "zoe"),
        await client.zrevrank(board, "carl"), await client.zrevrank(board, "nobody")],
    [0, 2, null]);
    story.equal("tells scores", await client.zmscore(board, "zoe", "nobody"), ["100", null]);
    story.equal("lists the top with scores", await client.zrevrange(board, 0, 1, "WITHSCORES"),
        ["zoe", "100", "adam", "100"]);
    story.equal("lists a page", await client.zrange(board, 2, 3, "REV"), ["carl", "bob"]);
    story.equal("lists by score",
        await client.zrangebyscore(board, "(1", "+inf", "LIMIT", 0, 1), ["carl"]);
    await client.zadd(board, 4294967295, "max");
    story.equal("keeps big scores exact", await client.zscore(board, "max"), "4294967295");
    story.equal("pops the best", await client.zpopmax(board), ["max", "4294967295"]);
    story.equal("pops the last", await client.zpopmin(board, 1), ["bob", "1"]);
    story.equal("removes", await client.zrem(board, "carl", "nobody"), 1);
    const pipeline = client.pipeline();
    for (let i = 0; i < 1000; i++) {
        pipeline.zadd(board, i + 1000, `player:${i}`);
    }
    pipeline.zadd(board, "nan", "x").zcard(board);
    const answers = await pipeline.exec();
    story.says("pipelines, in step behind an error",
        answers.slice(0, 1000).every(([error, added]) => error === null && added === 1) &&
        /^ERR/.test(answers[1000][0].message) && answers[1001][1] === 1002);
    const seen = new Set();
    for await (const page of client.zscanStream(board, { match: "player:*", count: 100 })) {
        for (let i = 0; i < page.length; i += 2) {
            seen.add(page[i]);
        }
    }
    story.equal("scans members", seen.size, 1000);
    const keys = new Set();
    for await (const page of client.scanStream({ match: "ioredis:*" })) {
        page.forEach((key) => keys.add(key));
    }
    story.says("scans keys", keys.has(board));
    await story.rejects("rejects bad scores", client.zadd(board, "many", "x"),
        /^ERR value is not a valid float/);
    await story.rejects("rejects unknown commands", client.call("NONSENSE"),
        /^ERR unknown command/);
    story.equal("renames", [await client.rename(board, `${board}:old`),
        await client.exists(board), await client.type(`${board}:old`)], ["OK", 0, "zset"]);
    story.equal("expires", await client.pexpire(`${board}:old`, 60), 1);
    await sleep(150);
    story.equal("has expired", await client.exists(`${board}:old`), 0);
    story.equal("has the name it connected with", await client.client("GETNAME"), "story");
    const resent = await Promise.all(Array.from({ length: 500 }, (_, i) => client.echo(`${i}`)));
    story.says("keeps 500 commands in flight in order", resent.every((text, i) => text === `${i}`));
    const id = await client.client("ID");
    const killer = client.duplicate();
    await killer.client("KILL", "ID", id);
    story.equal("connects again after it was killed", await client.ping(), "PONG");
    story.says("with a new connection", await client.client("ID") !== id);
    await Promise.all([client.quit(), killer.quit()]);
    story.says("quits", true);
}

main().catch((error) => {
    console.log(error);
    story.says("ends without a surprise", false);
});
