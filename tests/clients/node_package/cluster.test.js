// The module in a cluster: each board on the node that has it.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { Leaderboard, clusters, connect } = require("./clients.js");

const BOARDS = 30; // on three nodes

for (const kind of clusters) {
    test(`boards of a cluster, ${kind.name}`, async (context) => {
        const client = await connect(context, kind);
        const boards = Array.from({ length: BOARDS }, (_, i) => new Leaderboard(client, `{${kind.name} ${i}}day`,
            { retries: 5 }));
        await Promise.all(boards.map(async (board, i) => {
            await board.create({ fields: "FIELD score 40", tag: { country: 8 } });
            await board.add({ ann: i, bob: 20 }, { tag: { country: "DE" } });
            const results = await board.submit("ann", 5, { operator: "INCR",
                boards: [board.key, board.key.replace("day", "week")] });
            assert.deepEqual(results.map((result) => result.record.score), [i + 5, 5]);
            const [record] = await board.around("ann", 1, { within: "country", tags: true });
            assert.deepEqual([record.score, record.tags], [i + 5, { country: "DE" }]);
            assert.equal((await board.page(1)).count, 2);
            assert.equal((await board.info()).count, 2);
        }));
        const there = [];
        for await (const { name } of boards[0].boards({ match: `{${kind.name} *day` })) {
            there.push(name);
        }
        assert.deepEqual(there.sort(), boards.map((board) => board.key).sort());
        await assert.rejects(boards[0].list(), /each node of a cluster has a cursor/);
        // What is about all nodes.
        const match = `{${kind.name} *day`;
        assert.equal((await boards[0].where("bob", { match })).length, BOARDS);
        assert.deepEqual(await boards[0].move("bob", "kim", { match }), [BOARDS, 0]);
        assert.equal(await boards[0].ban("kim", { match }), BOARDS);
        const bans = [];
        for await (const ban of boards[0].banned({ match: "kim" })) {
            bans.push(ban.member);
        }
        assert.deepEqual(bans, ["kim", "kim", "kim"]);
        assert.deepEqual([await boards[0].unban("kim"), await boards[0].unban("kim")], [true, false]);
        assert.equal(await boards[0].forget("ann", { match }), BOARDS);
        const [key, archive] = [`{${kind.name}}`, `{${kind.name}}1`];
        await boards[0].named(key).add({ ann: 1 });
        await boards[0].named(key).roll(archive);
        assert.deepEqual([await boards[0].settle(archive), await boards[0].settle(archive)], [true, false]);
    });
}

for (const kind of clusters.filter((each) => each.name.startsWith("ioredis"))) {
    test(`the node that has the board is asked, and no other, ${kind.name}`, async (context) => {
        const client = await connect(context, kind);
        const redirected = [];
        const handleError = client.handleError;
        client.handleError = function (error, ...rest) {
            redirected.push(error.message);
            return handleError.call(this, error, ...rest);
        };
        const board = new Leaderboard(client, "any");
        for (let i = 0; i < 50; i++) {
            await board.named(`{straight ${i}}day`).submit("ann", 1);
        }
        assert.deepEqual(redirected, []);
    });
}
