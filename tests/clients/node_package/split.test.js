// SplitBoard: one board over several keys, beside one board with the same members and beside a list sorted here.
"use strict";
const assert = require("node:assert/strict");
const path = require("node:path");
const { after, before, test } = require("node:test");
const {
    Leaderboard, SplitBoard, BoardChanged, shardOf, home, singles, pool, clusters, tell, connect,
} = require("./clients.js");
const { limits } = require(path.join(home, "split.js"));

const IS_SHORT = !["", "0"].includes(process.env.LEADERBOARD_TEST_SHORT ?? "");
const MEMBERS = IS_SHORT ? 150 : 400;
const WRITES = IS_SHORT ? 1 : 3;
const AT = 1700000000000;
// The words of a layout; of each field the values of a member, and 1 where more is better; the unit of time, and 1 where
// later is better.
const LAYOUTS = [
    { fields: "FIELD score 20", values: [[0, 5]], better: [1] }, // hardly anything but equal keys
    { fields: "FIELD score 20", values: [[0, 1000000]], better: [1] },
    { fields: `FIELD ms 24 ASC TIME 30 MS START ${AT}`, values: [[0, 30]], better: [-1], unit: 1, later: -1 },
    { fields: "FIELD level 8 FIELD ms 20 ASC", values: [[0, 9], [0, 40]], better: [1, -1] },
    { fields: "FIELD score 33 SIGNED TIME 31 S", values: [[-20, 20]], better: [1], unit: 1000, later: -1 },
    { fields: "FIELD score 64 SIGNED", values: [[-(2n ** 63n), 2n ** 63n - 1n]], better: [1] },
    { fields: "FIELD score 64", values: [[2n ** 64n - 4n, 2n ** 64n - 1n]], better: [1] }, // one double
    { fields: "FIELD wins 10 ASC FIELD score 16 SIGNED TIME 32 S LATEST", values: [[0, 3], [-2, 2]], better: [-1, 1],
        unit: 1000, later: 1 },
    { fields: "FIELD score 9 TIME 4 D START 2023-11-01T00:00:00Z LATEST", values: [[0, 3]], better: [1],
        unit: 86400000, later: 1 },
];

// So small that a few hundred members take all the rounds.
const usual = { ...limits };
before(() => Object.assign(limits, { cuts: 40, few: 5, many: 10 }));
after(() => Object.assign(limits, usual));

// Whole numbers from low to high, the same for the same seed.
function drawer(context) {
    let state = Number(process.env.LEADERBOARD_TEST_SEED ?? Math.floor(Math.random() * 2 ** 30));
    context.diagnostic(`seed ${state}`);
    const next = () => { // mulberry32
        state = state + 0x6d2b79f5 | 0;
        let mixed = Math.imul(state ^ state >>> 15, 1 | state);
        mixed = mixed + Math.imul(mixed ^ mixed >>> 7, 61 | mixed) ^ mixed;
        return (mixed ^ mixed >>> 14) >>> 0;
    };
    return (low, high) => {
        const [begin, size] = [BigInt(low), BigInt(high) - BigInt(low) + 1n];
        const drawn = begin + (BigInt(next()) << 32n | BigInt(next())) % size;
        return typeof low === "bigint" ? drawn : Number(drawn);
    };
}
const names = (records) => records.map((record) => record && record.member);
const collect = async (items) => {
    const found = [];
    for await (const item of items) {
        found.push(item);
    }
    return found;
};

// What a split board must answer, from one board with the same members.
async function twinOf(one, shards, group) {
    const records = await one.range(0, -1, { ...group, withkey: true, tags: true });
    const all = records.sort((a, b) => a.key > b.key ? -1 : a.key < b.key ? 1
        : shardOf(a.member, shards) - shardOf(b.member, shards)).map((record, rank) => ({ ...record, rank }));
    const places = new Map(all.map((record) => [record.member, record]));
    return {
        all,
        range: (first, count) => all.slice(first, first + count),
        rank: (member) => places.get(String(member)) ?? null,
        around(member, count) {
            const first = Math.max(0, Math.min(places.get(member)?.rank - Math.floor(count / 2), all.length - count));
            return places.has(member) ? this.range(first, count) : [];
        },
        quantile: (thousandths) => all[all.length - Math.max(1, Math.ceil(thousandths * all.length / 1000))] ?? null,
    };
}

// Members in the order of the layout's fields, their times, shards, and arrival, the last one first where later is better.
class Model {
    constructor({ better, unit, later = 1 }, shards) {
        Object.assign(this, { better: [...better, later], later: unit ? later : -1, unit, shards, members: new Map(), written: 0 });
    }

