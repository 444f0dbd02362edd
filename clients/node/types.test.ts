// What must compile with tsc --strict, and, below @ts-expect-error, what must not. It is not run.
import { Redis } from "ioredis";
import {
    BoardChanged, Leaderboard, Player, SplitBoard, shardOf, type BoardEvent, type BoardRecord, type SplitRecord,
} from "leaderboard-client";
import { createClient, createClientPool, createCluster, createSentinel } from "redis";
import { createClient as createClient4 } from "redis-4";
import { createClient as createClient6 } from "redis-6";
import { Redis as Redis6 } from "ioredis-6";

const redis = new Redis();
const board = new Leaderboard(redis, "arena", { retries: 20 });
const exact = new Leaderboard(createClient(), "coins", { numbers: "bigint" });
const race = new Leaderboard(createClient4(), "race", { fields: ["laps", "ms"], numbers: "string" });

export const others = [
    new Leaderboard(createClient6({ RESP: 3 }), "a"), new Leaderboard(createClientPool(), "a"),
    new Leaderboard(createCluster({ rootNodes: [] }), "a"), new Leaderboard(new Redis.Cluster([]), "a"),
    new Leaderboard(createSentinel({ name: "m", sentinelRootNodes: [] }), "a"), new Leaderboard(new Redis6(), "a"),
];

export async function good(): Promise<void> {
    const [result] = await board.submit("ann", 500, { operator: "INCR", once: "match:1", boards: ["arena", "week"] });
    const score: number | undefined = result?.record?.score;
    const coins: bigint[] = (await exact.range(0, 9)).map((record) => record.score);
    const ms: string[] = (await race.range("0", -1n, { rev: true })).map((record) => record.fields.ms);
    const records: BoardRecord[] = await board.around("ann", 5, { within: "country", where: { kind: ["pro", "pc"] } });
    const found: (BoardRecord<bigint> | null)[] = await exact.get(["ann", "bob"], { pct: true, since: "LAST" });
    await board.around(null, 5, { score: 450 });
    await board.add(new Map([["ann", [1, 2n]]]), { at: new Date(), hset: ["run:*", { replay: "r" }], tag: { country: "DE" } });
    await board.add(undefined, { packed: [["ann", 5n]] });
    await board.create({ fields: "FIELD ms 32 ASC", stale: [10, "DAY"], window: [24, "SUM"], period: "HOUR" });
    await board.leagueCreate({ fields: "FIELD points 22", room: 30, tiers: 4, up: 5, down: 5 });
    const written: number = await board.add({ ann: 5 });
    const rank: number | null | undefined = (await board.match([["ann", "bob"], "cid"], { ranks: [1, 1] }))[0]?.rankAfter;
    const deviation: string | null | undefined = (await race.get("ann", { rating: true }))[0]?.rating?.deviation;
    const rated: bigint | undefined = (await exact.rating(["ann"]))[0]?.rating;
    const last: Date | null = (await board.rate("ann", 1500, { deviation: 60 })).last;
    const chances: number[] = (await board.predict(["ann", "bob"])).chances;
    const since: Date | null = await board.revoked("ann");
    console.log(rank, deviation, rated, last, chances, since);
    const key: bigint | undefined = (await board.cuts(10)).find(({ rank }) => rank === 0)?.key;
    const placed = await board.addWithrank({ ann: "0.25" });
    const before: number | null | undefined = placed[0]?.before;
    for await (const { member, score: points } of board) {
        console.log(member.length, points.toFixed(), score, coins, ms, records, found, written, before, key);
    }
    for await (const { name, period } of board.boards({ unsettled: true })) {
        console.log(name, period?.end.getTime());
    }
    const stop = await board.subscribe({ list: 10, overtaken: "ann" }, (event: BoardEvent) => {
        console.log(event.type === "overtaken" ? event.by : event.type === "list" ? event.records[0]?.score : "");
    });
    await stop();
}

const player = new Player(redis, "arena", { numbers: "bigint", fields: ["points"], token: "a.b.c" });

