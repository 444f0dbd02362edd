// node-redis's clientSideCache: what it has read is read again only when it has changed. cache_redis.js PORT PACKAGE
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const { createClient, createClientPool } = require(path.join(process.cwd(), "node_modules", process.argv[3]));
const url = `redis://127.0.0.1:${process.argv[2]}`;

const later = () => new Promise(setImmediate);

async function main() {
    const writer = await createClient({ url, RESP: 3 }).connect();
    const reader = createClient({ url, RESP: 3, clientSideCache: { maxEntries: 100 } });
    await reader.connect();
    const cache = reader.clientSideCache;
    const top = () => reader.zRangeWithScores("top", 0, 99, { REV: true });
    const forgotten = () => new Promise((resolve) => cache.once("invalidate", resolve));

    await writer.del("top");
    assert.deepStrictEqual(await top(), []);
    for (let score = 1; score <= 50; score++) {
        const told = forgotten();
        await writer.zAdd("top", { score, value: "ann" });
        assert.strictEqual(String(await told), "top");
        const hits = cache.stats().hitCount;
        assert.deepStrictEqual(await top(), [{ value: "ann", score }]);
        assert.deepStrictEqual(await top(), [{ value: "ann", score }]);
        assert.strictEqual(cache.stats().hitCount, hits + 1);
    }
    // Its own change, an expiry, and a flush.
    let told = forgotten();
    await reader.zIncrBy("top", 1, "ann");
    await told;
    assert.strictEqual(await reader.zScore("top", "ann"), 51);
    await writer.pExpire("top", 300);
    while (await reader.zCard("top") !== 0) {
        await later();
    }
    await writer.zAdd("top", { score: 1, value: "zoe" });
    while (await reader.zCard("top") !== 1) {
        await later();
    }
    told = forgotten();
    await writer.flushAll();
    assert.strictEqual(await told, null);
    assert.strictEqual(await reader.zCard("top"), 0);
    reader.destroy();
    writer.destroy();

    // One cache for all connections of a pool.
    const pool = createClientPool({ url, RESP: 3 }, { minimum: 3, maximum: 3, clientSideCache: { maxEntries: 100 } });
    await pool.connect();
    for (let score = 1; score <= 20; score++) {
        await pool.zAdd("top", { score, value: "bob" });
        while (await pool.zScore("top", "bob") !== score) { // another connection is told a moment later
            await later();
        }
    }
    pool.destroy();
    console.log("all as expected");
}
main();
