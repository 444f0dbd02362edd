// Every method, by every client, against a server.
"use strict";
const assert = require("node:assert/strict");
const { describe, test } = require("node:test");
const { Leaderboard, singles, pool, sentinels, tell, connect } = require("./clients.js");

const LAPS = { fields: "FIELD laps 10 FIELD ms 30 ASC TIME 24 M", tag: { country: 4, clan: 3 } };

// A board that is not there yet, its client, and what other tests do not have.
async function begin(context, kind, options) {
    const client = await connect(context, kind);
    const name = `${kind.name}:${context.name}`;
    return { client, name, board: new Leaderboard(client, name, options) };
}
const names = (records) => records.map((record) => record && record.member);
const collect = async (items) => {
    const found = [];
    for await (const item of items) {
        found.push(item);
    }
    return found;
};

for (const kind of [...singles, pool]) {
    describe(kind.name, () => {
        test("records", async (context) => {
            const { board } = await begin(context, kind, { fields: ["laps", "ms"] });
            await board.create(LAPS);
            const at = new Date("2026-11-16T10:00:00Z");
            assert.equal(await board.add({ ann: [9, 61500], bob: [9, 60900] }, { at, tag: { country: "DE" } }), 2);
            assert.equal(await board.add([["12", [8, 59000]], ["3", [8, 59000]]], { at, tag: { country: "FR" } }), 2);
            assert.deepEqual(await board.get(["ann", "nobody"], { pct: true, withkey: true, tags: true }), [{
                member: "ann", rank: 1, time: at, score: 9, values: [9, 61500], fields: { laps: 9, ms: 61500 },
                tags: { country: "DE" }, key: (await board.get("ann", { withkey: true }))[0].key, percent: 75,
            }, null]);
            assert.deepEqual(names(await board.range(0, -1)), ["bob", "ann", "12", "3"]);
            assert.deepEqual(names(await board.range(8, 8, { byscore: true, limit: [1, 1] })), ["3"]);
            assert.deepEqual(names(await board.range(0, 0, { rev: true })), ["3"]);
            assert.deepEqual(names(await board.around("ann", 5, { within: "country" })), ["bob", "ann"]);
            assert.deepEqual(names(await board.around(null, 2, { score: 8 })), ["ann", "12"]);
            assert.deepEqual(names(await board.quantile([1, 0.5, 0])), ["bob", "12", "3"]);
            assert.deepEqual(await board.hist([9]), [2, 2]);
            const keys = (await board.range(0, -1, { withkey: true })).map(({ key }) => key);
            assert.deepEqual(await board.cuts(3), [0, 1, 3].map((rank) => ({ rank, key: keys[rank] })));
            assert.deepEqual(await board.cuts(9, 1, -1, { where: { country: "DE" } }), [{ rank: 1, key: keys[1] }]);
            assert.equal(await board.count(), 4);
            assert.equal(await board.count(0, 2, { where: { country: ["DE", "FR"] }, wherenot: { country: "FR" } }), 2);
            assert.deepEqual(await board.countBy("country"),
                [{ values: ["DE"], count: 2 }, { values: ["FR"], count: 2 }]);
            assert.deepEqual(await board.countBy(["country", "clan"], 0, 2),
                [{ values: ["DE", null], count: 2 }, { values: ["FR", null], count: 1 }]);
        });

        test("what every ranking needs has a name", async (context) => {
            const { board } = await begin(context, kind);
            await board.create({ fields: "FIELD points 20", tag: { country: 8 } });
            await assert.rejects(board.create(), /BUSYKEY/);
            await board.create({ exist_ok: true });
            await assert.rejects(board.named("other").create({ fields: "FIELD", exist_ok: true }), /FIELD/);
            await board.add({ ann: 50, bob: 40, cid: 30 }, { tag: { country: "DE" } });
            await board.add({ eve: 45 }, { tag: { country: "FR" } });
            assert.deepEqual(names(await board.top(2)), ["ann", "eve"]);
            assert.deepEqual((await board.top(1, { tags: true }))[0].tags, { country: "DE" });
            assert.deepEqual([await board.rank("bob"), await board.rank("bob", { within: "country" }), await board.rank("x")],
                [2, 1, null]);
            assert.deepEqual([await board.score("bob"), await board.score("x")], [40, null]);
            assert.equal(await board.remove("ann", "x", "cid"), 2);
            assert.deepEqual(names(await board.range(0, -1)), ["eve", "bob"]);
            assert.deepEqual([await board.delete(), await board.delete()], [true, false]);
        });

        test("an option that nobody knows is refused, and nothing is sent", async (context) => {
            const { board, client } = await begin(context, kind);
            await board.add({ ann: 100 });
            await assert.rejects(board.submit("ann", 5, { operater: "INCR" }), /^TypeError: operater is no option: .*operator/);
            await assert.rejects(board.range(0, 9, { tag: true }), /^TypeError: tag is no option: .*tags/);
            await assert.rejects(board.page(1, { sized: 3 }), /^TypeError: sized is no option/);
            await assert.rejects(board.subscribe({ overtake: "ann" }, () => {}), /^TypeError: overtake is no option/);
            assert.throws(() => new Leaderboard(client, "a", { retry: 3 }), /^TypeError: retry is no option: .*retries/);
            assert.equal(await board.score("ann"), 100);
        });

        test("a multi is refused at once", async (context) => {
            const { client } = await begin(context, kind);
            assert.throws(() => new Leaderboard(client.multi(), "a"), /^TypeError: .*no multi or pipeline/);
            if (client.pipeline) {
                assert.throws(() => new Leaderboard(client.pipeline(), "a"), /^TypeError: .*no multi or pipeline/);
            }
        });

        test("what is missing is refused, and what is null is not asked for", async (context) => {
            const { board } = await begin(context, kind);
            await board.add({ ann: 5 });
            await assert.rejects(board.submit(null, 5), /^TypeError: member is needed$/);
            await assert.rejects(board.tag(undefined, { country: "DE" }), TypeError);
            const [{ score, since, data }] = await board.get("ann", { since: null, data: null });
            assert.deepEqual([score, since, data], [5, undefined, undefined]);
        });

        test("data, and the rank on another board", async (context) => {
            const { board, client, name } = await begin(context, kind);
            await board.add({ ann: 5, bob: 4 });
            await tell(client, "HSET", `${name}:p:ann`, "name", "Ann", "__proto__", "x");
            assert.deepEqual((await board.range(0, 1, { data: `${name}:p:*`, fields: ["name", "tier"] }))
                .map((record) => record.data), [{ name: "Ann", tier: null }, null]);
            assert.deepEqual(Object.entries((await board.get("ann", { data: `${name}:p:*` }))[0].data),
                [["name", "Ann"], ["__proto__", "x"]]);
            assert.equal(await board.roll(`${name}:old`), 2);
            await board.add({ bob: 7, kim: 6 });
            assert.deepEqual((await board.range(0, -1, { since: `${name}:old` })).map((record) => record.since), [1, null]);
        });

        test("writing", async (context) => {
            const { board, name } = await begin(context, kind);
            assert.deepEqual(await board.addWithrank({ ann: 10 }), [{ record: (await board.get("ann"))[0], before: null }]);
            const [result] = await board.submit("ann", 25, { operator: "INCR" });
            assert.deepEqual([result.board, result.record.score, result.before, result.counts], [name, 35, 0, true]);
            const both = await board.submit("ann", 20, { operator: "BEST", boards: [name, `${name}:week`] });
            assert.deepEqual(both.map((each) => [each.board, each.counts]), [[name, false], [`${name}:week`, true]]);
            assert.equal(await board.add({ ann: 1 }, { condition: "NX" }), 0);
            assert.equal(await board.add(null, { packed: { bob: (await board.get("ann", { withkey: true }))[0].key } }), 1);
            assert.equal((await board.get("bob"))[0].score, 35);
            await assert.rejects(board.submit("ann", "x"), /ERR 'x' is not a score/);
            await assert.rejects(board.add({ ann: 1 }, { touch: true, keeptime: true }), /touch and keeptime exclude each/);
            await assert.rejects(board.around(null, 5), /one of these is needed: member, score/);
        });

        test("tags", async (context) => {
            const { board } = await begin(context, kind);
            await board.create(LAPS);
            await board.add({ ann: [1, 1], bob: [2, 2] }, { tag: { country: "DE" } });
            assert.equal(await board.tag("ann", { clan: "wolves" }, { if: { clan: "" } }), true);
            assert.equal(await board.tag("ann", { clan: "bears" }, { if: { clan: "" } }), false);
            assert.deepEqual(await board.tags(["ann", "bob", "nobody"]),
                [{ country: "DE", clan: "wolves" }, { country: "DE" }, null]);
        });

        test("options", async (context) => {
            const { board, name } = await begin(context, kind);
            await board.create({ fields: ["FIELD", "score", 33, "TIME", 31, "S"], period: "WEEK", on: "SAT", tz: "+08:00",
                archive: 4, keep: "BEST", opens: new Date(1000), settle: "YES" });
            const info = await board.info();
            assert.equal(info.layout.slice(0, 28), "FIELD score 33 TIME 31 S STA");
            assert.deepEqual([info.keep, info.created, info.opens, info.closes, info.settled, info.fields[0].highest],
                ["best", true, new Date(1000), null, null, "8589934591"]);
            assert.deepEqual([info.period.on, info.period.tz, info.period.archive, info.period.copy],
                ["SAT", "+08:00", 4, false]);
            assert.ok(info.period.end > info.period.start);
            assert.equal(await board.alter({ state: "FREEZE", stale: "10 DAY" }), undefined);
            await assert.rejects(board.add({ ann: 1 }), /^[^]*FROZEN/);
            const found = (await collect(board.boards({ match: name })))[0];
            assert.deepEqual([found.name, found.frozen, found.stale], [name, true, 864000000]);
            await board.alter({ state: "THAW", stale: "NONE", period: "NONE" });
        });

        test("archives are settled once", async (context) => {
            const { board, name } = await begin(context, kind);
            await board.add({ ann: 1 });
            await board.roll(`${name}:1`);
            assert.deepEqual((await collect(board.boards({ unsettled: true, match: `${name}:1` })))
                .map((each) => [each.name, each.settled]), [[`${name}:1`, false]]);
            assert.deepEqual([await board.settle(`${name}:1`), await board.settle(`${name}:1`)], [true, false]);
        });

        test("one player", async (context) => {
            const { board, name } = await begin(context, kind);
            const [ann, bob] = [`${name} ann`, `${name} bob`];
            await board.add([[ann, 7], [bob, 5]]);
            assert.deepEqual((await board.where(ann)).map((each) => [each.board, each.record.score]), [[name, 7]]);
            assert.deepEqual(await board.move(ann, bob, { match: name, mode: "SUM" }), [1, 0]);
            assert.equal((await board.get(bob))[0].score, 12);
            assert.equal(await board.ban(bob, { match: name, ex: 100 }), 1);
            const [ban] = await collect(board.banned({ match: bob }));
            assert.deepEqual([ban.member, ban.pattern, ban.until > new Date()], [bob, name, true]);
            await assert.rejects(board.add([[bob, 1]]), /BANNED/);
            assert.deepEqual([await board.unban(bob), await board.unban(bob)], [true, false]);
            await board.add([[bob, 1]]);
            assert.equal(await board.forget(bob, { data: ["a:*", "b:*"] }), 1);
        });

        test("matches", async (context) => {
            const { board, client, name } = await begin(context, kind);
            await board.create({ rating: "GLICKO2 MINGAMES 2" });
            const at = new Date("2026-11-16T10:00:00Z");
            const [ann, bob] = await board.match(["ann", ["bob"]], { once: `${name}:1`, at });
            assert.deepEqual([ann.member, ann.before, ann.after, ann.games, ann.rankBefore, ann.rankAfter],
                ["ann", 1500, 1662.212001, 1, null, null]);
            assert.equal((await board.match(["ann", ["bob"]], { once: `${name}:1`, at }))[1].after, bob.after);
            await board.match([["bob"], ["ann"]], { scores: [0.5, 0.5] });
            const [{ member, rating }] = await board.top(1, { rating: true });
            assert.deepEqual([member, rating.games, rating.won, rating.drawn, rating.lost], ["ann", 2, 1, 1, 0]);
            assert.ok(rating.last > at && rating.deviation > 0 && rating.volatility > 0);
            const [rated, nobody] = await board.rating(["ann", "nobody"]);
            assert.deepEqual([rated, nobody], [{ member: "ann", rank: 0, ...rating }, null]);
            assert.deepEqual((await board.predict(["cid", "dan"])).chances, [0.5, 0.5]);
            const texts = new Leaderboard(client, name, { numbers: "string" });
            const { last, ...eve } = await texts.rate("eve", "1750.25", { deviation: 60 });
            assert.deepEqual([eve.member, eve.rank, eve.rating, eve.deviation, eve.games, last],
                ["eve", null, "1750.25", "60", 0, null]);
            const elo = board.named(`${name}:elo`);
            await elo.create({ rating: "ELO" });
            assert.deepEqual(await elo.match(["ann", "bob"], { ranks: [2, 1] }), [
                { member: "ann", before: 1500, after: 1480, deviation: null, games: 1, rankBefore: null, rankAfter: 1 },
                { member: "bob", before: 1500, after: 1520, deviation: null, games: 1, rankBefore: null, rankAfter: 0 }]);
            assert.equal((await elo.get("ann", { rating: true }))[0].rating.rating, 1480);
            assert.deepEqual((await elo.around("cid", 3, { rating: true })), []);
            await assert.rejects(board.match("ann"), /^TypeError: teams are an array/);
            await assert.rejects(board.match(), /^TypeError: teams is needed/);
            await assert.rejects(board.match(["ann", "ann"]), /twice/);
            assert.equal(await board.revoked("ann"), null);
        });

        test("leagues", async (context) => {
            const { board } = await begin(context, kind);
            await board.leagueCreate({ fields: "FIELD points 22 TIME 31 S", period: "WEEK", room: 3, tiers: 4, up: 1, down: 1 });
            const place = await board.leagueAdd("ann", 30, { operator: "INCR" });
            assert.deepEqual([place.tier, place.room, place.record.score, place.other], [1, 1, 30, null]);
            assert.equal((await board.leagueGet("ann")).record.score, 30);
            assert.deepEqual([place.outlook, (await board.leagueGet("ann")).outlook], [null, "up"]);
            assert.equal(await board.leagueGet("nobody"), null);
            const again = () => board.leagueAdd("bob", 5, { once: "r1", withrepeat: true });
            assert.deepEqual([(await again()).repeated, (await again()).repeated], [false, true]);
            await board.leagueRemove("bob");
            assert.equal(await again(), null);
            const info = await board.leagueInfo();
            assert.deepEqual([info.members, info.tiers, info.idle, info.list.length, info.list[3].openRoomMembers],
                [1, 4, "stay", 4, 1]);
            assert.deepEqual([await board.leagueSet(3, "ann"), await board.leagueRemove("ann"),
                await board.leagueRemove("ann")], [true, true, false]);
        });

        test("numbers are exact, or an error when they are read", async (context) => {
            const { board, client, name } = await begin(context, kind);
            await board.create({ fields: "FIELD coins 64 SIGNED" });
            await board.add({ ann: 9007199254740993n, bob: 5 });
            const [ann, bob] = await board.range(0, -1);
            assert.equal(bob.score, 5);
            assert.throws(() => ann.score, /9007199254740993 has more digits than a number holds/);
            assert.throws(() => JSON.stringify(ann), RangeError);
            const [written] = await board.submit("ann", 1, { operator: "INCR" }); // done, so no error by itself
            assert.equal(written.counts, true);
            const exact = new Leaderboard(client, name, { numbers: "bigint" });
            assert.deepEqual((await exact.range(0, -1)).map((record) => record.score), [9007199254740994n, 5n]);
            await assert.rejects(async () => board.add({ ann: 2 ** 53 }), /give a bigint or a string/);

            const euros = exact.named(`${name}:euros`);
            await euros.create({ fields: "FIELD euros 64 SIGNED SCALE 2" });
            await euros.add({ ann: "9007199254740993.21", bob: 0.25 });
            const [rounded] = await euros.range(0, 0);
            assert.throws(() => rounded.score, RangeError);
            const texts = new Leaderboard(client, euros.key, { numbers: "string" });
            assert.deepEqual((await texts.range(0, -1)).map((record) => record.score), ["9007199254740993.21", "0.25"]);
            const plain = await board.named(euros.key).range(0, -1);
            assert.equal(plain[1].score, 0.25);
            assert.throws(() => plain[0].values, RangeError);
            assert.throws(() => new Leaderboard(client, "x", { numbers: "decimal" }), TypeError);
        });

        test("pages and iteration", async (context) => {
            const { board } = await begin(context, kind);
            const members = Array.from({ length: 25 }, (_, i) => `m${i}`);
            await board.create({ fields: "FIELD score 40", tag: { even: 1 } });
            await board.add(members.map((member, i) => [member, 100 - i]));
            await board.tag("m0", { even: "yes" });
            await board.tag("m2", { even: "yes" });
            const page = await board.page(3, { size: 10 });
            assert.deepEqual([page.number, page.pages, page.count, names(page.records)], [3, 3, 25, members.slice(20)]);
            await assert.rejects(board.page(0), /page: 0: a whole number from 1 on/);
            await assert.rejects(collect(board.records({ batch: 0 })), RangeError);
            const group = await board.page(1, { size: 10, where: { even: "yes" } });
            assert.deepEqual([group.pages, group.count, names(group.records)], [1, 2, ["m0", "m2"]]);
            assert.deepEqual(names(await collect(board)), members);
            assert.deepEqual(names(await collect(board.records({ batch: 5 }))), members);
            assert.deepEqual(names(await collect(board.records({ batch: 7, rev: true }))), [...members].reverse());
        });
    });
}