    write(member, values, at) {
        const order = [...values.map(BigInt), BigInt(this.unit ? Math.floor(at / this.unit) : 0)];
        const old = this.members.get(member);
        const isSame = old && order.every((value, i) => value === old.order[i]);
        this.members.set(member, { order, arrival: isSame ? old.arrival : this.written++ });
    }

    names() {
        const compare = ([a, { order, arrival }], [b, other]) => {
            const different = order.findIndex((value, i) => value !== other.order[i]);
            return different >= 0 ? (order[different] > other.order[different] ? -1 : 1) * this.better[different]
                : shardOf(a, this.shards) - shardOf(b, this.shards) || (other.arrival - arrival) * this.later;
        };
        return [...this.members].sort(compare).map(([member]) => member);
    }
}

// The same writes to the split board, one board and the model.
async function write(draw, { board, one, model }, { values, unit }, count) {
    const answers = [];
    for (let i = 0; i < count; i++) {
        const member = `m${draw(0, MEMBERS - 1)}`;
        if (draw(0, 9) === 0) {
            answers.push(board.remove(member), tell(one.client, "ZREM", one.key, member));
            model.members.delete(member);
            continue;
        }
        const at = AT + 1000 * draw(0, 100000);
        const drawn = values.map(([low, high]) => draw(low, high));
        const options = { tag: { country: ["DE", "FR", ""][draw(0, 2)] }, ...unit ? { at } : {} };
        answers.push(board.submit(member, drawn, options), one.add([[member, drawn]], options));
        model.write(member, drawn, at);
    }
    await Promise.all(answers);
}

async function compare(draw, { board, one, model }, group) {
    const twin = await twinOf(one, board.shards, group);
    const count = twin.all.length;
    const options = { ...group, tags: true };
    if (Object.keys(group).length === 0) {
        const all = await collect(board.records({ ...options, batch: 97 }));
        assert.deepEqual(all, twin.all);
        assert.deepEqual(names(all), model.names());
    }
    const places = [0, 3, count >> 1, Math.max(0, count - 3), count, count + 7, draw(0, count), draw(0, count)];
    const sizes = places.map(() => draw(1, 60));
    assert.deepEqual(await Promise.all(places.map((place, i) => board.range(place, place + sizes[i] - 1, options))),
        places.map((place, i) => twin.range(place, sizes[i])));
    assert.deepEqual(await board.range(places[6], places[6], options), twin.range(places[6], 1));
    assert.deepEqual(await board.top(7, options), twin.range(0, 7));
    assert.deepEqual(await board.page(3, { ...options, size: 9 }),
        { number: 3, pages: Math.ceil(count / 9), count, records: twin.range(18, 9) });

    const members = [...Array.from({ length: 8 }, () => `m${draw(0, MEMBERS - 1)}`), "nobody",
        ...names([...twin.range(0, 2), ...twin.all.slice(-2)])];
    assert.deepEqual(await board.get(members, options), members.map(twin.rank));
    await Promise.all(members.map(async (member) => {
        const size = draw(1, 12);
        assert.deepEqual(await board.rank(member, options), twin.rank(member));
        assert.deepEqual(await board.around(member, size, options), twin.around(member, size), `${member} ${size}`);
        const [shared] = await one.get(member, { ...group, comp: true });
        assert.equal((await board.rank(member, { ...group, comp: true }))?.rank, shared?.rank);
    }));
    const quantiles = [0, 1000, 1, draw(0, 1000), draw(0, 1000)];
    assert.deepEqual(await board.quantile(quantiles.map((q) => (q / 1000).toFixed(3)), options), quantiles.map(twin.quantile));
    assert.deepEqual(await board.quantile(quantiles.map((q) => q / 1000), options), quantiles.map(twin.quantile));

    assert.equal(await board.count(null, null, group), count);
    const edges = [draw(-10, 20), draw(21, 50)];
    if (!/64/.test((await one.info()).layout)) {
        assert.deepEqual(await board.hist(edges, group), await one.hist(edges, group));
    }
    assert.equal(await board.count(null, `(${edges[1]}`, group),
        await one.count("-inf", `(${edges[1]}`, { ...group, byscore: true }));
    assert.deepEqual(await board.countBy("country", null, null, group), await one.countBy("country", null, null, group));
}

async function begin(client, name, layout, shards, key = `${name}:one`) {
    const board = new SplitBoard(client, name, { shards, numbers: "string", retries: 3 });
    const one = new Leaderboard(client, key, { numbers: "string" });
    const options = { fields: layout.fields, tag: { country: 4, clan: 2 } };
    await Promise.all([board.create(options), one.create(options)]);
    return { board, one, model: new Model(layout, shards) };
}

