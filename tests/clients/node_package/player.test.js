// Players with tokens of their own, by every client.
"use strict";
const assert = require("node:assert/strict");
const { createHmac } = require("node:crypto");
const { describe, test } = require("node:test");
const { Leaderboard, Player, requireThere, tell, connect, singles, places } = require("./clients.js");

const SECRET = "0a9c8e3b7d6f5a4b3c2d1e0f9a8b7c6d";

function tokenOf(player) {
    const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const text = `${part({ alg: "HS256", typ: "JWT", kid: "node" })}.${part({ sub: player, exp: Math.floor(Date.now() / 1000) + 600 })}`;
    return `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
}

const libraries = [
    ["node-redis 4", "redis-4"], ["node-redis 5", "redis"], ["node-redis 6", "redis-6"], ["ioredis 5", "ioredis"], ["ioredis 6", "ioredis-6"],
];

async function login(context, version, password) {
    const library = requireThere(version);
    const client = version.startsWith("io")
        ? new library({ port: places.port, username: "player", password, maxRetriesPerRequest: 0 })
        : library.createClient({ url: `redis://127.0.0.1:${places.port}`, username: "player", password });
    client.on("error", () => {});
    if (client.connect && !version.startsWith("io")) {
        await client.connect();
    }
    context.after(() => client.close ? client.close() : client.quit());
    return client;
}

for (const [name, version] of libraries) {
    describe(name, () => {
        test("a player's ticket goes with the next result, and stays if it is refused", async (context) => {
            const owner = await connect(context, singles[1]);
            await tell(owner, "CONFIG", "SET", "player-key", `node hs256 ${SECRET}`);
            await tell(owner, "ACL", "SETUSER", "player:node", "on", "~*", "-@all", "+@read", "+lb.add", "+lb.ticket");
            const key = `player:${name}`;
            const board = new Leaderboard(owner, key);
            await board.create({ fields: "FIELD score 32", keep: "BEST", tickets: "YES", limits: "PLAYERS", max: 10000,
                                 results: [50, "DAY"], gain: [20000n, "HOUR"],
                                 hold: "PLAYERS", over: 5000 });
            assert.equal((await board.info()).limits, "PLAYERS MAX 10000 RESULTS 50 PER DAY GAIN 20000 PER HOUR");
            await board.add({ zoe: 900, kim: 100 });
            const ann = new Player(await login(context, version, tokenOf("ann")), key, { numbers: "bigint", retries: 2 });
            assert.equal(ann.member, "ann");
            assert.deepEqual(await ann.own(), { record: null, held: [] });
            await assert.rejects(ann.endRun(500), /TICKET/);
            const ticket = await ann.beginRun({ for: 60 });
            await assert.rejects(ann.endRun(10001), /LIMIT MAX/);
            assert.equal(ann.runTicket, ticket);
            assert.deepEqual(await ann.endRun([500]), { counts: true, isHeld: false });
            assert.equal(ann.runTicket, null);
            await assert.rejects(ann.endRun(600, { ticket }), /TICKET/);
            await ann.beginRun();
            assert.deepEqual(await ann.endRun(6000), { counts: false, isHeld: true });
            const { record, held } = await ann.own();
            assert.deepEqual([record.score, held.map(({ values }) => values)], [500n, [["6000"]]]);
            assert.deepEqual((await ann.near(3)).map(({ member }) => member), ["zoe", "ann", "kim"]);
        });
    });
}

test("what is no token is said at once", async (context) => {
    const client = await connect(context, singles[1]);
    for (const token of [undefined, "", "secret", "a.b.c", `a.${Buffer.from('{"sub":1}').toString("base64url")}.c`]) {
        assert.throws(() => new Player(client, "high", { token }), /not a player's token: header\.claims\.signature/);
    }
    assert.equal(new Player(client, "high", { token: tokenOf('zoë "q"') }).member, 'zoë "q"');
    assert.throws(() => new Player(client, "high", { token: tokenOf("ann"), retry: 1 }), /retry/);
});