for (const kind of [...singles, ...sentinels.map((each) => ({ ...each, name: `${each.name} by Sentinel` }))]) {
    test(`events, ${kind.name}`, async (context) => {
        const client = await connect(context, kind);
        const board = new Leaderboard(client, `events: ${kind.name}`);
        const seen = [];
        let wake = () => {};
        const stop = await board.subscribe({ board: true, top: 1, list: 2, members: 2, overtaken: ["zoe", "a:b"] }, (event) => {
            seen.push(event);
            wake();
        });
        const next = async (type) => {
            for (;;) {
                const index = seen.findIndex((event) => event.type === type);
                if (index >= 0) {
                    return seen.splice(index, 1)[0];
                }
                await new Promise((resolve) => {
                    wake = resolve;
                });
            }
        };
        await board.add([["zoe", 900], ["a:b", 700], ["leo", 500]]);
        assert.deepEqual((await next("list")).records.map((record) => [record.member, record.score]),
            [["zoe", 900], ["a:b", 700]]);
        await next("changed");
        seen.length = 0;
        await board.add({ leo: 950 });
        assert.deepEqual(await next("overtaken"), { type: "overtaken", member: "zoe", from: 0, to: 1, by: "leo" });
        assert.deepEqual(await next("overtaken"), { type: "overtaken", member: "a:b", from: 1, to: 2, by: "zoe" });
        assert.deepEqual(await next("entered"), { type: "entered", member: "leo" });
        assert.deepEqual(await next("left"), { type: "left", member: "a:b" });
        await board.roll(`${board.key} old`);
        assert.deepEqual(await next("rolled"), { type: "rolled", archive: `${board.key} old` });
        await stop();
    });
}