LAYOUTS.forEach((layout, number) => {
    test(`a split board answers as one board, ${layout.fields}`, async (context) => {
        const draw = drawer(context);
        for (const [i, shards] of [1, draw(2, 3), 5, 7].entries()) {
            const kinds = [...singles, pool];
            const kind = kinds[(4 * number + i) % kinds.length];
            const client = await connect(context, kind);
            // A pool sends on several connections, so writes of equal keys would arrive in any order.
            const both = await begin(kind === pool ? await connect(context, singles[1]) : client,
                `split:${number}:${i}`, layout, shards);
            if (kind === pool) {
                both.board = new SplitBoard(client, both.board.name, { shards, numbers: "string" });
            }
            await compare(draw, both, {}); // empty
            for (let writes = 0; writes < WRITES; writes++) {
                const writer = kind === pool ? new SplitBoard(both.one.client, both.board.name, { shards }) : both.board;
                // At first so few that most shards are empty.
                await write(draw, { ...both, board: writer }, layout, writes === 0 ? 5 : MEMBERS);
                await compare(draw, both, {});
                await compare(draw, both, { where: { country: ["DE", "", "nobody"][draw(0, 2)] } });
                await compare(draw, both, { wherenot: { country: ["DE", "FR"] } });
            }
        }
    });
});

for (const kind of clusters) {
    test(`a split board in a cluster, ${kind.name}`, async (context) => {
        const draw = drawer(context);
        const client = await connect(context, kind);
        const layout = LAYOUTS[4];
        const { board, one, model } = await begin(client, `split:${kind.name}`, layout, 6, `{split ${kind.name}}`);
        for (let i = 0; i < MEMBERS; i++) {
            const [member, value, at] = [`m${i}`, draw(-20, 20), AT + 1000 * draw(0, 5)];
            const options = { at, tag: { country: ["DE", "FR"][draw(0, 1)] } };
            await Promise.all([board.submit(member, value, options), one.add([[member, value]], options)]);
            model.write(member, [value], at);
        }
        await compare(draw, { board, one, model }, {});
        await compare(draw, { board, one, model }, { where: { country: "DE" } });
        const { rounds } = board;
        await board.rank("m5");
        await board.around("m5", 9);
        assert.equal(board.rounds - rounds, 4);
        assert.equal(await board.remove(["m5", "m6", "m7", "nobody"]), 3);
        assert.equal(await board.count(), MEMBERS - 3);
        assert.equal(await board.delete(), 6);
    });
}

test("shards are by crc32, for ever, and those of Python", () => {
    const known = [["ann", 3877663347], ["bob", 4123767104], ["zoë", 3349081364], ["", 0], ["123456789", 0xcbf43926],
        ["日本", 3350711756], ["user:4711", 3287937155], ["😀", 88978756], [123456789n, 0xcbf43926]];
    assert.deepEqual(known.map(([name]) => shardOf(name, 2 ** 32)), known.map(([, crc]) => crc));
    assert.deepEqual(known.map(([name]) => shardOf(name, 7)), known.map(([, crc]) => crc % 7));
});

test("a member is read in the shard that another program has written", async (context) => {
    const client = await connect(context, singles[1]);
    for (const [shard, member] of [[3, "ann"], [0, "bob"], [4, "zoë"], [12, "日本"], [3, "user:4711"]]) {
        await tell(client, "LB.ADD", `split:fixed:{${shard}}`, "7", member);
    }
    const board = new SplitBoard(client, "split:fixed");
    const order = ["bob", "ann", "user:4711", "zoë", "日本"];
    assert.deepEqual(names(await board.top(9)), order);
    assert.deepEqual((await board.get(order)).map(({ rank }) => rank), [0, 1, 2, 3, 4]);
});

test("within is the group of the member", async (context) => {
    const draw = drawer(context);
    const both = await begin(await connect(context, singles[3]), "split:within", LAYOUTS[0], 3);
    await write(draw, both, LAYOUTS[0], MEMBERS);
    const { board, one } = both;
    await board.tag("m1", { clan: "wolves" });
    for (let i = 0; i < 20; i++) {
        const member = `m${i}`;
        const country = (await one.tags(member))[0]?.country ?? "";
        for (const within of ["country", ["COUNTRY"], ["country", "country"]]) {
            assert.deepEqual(await board.rank(member, { within }), await board.rank(member, { where: { country } }));
            assert.deepEqual(await board.around(member, 3, { within }), await board.around(member, 3, { where: { country } }));
        }
        // And where says which groups.
        const where = { country: ["DE", ""] };
        assert.deepEqual(names(await board.around(member, 500, { within: "country", where })),
            country === "FR" ? [] : names(await board.around(member, 500, { where: { country } })));
        assert.equal((await board.rank(member, { within: "country", wherenot: { country } })), null);
    }
    assert.equal((await board.rank("m1", { within: "clan", tags: true }))?.rank ?? 0, 0);
    assert.deepEqual([await board.rank("nobody", { within: "clan" }), await board.around("nobody", 3, { within: "clan" })],
        [null, []]);
});

