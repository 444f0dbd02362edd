// ioredis's cluster client at work until its input ends. load_ioredis.js NAME REST_MS PORT ...
//
// It counts up m:count-NAME and lets w0, w1, ... arrive at m:order-NAME with equal scores. Whatever was
// acknowledged is a line: "count VALUE SECONDS" or "order MEMBER SECONDS" (of the monotonic clock).
// What fails is tried again.
"use strict";
const Redis = require("../clients/node/node_modules/ioredis");

const [name, restMs, ...ports] = process.argv.slice(2);
const client = new Redis.Cluster(ports.map((port) => ({ host: "127.0.0.1", port: Number(port) })), {
    maxRedirections: 32, retryDelayOnFailover: 50, retryDelayOnClusterDown: 50,
    clusterRetryStrategy: () => 50, slotsRefreshTimeout: 5000,
    redisOptions: { maxRetriesPerRequest: 2, commandTimeout: 5000 },
});
client.on("error", () => {});

const seconds = () => Number(process.hrtime.bigint()) / 1e9;
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
let isOver = false;
process.stdin.on("end", () => {
    isOver = true;
    setTimeout(() => process.exit(0), 10000).unref(); // a command that waits for a node is not waited for
}).resume();

async function tryUntilDone(ask) {
    while (!isOver) {
        try {
            return await ask();
        } catch {
            await sleep(50);
        }
    }
    return null;
}

async function main() {
    for (let number = 0; !isOver; number++) {
        const value = await tryUntilDone(() => client.zincrby(`m:count-${name}`, 1, "x"));
        if (value !== null) {
            console.log(`count ${value} ${seconds()}`);
        }
        const added = await tryUntilDone(() => client.zadd(`m:order-${name}`, 7, `w${number}`));
        if (added !== null) {
            console.log(`order w${number} ${seconds()}`);
        }
        await sleep(Number(restMs));
    }
    client.disconnect();
}

main();
