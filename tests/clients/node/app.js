// A small game's leaderboard with node-redis: app.js PORT [redis|""]
//
// Profiles and scores in one transaction, a page with names, a window around a player, a result on
// two boards at once, a message when somebody is overtaken, and a player erased also from the files.
// On redis-server the LB. commands are spelled out in several of Redis's; the results are the same.
"use strict";
const { execFileSync } = require("child_process");
const { randomBytes } = require("crypto");
const path = require("path");
const { createClient } = require("redis-6");
const { Story, sleep } = require("./story");

const isRedis = process.argv[3] === "redis";
const story = new Story(`Node app on ${isRedis ? "redis-server" : "leaderboard"}`);
const client = createClient({ url: `redis://127.0.0.1:${process.argv[2]}` });
const game = "app-node";
const day = `${game}:day`;
const week = `${game}:week`;
const mark = randomBytes(8).toString("hex"); // so that a name found in a file is of this run
const [zoe, ann, kim, bob] = ["zoe", "ann", "kim", "bob"].map((name) => `${name}-${mark}`);
const profile = (player) => `${game}:profile:${player}`;

// ---- the application ----

function register(player, name, tier, score) {
    return client.multi()
        .hSet(profile(player), { name, tier })
        .zAdd(day, { score, value: player })
        .zAdd(week, { score, value: player })
        .exec();
}

// One result on both boards. Who is overtaken in the week is told so, with the old and the new rank
// and who is directly ahead now.
async function submit(player, points) {
    if (!isRedis) {
        const answers = await client.sendCommand(["LB.SUBMIT", "2", day, week, "INCR", "STRINGS",
            `${points}`, player]);
        return answers.map(([record]) => Number(record[3]));
    }
    const [before, ofDay, ofWeek, after] = await client.multi()
        .zRevRank(week, player)
        .zIncrBy(day, points, player)
        .zIncrBy(week, points, player)
        .zRevRank(week, player)
        .exec();
    const passed = await client.zRange(week, after, before, { REV: true });
    for (let i = 1; i < passed.length; i++) {
        await client.publish(overtakenChannel(passed[i]),
            `overtaken ${after + i - 1} ${after + i} ${passed[i - 1]}`);
    }
    return [ofDay, ofWeek];
}

// The server's own name for the events of this player on this board.
function overtakenChannel(player) {
    return `__overtaken@0__:${Buffer.byteLength(week)}:${week}:${player}`;
}

// On redis-server: what DATA does.
async function withNames(first, last) {
    const members = await client.zRangeWithScores(week, first, last, { REV: true });
    const fields = await Promise.all(
        members.map(({ value }) => client.hmGet(profile(value), ["name", "tier"])));
    return members.map(({ value, score }, i) => [first + i, value, score, ...fields[i]]);
}

async function records(...command) {
    const answer = await client.sendCommand([...command, "STRINGS",
        "DATA", `${game}:profile:*`, "FIELDS", "2", "name", "tier"]);
    return answer.map(([member, rank, , score, fields]) =>
        [rank, member, Number(score), ...fields]);
}

function top(count) {
    return isRedis ? withNames(0, count - 1) : records("LB.RANGE", week, "0", `${count - 1}`);
}

async function around(player) {
    if (!isRedis) {
        return records("LB.AROUND", week, "MEMBER", player, "3");
    }
    const first = Math.max(await client.zRevRank(week, player) - 1, 0);
    return withNames(first, first + 2);
}

function erase(player) {
    return client.multi().del(profile(player)).zRem(day, player).zRem(week, player).exec();
}

// ---- files ----

async function waitUntil(condition) {
    while (!await condition()) {
        await sleep(20);
    }
}

async function filesHold(player) {
    const { dir } = await client.configGet("dir");
    return execFileSync("/usr/bin/python3",
        [path.join(__dirname, "..", "files_hold.py"), dir, player]).toString().trim() === "yes";
}

async function isIdle() {
    const state = await client.info("persistence");
    return !/(aof_rewrite_in_progress|aof_rewrite_scheduled|rdb_bgsave_in_progress):1/.test(state);
}

// ---- the story ----

async function boards() {
    story.equal("a profile and its scores are written together",
        await register(zoe, "Zoe", "gold", 50), [2, 1, 1]);
    await register(ann, "Ann", "silver", 40);
    await register(kim, "Kim", "gold", 30);
    await register(bob, "Bob", "bronze", 20);
    story.equal("a page has names", await top(2),
        [[0, zoe, 50, "Zoe", "gold"], [1, ann, 40, "Ann", "silver"]]);
    story.equal("a player's neighbours have names", await around(kim),
        [[1, ann, 40, "Ann", "silver"], [2, kim, 30, "Kim", "gold"], [3, bob, 20, "Bob", "bronze"]]);
}

async function messages() {
    const subscriber = await client.duplicate().connect();
    const received = [];
    const next = async () => {
        await waitUntil(() => received.length > 0);
        return received.shift();
    };
    const listen = (message, channel) => received.push([channel, message]);
    const overtaken = overtakenChannel(zoe);
    const events = `__keyspace@0__:${week}`;
    await subscriber.subscribe([overtaken, events], listen);
    story.equal("a result counts for the day and the week", await submit(kim, 25), [55, 55]);
    story.equal("a change of the board is received", await next(), [events, "zincr"]);
    story.equal("who is overtaken hears of it", await next(),
        [overtaken, `overtaken 0 1 ${kim}`]);
    story.equal("a result that changes no place", await submit(kim, 1), [56, 56]);
    story.equal("changes the board", await next(), [events, "zincr"]);
    story.equal("the page follows", await top(2),
        [[0, kim, 56, "Kim", "gold"], [1, zoe, 50, "Zoe", "gold"]]);
    story.equal("and nothing else was received", received, []);
    await subscriber.close();
}

async function erased() {
    await waitUntil(isIdle); // appendonly begins with a snapshot
    await waitUntil(() => filesHold(zoe));
    story.equal("a player is erased", await erase(zoe), [1, 1, 1]);
    story.equal("and is on no page", await top(2),
        [[0, kim, 56, "Kim", "gold"], [1, ann, 40, "Ann", "silver"]]);
    story.equal("the files still hold the player", await filesHold(zoe), true);
    await client.sendCommand(["BGREWRITEAOF"]);
    await waitUntil(async () => await isIdle() && !await filesHold(zoe));
    story.equal("but no more when they are rewritten", await filesHold(zoe), false);
    story.equal("and they hold the others", await filesHold(kim), true);
}

async function main() {
    client.on("error", (error) => console.log(`error event: ${error.message}`));
    await client.connect();
    await client.del([day, week]);
    if (isRedis) {
        await client.configSet("rdbcompression", "no"); // so that its files can be searched
    }
    await client.configSet("appendfsync", "always");
    await client.configSet("appendonly", "yes");
    await client.configSet("notify-keyspace-events", "Kz");
    if (!isRedis) {
        await client.configSet("notify-board-events", "yes");
    }
    await boards();
    await messages();
    await erased();
    await client.del([day, week, ...[ann, kim, bob].map(profile)]);
    await client.configSet("notify-keyspace-events", "");
    if (!isRedis) {
        await client.configSet("notify-board-events", "no");
    }
    await client.configSet("appendonly", "no");
    await client.close();
}

main().catch((error) => {
    console.log(error);
    story.says("ends without a surprise", false);
});