test("create completes what was interrupted, and sees other layouts", async (context) => {
    const client = await connect(context, singles[5]);
    await tell(client, "LB.CREATE", "split:create:{1}", "FIELD", "score", "20");
    const board = new SplitBoard(client, "split:create", { shards: 4 });
    await board.create({ fields: "FIELD score 20" });
    assert.equal(Number(await tell(client, "EXISTS", ...board.boards.map(({ key }) => key))), 4);
    await assert.rejects(board.create({ fields: "FIELD score 20" }), /^[^]*BUSYKEY/);
    await tell(client, "DEL", "split:create:{2}");
    await assert.rejects(board.create({ fields: "FIELD score 21" }), /different layouts: FIELD score 20.*FIELD score 21/);
    await tell(client, "DEL", "split:create:{2}");
    await assert.rejects(board.create({ fields: "FIELD score 999" }), /ERR/);
});

test("numbers are exact, and writes go to their shards", async (context) => {
    const client = await connect(context, singles[0]);
    const board = new SplitBoard(client, "split:exact", { shards: 5, numbers: "bigint", fields: ["coins"], retries: 2 });
    await board.create({ fields: "FIELD coins 64 SIGNED", tag: { country: 2 } });
    const coins = new Map(["ann", "bob", "kim", "leo", "zoe"].map((member, i) => [member, 9007199254740993n + BigInt(i)]));
    assert.equal(await board.add(coins, { tag: { country: "DE" } }), 5);
    assert.deepEqual((await board.top(9)).map(({ member, fields, key }) => [member, fields.coins, key]),
        [...coins].reverse().map(([member, value]) => [member, value, value]));
    assert.equal(await board.submit("ann", 5, { operator: "BEST" }), false);
    assert.equal(await board.submit("ann", 2n ** 62n, { operator: "BEST" }), true);
    assert.equal((await board.rank("ann")).rank, 0);
    assert.equal((await board.boardOf("zoe").get("zoe"))[0].score, coins.get("zoe"));
    assert.equal(await board.tag("zoe", { country: "FR" }), true);
    assert.deepEqual(await board.countBy("country"), [{ values: ["DE"], count: 4 }, { values: ["FR"], count: 1 }]);
    assert.equal(await board.add({}), 0);
    // One shard refuses its part.
    await assert.rejects(board.add({ eva: 1, mia: "many", tom: 3 }), /ERR/);
    const plain = new SplitBoard(client, "split:exact", { shards: 5 });
    const [first] = await plain.top(1);
    assert.equal(first.member, "ann");
    assert.throws(() => first.score, RangeError);
});

test("an archive is read as one board", async (context) => {
    const board = new SplitBoard(await connect(context, singles[4]), "split:old", { shards: 3, numbers: "bigint" });
    await board.create({ fields: "FIELD score 20" });
    await board.add({ ann: 5, bob: 7, kim: 6 });
    await Promise.all(board.boards.map((shard) => shard.roll(`${shard.key}@2026-11-16`)));
    await board.add({ ann: 1 });
    const old = board.archive("2026-11-16");
    assert.deepEqual(names(await collect(old)), ["bob", "kim", "ann"]);
    assert.deepEqual([old.shards, (await old.rank("ann")).score, (await board.rank("ann")).rank], [3, 5n, 0]);
});

test("what is no place is refused, and an empty board has none", async (context) => {
    const board = new SplitBoard(await connect(context, singles[1]), "split:none", { shards: 3 });
    for (const bad of [() => board.range(0, -1), () => board.range(-1, 3), () => board.top(0), () => board.page(0),
        () => board.around("ann", 0), () => board.records({ batch: 0 }).next(),
        ...["1.1", "", ".", "-0.5", "x", 2, NaN].map((q) => () => board.quantile([0, q]))]) {
        await assert.rejects(bad(), RangeError);
    }
    assert.throws(() => new SplitBoard(board.client, "split:none", { shards: 0 }), RangeError);
    assert.deepEqual([await board.range(5, 3), await board.top(3), await board.rank("ann"), await board.get([]),
        await board.around("ann", 3), await board.count(), await board.quantile([0.5, 1e-7]), await board.hist([5])],
    [[], [], null, [], [], 0, [null, null], [0, 0]]);
    for (const shards of [1, 3]) {
        const filled = new SplitBoard(board.client, `split:ten:${shards}`, { shards });
        await filled.add(Array.from({ length: 10 }, (_, i) => [`m${i}`, i]));
        const found = await filled.quantile([1e-7, "1e-1", "0.100000000000000001", 0.1, .3, "1.0", 1n]);
        assert.deepEqual(names(found), ["m0", "m0", "m1", "m0", "m2", "m9", "m9"]);
    }
});

