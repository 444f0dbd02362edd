// ioredis with tracking by hand, and a second connection, in RESP2, that is told. cache_ioredis.js PORT PACKAGE
"use strict";
const assert = require("node:assert");
const path = require("node:path");
const Redis = require(path.join(process.cwd(), "node_modules", process.argv[3]));
const port = Number(process.argv[2]);

async function main() {
    const [reader, ear, writer] = [new Redis(port), new Redis(port, { protocol: 2 }), new Redis(port)];
    const told = [];
    let wake = () => {};
    ear.on("message", (channel, keys) => {
        assert.strictEqual(channel, "__redis__:invalidate");
        told.push(keys);
        wake();
    });
    const next = async () => {
        while (told.length === 0) {
            await new Promise((resolve) => { wake = resolve; });
        }
        return told.shift();
    };
    const id = await ear.client("ID");
    await ear.subscribe("__redis__:invalidate");
    assert.strictEqual(await reader.client("TRACKING", "ON", "REDIRECT", id, "NOLOOP"), "OK");
    assert.strictEqual(await reader.client("GETREDIR"), id);
    for (let score = 1; score <= 50; score++) {
        await reader.call("LB.RANGE", "top", 0, 99);
        await reader.zadd("top", score, "mine"); // not told: NOLOOP
        await reader.call("LB.RANGE", "top", 0, 99);
        await writer.zadd("top", score, "ann");
        assert.strictEqual(await next(), "top");
    }
    await reader.zcard("top");
    await writer.flushall();
    assert.strictEqual(await next(), ""); // null: all keys
    assert.deepStrictEqual(told, []);
    for (const client of [reader, ear, writer]) {
        client.disconnect();
    }
    console.log("all as expected");
}
main();