export async function goodPlayer(): Promise<void> {
    const ticket: string = await player.beginRun({ for: 60 });
    const { counts, isHeld } = await player.endRun([500n], { tag: { country: "DE" } });
    const { record, held } = await player.own({ tags: true });
    const points: bigint | undefined = record?.fields.points;
    console.log(player.member, ticket, player.runTicket, counts, isHeld, points, held[0]?.values, (await player.near(5))[0]?.rank);
}

const split = new SplitBoard(createCluster({ rootNodes: [] }), "arena", { shards: 64, numbers: "bigint", fields: ["points"] });

export async function goodSplit(): Promise<void> {
    await split.create({ fields: "FIELD points 30 TIME 34 S", tag: { country: 8 } });
    const counts: boolean = await split.submit("ann", 500n, { operator: "BEST", tag: { country: "DE" } });
    const record: SplitRecord<bigint, "points"> | null = await split.rank("ann", { within: "country", comp: true });
    const points: bigint | undefined = (await split.page(1, { size: 50, where: { country: "DE" } })).records[0]?.fields.points;
    const [worst, best] = await split.quantile([0, "1"], { tags: true });
    const records: BoardRecord<bigint, "points">[] = await split.archive("2026-11-16").around("ann", 5);
    for await (const { key } of split) {
        console.log(key + 1n, counts, record?.key, points, worst?.rank, best?.tags, records, await split.count(null, "(5"));
    }
    console.log(shardOf("ann", 64), new BoardChanged() instanceof Error, await new SplitBoard(redis, "a").top(3));
}

export async function bad(): Promise<void> {
    // @ts-expect-error: the member is the token's
    player.member = "bob";
    // @ts-expect-error: there is no such option
    await player.endRun(500, { member: "bob" });
    // @ts-expect-error: no such option
    await board.submit("ann", 500, { operater: "INCR" });
    // @ts-expect-error: no such choice
    await board.submit("ann", 500, { operator: "ADD" });
    // @ts-expect-error: a value is missing
    await board.submit("ann");
    // @ts-expect-error: a value is no object
    await board.submit("ann", { score: 500 });
    // @ts-expect-error: teams are an array
    await board.match("ann");
    // @ts-expect-error: where has names
    await board.range(0, 9, { where: "DE" });
    // @ts-expect-error: two numbers
    await board.range(0, 9, { limit: 5 });
    // @ts-expect-error: BY is countBy
    await board.count(0, 9, { by: "country" });
    // @ts-expect-error: TIERS is needed
    await board.leagueCreate({ fields: "FIELD points 22", room: 30, up: 5, down: 5 });
    // @ts-expect-error: an age needs its unit
    await board.create({ stale: [10] });
    // @ts-expect-error: the layout has no such field
    console.log((await race.range(0, 9))[0]?.fields.points);
    // @ts-expect-error: no names were given
    console.log((await board.range(0, 9))[0]?.fields.points);
    // @ts-expect-error: these are bigints
    const scores: number[] = (await exact.range(0, 9)).map((record) => record.score);
    // @ts-expect-error: a member may have no record
    const [{ rank }] = await board.get("ann");
    // @ts-expect-error: no such kind of numbers
    console.log(scores, rank, new Leaderboard(redis, "a", { numbers: "float" }));
    // @ts-expect-error: no client
    console.log(new Leaderboard({}, "a"));
    // @ts-expect-error: events have no score
    await board.subscribe({ top: 10 }, (event) => event.score);
    // @ts-expect-error: a shard has its own boards only
    await split.submit("ann", 500, { boards: ["week"] });
    // @ts-expect-error: places are from 0 on, and the best is first
    await split.range(0, 9, { rev: true });
    // @ts-expect-error: these are bigints
    const split0: number | undefined = (await split.top(1))[0]?.score;
    // @ts-expect-error: shards are a number
    console.log(split0, new SplitBoard(redis, "a", { shards: ["a"] }));
}
