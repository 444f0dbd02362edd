// A write whose answer gets lost, between client and server, goes again with the same id.
"use strict";
const assert = require("node:assert/strict");
const net = require("node:net");
const { test } = require("node:test");
const { Leaderboard, singles, connect, places } = require("./clients.js");

// A way to the server on which the answers to the next `lost` commands that have ONCE do not come back.
async function startWay(context) {
    const way = { lost: 0, ids: [] };
    const server = net.createServer((client) => {
        const there = net.connect(places.port, "127.0.0.1");
        let isLost = false;
        client.on("data", (bytes) => {
            const id = /\$4\r\nONCE\r\n\$\d+\r\n([^\r]+)/.exec(bytes);
            if (id) {
                way.ids.push(id[1]);
                isLost = way.lost-- > 0;
            }
            there.write(bytes);
        });
        there.on("data", (bytes) => isLost ? client.destroy() : client.write(bytes));
        client.on("close", () => there.destroy()).on("error", () => {});
        there.on("close", () => client.destroy()).on("error", () => {});
    });
    await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
    context.after(() => server.close());
    return Object.assign(way, { port: server.address().port });
}

for (const kind of singles) {
    test(`a lost answer, ${kind.name}`, async (context) => {
        const way = await startWay(context);
        const board = new Leaderboard(await connect(context, kind, way), `once: ${kind.name}`, { retries: 20 });
        way.lost = 3;
        const [result] = await board.submit("ann", 25, { operator: "INCR", once: "match:4711:ann" });
        assert.equal(result.record.score, 25);
        assert.equal(result.counts, false); // the first try counted
        assert.deepEqual(way.ids, Array(4).fill("match:4711:ann"));
        way.lost = 1;
        assert.equal(await board.add({ ann: 5 }, { operator: "INCR" }), 0);
        assert.equal((await board.get("ann"))[0].score, 30);
        assert.equal(way.ids.length, 6);
        assert.equal(way.ids[4], way.ids[5]);
        await board.add({ ann: 5 }, { operator: "INCR" });
        assert.notEqual(way.ids[6], way.ids[5]);
    });
}

test("an answer is an answer, and tries end", async (context) => {
    const way = await startWay(context);
    const board = new Leaderboard(await connect(context, singles[1], way), "once: ends", { retries: 2 });
    await assert.rejects(board.submit("ann", "many", { once: "a" }), /ERR/);
    assert.equal(way.ids.length, 1);
    way.lost = 100;
    await assert.rejects(board.submit("ann", 1, { once: "b" }));
    assert.equal(way.ids.length, 4);
    assert.equal(await board.add(null, { packed: { ann: 5 } }), 1); // has none
    assert.equal(way.ids.length, 4);
    const hasty = new Leaderboard(board.client, board.key);
    await assert.rejects(hasty.submit("ann", 1, { once: "c" }));
    assert.deepEqual(way.ids.slice(4), ["c"]);
    await hasty.add({ bob: 5 });
    assert.equal(way.ids.length, 5);
});