// A board on which something is done before and after a shard is asked `method`.
function disturbed(client, name, shards, method, { ask = () => {}, answered = () => {} }) {
    const board = new SplitBoard(client, name, { shards });
    for (const shard of board.boards) {
        shard[method] = async (...words) => {
            await ask(shard);
            const answer = await Leaderboard.prototype[method].apply(shard, words);
            await answered(shard);
            return answer;
        };
    }
    return board;
}

test("a page is right while others write", async (context) => {
    // The best of one shard go, or newcomers are better, whenever cuts were read, so that ranks are others when the records
    // are read: those that come are right at that moment.
    const draw = drawer(context);
    const client = await connect(context, singles[1]);
    for (const isGrowing of [true, false]) {
        const other = new SplitBoard(client, `split:pages:${isGrowing}`, { shards: 5 });
        await other.add(Array.from({ length: 2 * MEMBERS }, (_, i) => [`m${i}`, draw(0, 999)]));
        let changes = 0;
        const board = disturbed(client, other.name, 5, "cuts", { async answered(shard) {
            const count = draw(0, 3);
            if (isGrowing && count > 0) {
                await shard.add(Array.from({ length: count }, () => [`n${changes++}`, 2000]));
            } else if (!isGrowing) {
                changes += (await tell(client, "ZPOPMAX", shard.key, String(count))).length;
            }
        } });
        for (let i = 0; i < 40; i++) {
            const place = draw(0, MEMBERS / 2);
            assert.deepEqual(await board.range(place, place + 19), await other.range(place, place + 19));
        }
        assert.ok(changes > 40);
    }
});

test("a member that moves is found where it is, and what changes too fast is an error", async (context) => {
    const client = await connect(context, singles[1]);
    const other = new SplitBoard(client, "split:fast", { shards: 4 });
    await other.add(Array.from({ length: MEMBERS }, (_, i) => [`m${i}`, i]));
    let [moves, score] = [3, 50];
    const move = async (shard) => {
        if (shard.key === other.boardOf("m50").key && moves-- > 0) {
            await other.submit("m50", ++score);
        }
    };
    const board = disturbed(client, other.name, 4, "around", { ask: move });
    assert.deepEqual(await board.around("m50", 5), await other.around("m50", 5));
    assert.deepEqual([score, moves], [53, -1]);
    moves = Infinity;
    await assert.rejects(board.around("m50", 5), BoardChanged);

    // Whoever reads cuts sees members of which there are no records any more: more than are read on either side.
    const members = Array.from({ length: 2000 }, (_, i) => [`m${i}`, i]);
    const vanishing = disturbed(client, other.name, 4, "cuts", {
        ask: (shard) => shard.add(members.filter(([member]) => other.boardOf(member).key === shard.key)),
        answered: (shard) => tell(client, "DEL", shard.key),
    });
    await assert.rejects(vanishing.range(1400, 1405), (error) =>
        error instanceof BoardChanged && error.name === "BoardChanged" && /changes too fast: no place/.test(error.message));
    assert.equal(vanishing.rounds, 40);
});

test("rounds are as many as promised", async (context) => {
    Object.assign(limits, usual);
    const board = new SplitBoard(await connect(context, singles[1]), "split:rounds");
    const draw = drawer(context);
    for (let begin = 0; begin < 20000; begin += 5000) {
        await board.add(Array.from({ length: 5000 }, (_, i) => [`m${begin + i}`, draw(0, 3000)]));
    }
    const roundsOf = async (ask) => {
        const { rounds } = board;
        await ask();
        return board.rounds - rounds;
    };
    assert.deepEqual([await roundsOf(() => board.top(100)), await roundsOf(() => board.rank("m5")),
        await roundsOf(() => board.get(["m5", "m6", "m7"])), await roundsOf(() => board.around("m5", 5)),
        await roundsOf(() => board.count())], [1, 2, 2, 2, 1]);
    assert.ok(await roundsOf(() => board.range(10000, 10049)) <= 3);
    Object.assign(limits, { cuts: 40, few: 5, many: 10 });
});