test("who subscribes where no events are told learns it at once", async (context) => {
    const client = await connect(context, singles[1]);
    const board = new Leaderboard(client, "quiet");
    await client.configSet("notify-board-events", "no");
    try {
        await assert.rejects(board.subscribe({ board: true }, () => {}), /CONFIG SET notify-board-events yes/);
    } finally {
        await client.configSet("notify-board-events", "yes");
    }
});

test("a pool cannot subscribe, and says so", async (context) => {
    const board = new Leaderboard(await connect(context, pool), "any");
    await assert.rejects(board.subscribe({ board: true }, () => {}), /a pool cannot subscribe/);
    await assert.rejects(board.subscribe({}, () => {}), /subscribe to one of/);
});

test("a connection that may not subscribe is closed", async (context) => {
    const client = await connect(context, singles[1]);
    await tell(client, "ACL", "SETUSER", "reader", "on", "nopass", "+@all", "~*", "resetchannels");
    const reader = client.duplicate({ username: "reader", password: "any" });
    reader.on("error", () => {});
    await reader.connect();
    await assert.rejects(new Leaderboard(reader, "closed: board").subscribe({ board: true }, () => {}), /NOPERM/);
    await reader.close();
    while ((await tell(client, "CLIENT", "LIST")).includes("user=reader")) {
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await tell(client, "ACL", "DELUSER", "reader");
});
