// node-redis: one leaderboard's life, in RESP3. story_redis.js PORT [redis|""] [PACKAGE]
"use strict";
const installed = process.argv[4] ?? "redis";
const { createClient } = require(installed);
const { Story, sleep } = require("./story");

const board = "node:board";
const isRedis = process.argv[3] === "redis";
const story = new Story(`node-redis ${require(`${installed}/package.json`).version}`);

async function main() {
    const url = `redis://127.0.0.1:${process.argv[2]}`;
    const client = createClient({ url, RESP: 3, name: "story" });
    client.on("error", (error) => console.log(`error event: ${error.message}`));
    await client.connect();
    await client.del(board);
    story.equal("connects and pings", await client.ping(), "PONG");
    story.equal("adds players", await client.zAdd(board, [{ score: 50, value: "zoe" },
        { score: 20, value: "adam" }, { score: 7, value: "carl" }]), 3);
    story.equal("adds nobody twice", await client.zAdd(board, { score: 50, value: "zoe" }), 0);
    story.equal("counts changes", await client.zAdd(board, [{ score: 60, value: "zoe" },
        { score: 1, value: "bob" }], { CH: true }), 2);
    story.equal("increments, as a double", await client.zIncrBy(board, 40, "zoe"), 100);
    story.equal("increments through ZADD",
        await client.zAddIncr(board, { score: 80, value: "adam" }), 100);
    story.equal("ranks the first at a score first",
        await client.zRange(board, 0, 1, { REV: true }), ["zoe", "adam"]);
    if (!isRedis) {
        await client.zAdd(`${board}:ties`, { score: 5, value: "adam" });
        await client.zAdd(`${board}:ties`, { score: 5, value: "zoe" });
        story.equal("ranks by arrival whatever the names are",
            await client.zRange(`${board}:ties`, 0, -1, { REV: true }), ["adam", "zoe"]);
        await client.del(`${board}:ties`);
    }
    story.equal("tells ranks", [await client.zRevRank(board, "zoe"),
        await client.zRevRank(board, "carl"), await client.zRevRank(board, "nobody")],
    [0, 2, null]);
    story.equal("tells scores, as doubles", await client.zmScore(board, ["zoe", "nobody"]),
        [100, null]);
    story.equal("lists the top with scores",
        await client.zRangeWithScores(board, 0, 1, { REV: true }),
        [{ value: "zoe", score: 100 }, { value: "adam", score: 100 }]);
    story.equal("lists a page", await client.zRange(board, 2, 3, { REV: true }), ["carl", "bob"]);
    story.equal("lists by score", await client.zRangeByScore(board, "(1", "+inf",
        { LIMIT: { offset: 0, count: 1 } }), ["carl"]);
    await client.zAdd(board, { score: 4294967295, value: "max" });
    story.equal("keeps big scores exact", await client.zScore(board, "max"), 4294967295);
    story.equal("pops the best", await client.zPopMax(board),
        { value: "max", score: 4294967295 });
    story.equal("pops the last", await client.zPopMinCount(board, 1),
        [{ value: "bob", score: 1 }]);
    story.equal("pops of several boards", await client.zmPop([`${board}:none`, board], "MIN"),
        { key: board, members: [{ value: "carl", score: 7 }] });
    story.equal("removes", await client.zRem(board, ["adam", "nobody"]), 1);
    // node-redis pipelines what is asked in one turn of its loop.
    const added = await Promise.all(Array.from({ length: 1000 }, (_, i) =>
        client.zAdd(board, { score: i + 1000, value: `player:${i}` })));
    story.says("pipelines", added.every((count) => count === 1));
    const settled = await Promise.allSettled([client.zCard(board),
        client.sendCommand(["ZADD", board, "nan", "x"]), client.zCard(board)]);
    story.says("keeps a pipeline in step behind an error", settled[0].value === 1001 &&
        settled[1].status === "rejected" && settled[2].value === 1001);
    const seen = new Set();
    for await (const page of client.zScanIterator(board, { MATCH: "player:*", COUNT: 100 })) {
        [page].flat().forEach((member) => seen.add(member.value));
    }
    story.equal("scans members", seen.size, 1000);
    const keys = new Set();
    for await (const page of client.scanIterator({ MATCH: "node:*", TYPE: "zset" })) {
        [page].flat().forEach((key) => keys.add(key));
    }
    story.says("scans keys", keys.has(board));
    await story.rejects("rejects bad scores", client.sendCommand(["ZADD", board, "many", "x"]),
        /^ERR value is not a valid float/);
    await story.rejects("rejects unknown commands", client.sendCommand(["NONSENSE"]),
        /^ERR unknown command/);
    story.equal("renames", [await client.rename(board, `${board}:old`),
        await client.exists(board), await client.type(`${board}:old`)], ["OK", 0, "zset"]);
    story.equal("expires", await client.pExpire(`${board}:old`, 60), 1);
    await sleep(150);
    story.equal("has expired", await client.exists(`${board}:old`), 0);
    story.equal("has the name it connected with", await client.clientGetName(), "story");
    story.equal("reads CONFIG as a map", { ...(await client.configGet("databases")) },
        { databases: "16" });
    const info = await client.clientInfo();
    story.equal("reads CLIENT INFO", info.name, "story");
    if (!isRedis) {
        story.says("introduces its library", info.resp === 3 &&
            info.libName.startsWith("node-redis"));
    }
    await client.close();
    story.says("closes", true);
}

main().catch((error) => {
    console.log(error);
    story.says("ends without a surprise", false);
});
