// Clients of ioredis that write down what they are answered: see redis_py.py beside this.
"use strict";
const readline = require("readline");
const Redis = require("../../clients/node/node_modules/ioredis");

const [first, count, pace, kind, hosts] = process.argv.slice(2);
const REGISTERS = 6, COUNTERS = 6, TIMEOUT_MS = 1000, PAUSE_AFTER_ERROR_MS = 20;
const REFUSALS = ["READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS", "MISCONF", "OOM"];
const OPERATIONS = ["set", "set", "set", "get", "get", "inc", "inc", "read", "read", "tie", "tie"];
const READS = ["get", "read"];

// What was sent when a connection is lost is not sent again: then its outcome would be two outcomes.
function connect() {
    const common = {
        autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0, commandTimeout: TIMEOUT_MS,
        connectTimeout: TIMEOUT_MS, retryStrategy: () => 50,
        reconnectOnError: (error) => error.message.startsWith("READONLY") ? 1 : false,
    };
    const addresses = hosts.split(",");
    return kind === "sentinel"
        ? new Redis({
            ...common, name: "leaderboard", failoverDetector: true, sentinelRetryStrategy: () => 50,
            sentinels: addresses.map((host) => ({ host, port: 26379 })), sentinelCommandTimeout: TIMEOUT_MS,
        })
        : new Redis({ ...common, host: addresses[0], port: 6379 });
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const pick = (list) => list[Math.floor(Math.random() * list.length)];
let prefix = null;
let operations = OPERATIONS;
let begin = null;
let working = 0;
let atRest = null;
let wanted = new Promise((resolve) => { begin = resolve; });

// See zscore_of_master in redis_py.py.
async function zscoreOfMaster(db, board, member) {
    const [[roleError, role], [scoreError, score]] = await db.multi().role().zscore(board, member).exec();
    if (roleError || scoreError) {
        throw roleError || scoreError;
    }
    if (role[0] !== "master") {
        throw new Error("READONLY a replica");
    }
    return score;
}

async function send(db, board, operation, member, argument) {
    if (operation === "set") {
        await db.zadd(`${board}:set`, argument, member);
        return "-";
    }
    if (operation === "inc") {
        return await db.zincrby(`${board}:inc`, 1, member);
    }
    if (operation === "tie") {
        await db.zadd(`${board}:tie`, "NX", 0, member);
        return "-";
    }
    const read = `${board}:${operation === "get" ? "set" : "inc"}`;
    return await (kind === "sentinel" ? db.zscore(read, member) : zscoreOfMaster(db, read, member)) ?? "-";
}

async function perform(client) {
    const operation = pick(operations);
    client.count++;
    const argument = client.number * 10000000 + client.count;
    const members = operation === "inc" || operation === "read" ? COUNTERS : REGISTERS;
    const member = operation === "tie" ? `${client.number}:${client.count}`
        : `m${Math.floor(Math.random() * members)}`;
    let outcome = "ok", answer = "-";
    const start = process.hrtime.bigint();
    try {
        answer = await send(client.db, prefix, operation, member, argument);
    } catch (error) {
        outcome = REFUSALS.some((word) => error.message.startsWith(word)) ? "refused" : "unknown";
    }
    const end = process.hrtime.bigint();
    process.stdout.write(`${client.number} ${operation} ${member} ${argument} ${start} ${end} ` +
                         `${outcome} ${answer}\n`);
    return outcome === "ok";
}

async function run(client) {
    for (;;) {
        if (prefix === null) {
            await wanted;
        }
        working++;
        const mine = prefix;
        while (prefix === mine) {
            const began = Date.now();
            if (!await perform(client)) {
                await pause(PAUSE_AFTER_ERROR_MS);
            }
            await pause(Math.max(0, 1000 / pace * (0.5 + Math.random()) - (Date.now() - began)));
        }
        if (--working === 0 && atRest !== null) {
            atRest();
        }
    }
}

for (let number = Number(first); number < Number(first) + Number(count); number++) {
    const client = { number, count: 0, db: connect() };
    client.db.on("error", () => {}); // while it connects again; commands have errors of their own
    run(client);
}
readline.createInterface({ input: process.stdin }).on("line", async (line) => {
    const words = line.split(" ");
    if (words[0] === "go") {
        prefix = words[1];
        begin();
        return;
    }
    if (words[0] !== "stop") {
        operations = words[0] === "reads" ? READS : OPERATIONS;
        return;
    }
    wanted = new Promise((resolve) => { begin = resolve; });
    const rest = new Promise((resolve) => { atRest = resolve; });
    prefix = null;
    if (working > 0) {
        await rest;
    }
    atRest = null;
    process.stdout.write("stopped\n");
}).on("close", () => process.exit(0));
