// One board over many keys, and so over many machines: SplitBoard. docs/scale/one-board.md says what it promises.
//
// A member's board is that of shard crc32(name) % shards, for ever. The whole is in the order of packed key (withkey;
// larger is better), then shard, then rank in the shard. Places are found by cuts:
//
//     shard 0   90 - - - 70 - - - 40 - - - 10       LB.CUTS: ranks and packed keys, of the whole shard first,
//     shard 1   95 - - - 80 - - - 30 - - - 20       then of what is left of it
//                            [ rank 6? ]            at most 3 + 1 members of each are before 40, at least 2 + 1
//
// What is read in the end is checked: records of each shard without a gap, and beyond them nothing that belongs in
// between. A round is one request for each shard, all sent at once. A place in the order is { key, shard, rank }, the key
// a bigint; that of a record has it, too.
"use strict";
const { Leaderboard } = require("./index.js");
const { text, entries, needWhole } = require("./words.js");
const { merged } = require("./replies.js");

// For tests, which make them small. cuts: of the first round, all shards together; of a later one four times as many at
// most. few: places from the top that are read without cuts. many: records that are read beside those asked for rather
// than another round taken.
const limits = { cuts: 2048, few: 128, many: 512 };
const CUTS_MAX = 10000; // that a shard takes
const WALKED = 5000; // records at a time, by whoever wants all
const ROUNDS_MAX = 40;
const PAD_MIN = 2; // records read beyond what is sought, on either side
const PAD_MAX = 1000;

class BoardChanged extends Error {
    constructor(name, sought) {
        super(`"${name}" changes too fast: no ${sought}`);
        this.name = "BoardChanged";
    }
}

const CRC32 = Uint32Array.from({ length: 256 }, (_, byte) => {
    for (let bit = 0; bit < 8; bit++) {
        byte = byte >>> 1 ^ (byte & 1 ? 0xedb88320 : 0);
    }
    return byte;
});

// crc32 as in zip and PNG, of the name in UTF-8.
function shardOf(member, shards) {
    const crc = Buffer.from(text(member)).reduce((sum, byte) => sum >>> 8 ^ CRC32[(sum ^ byte) & 255], -1);
    return (~crc >>> 0) % shards;
}

const sum = merged.integer;
const compare = (a, b) => a.key > b.key ? -1 : a.key < b.key ? 1 : a.shard - b.shard || a.rank - b.rank;
// Of every shard, its records and cuts as places.
const placed = (lists) => lists.map((records, shard) =>
    records.map((record) => ({ key: record.key, shard, rank: record.rank, record })));
const cutsOf = (lists) => lists.map((cuts, shard) =>
    cuts.map(({ rank, key }) => ({ key, shard, rank })));
const sizeOf = (cuts) => (cuts.at(-1)?.rank ?? -1) + 1;
// What is passed on to shards: of other options they would not know the whole.
const groupOf = ({ where, wherenot }) => ({ where, wherenot });
const shown = ({ where, wherenot, tags }) => ({ where, wherenot, tags, withkey: true });

// The arguments of count.
function scores(start, stop, options = {}) {
    const byscore = (start ?? stop ?? null) !== null;
    return [byscore ? start ?? "-inf" : null, byscore ? stop ?? "+inf" : null, { ...groupOf(options), byscore }];
}

// ceil(q * count): q is a decimal from 0 to 1, exactly.
function fromWorst(q, count) {
    const [, whole, decimals, exponent] = /^(\d*)\.?(\d*)(?:e-(\d{1,3}))?$/.exec(text(q)) ?? [];
    const unit = 10n ** BigInt((decimals ?? "").length + Number(exponent ?? 0));
    if (!(whole || decimals) || BigInt(whole + decimals) > unit) {
        throw new RangeError(`quantile: ${q}: decimals from 0 to 1 are allowed`);
    }
    return Number((BigInt(whole + decimals) * BigInt(count) + unit - 1n) / unit);
}

// The records at the places first .. first + count - 1, or as many as there are; null: others may be in between. lists: of
// each shard records without a gap; ends: is the last of them the shard's last?
function merge(lists, ends, first, count) {
    const heads = lists.flatMap((own) => own.length > 0 && own[0].rank > 0 ? [own[0]] : []);
    const tails = lists.flatMap((own, shard) => own.length > 0 && !ends[shard] ? [own[own.length - 1]] : []);
    const all = lists.flat().sort(compare);
    const begin = first - sum(heads.map((head) => head.rank));
    if (begin < 0 || (tails.length > 0 && begin + count > all.length)) {
        return null;
    }
    const wanted = all.slice(begin, begin + count);
    if (wanted.length > 0 && (heads.some((head) => compare(head, wanted[0]) > 0) ||
        tails.some((tail) => compare(tail, wanted[wanted.length - 1]) < 0))) {
        return null;
    }
    return wanted.map(({ record }, index) => Object.assign(record, { rank: first + index }));
}

// For the count places from first on. What is known of a shard: its members before first are better than all that are
// sought, those from end on are worse; end Infinity: not known.
class Search {
    constructor(first, count, shards) {
        Object.assign(this, { first, count, pad: PAD_MIN });
        this.begin(shards);
    }

    // At the beginning, or again.
    begin(shards) {
        this.isNarrow = shards === 1 || this.first + this.count <= limits.few;
        this.shards = Array.from({ length: shards }, () => ({
            first: shards === 1 ? this.first : 0, end: this.isNarrow ? this.first + this.count : Infinity }));
    }

    get left() {
        return sum(this.shards.map(({ first, end }) => end - first));
    }

    // Cuts of what is left of each shard.
    takeCuts(lists) {
        const before = this.left;
        const ends = this.shards.map(({ end }, shard) => end < Infinity ? end : sizeOf(lists[shard]));
        this.#narrow(lists, ends, Math.min(this.first + this.count, sum(ends)) - 1);
        this.isNarrow = this.left <= this.count + limits.many || this.left >= before;
    }

    // Leaves of each shard what may be at the places first .. last. Each cut is before all that follow in the order, so of
    // each shard it is known how many members are before it: at least, and at most.
    #narrow(lists, ends, last) {
        const ranks = lists.map((cuts, shard) => [...cuts.map(({ rank }) => rank), ends[shard]]);
        const passed = ranks.map(() => 0);
        const least = this.shards.map(({ first }) => first);
        const most = ranks.map(([rank]) => rank);
        let [leastSum, mostSum, low, high] = [sum(least), sum(most), [...least], null];
        for (const { shard, rank } of lists.flat().sort(compare)) {
            if (mostSum <= this.first) { // what is surely before this one is before all that are sought
                low = [...least];
                low[shard] = rank;
            }
            if (high === null && leastSum - least[shard] + rank >= last) {
                high = [...most];
                high[shard] = rank + 1;
            }
            if (high !== null && mostSum > this.first) {
                break;
            }
            const following = ranks[shard][++passed[shard]];
            leastSum += rank + 1 - least[shard];
            mostSum += following - most[shard];
            [least[shard], most[shard]] = [rank + 1, following];
        }
        this.shards = low.map((first, shard) => ({ first, end: Math.max(first, (high ?? ends)[shard]) }));
    }

    // Start and stop of the records to read in each shard: with some on either side, which show that nothing is missing.
    ranges() {
        const pad = this.shards.length > 1 ? this.pad : 0;
        return this.shards.map(({ first, end }) => [Math.max(0, first - pad), end - 1 + pad]);
    }

    // The records, from those of these ranges; null: the board has changed meanwhile.
    records(lists) {
        const ranges = this.ranges();
        if (lists.length === 1) {
            return lists[0].map(({ record }) => record);
        }
        const ends = ranges.map(([start, stop], shard) => lists[shard].length < stop + 1 - start);
        const isLost = ranges.some(([start], shard) => start > 0 && lists[shard].length === 0);
        return isLost ? null : merge(lists, ends, this.first, this.count);
    }

    // After a change: reads more on either side, or begins again.
    widen() {
        this.pad *= 8;
        if (this.pad > PAD_MAX) {
            this.pad = PAD_MIN;
            this.begin(this.shards.length);
        }
    }
}

class SplitBoard {
    #options;

    constructor(client, name, { shards = 16, archive, ...options } = {}) {
        needWhole("shards", shards);
        const end = archive === undefined ? "" : `@${archive}`;
        Object.assign(this, { client, name: String(name), shards, rounds: 0 });
        this.boards = Array.from({ length: shards }, (_, shard) =>
            new Leaderboard(client, `${name}:{${shard}}${end}`, options));
        this.#options = { ...options, shards };
    }

    // The board of an earlier period (PERIOD): archive("2026-11-16").
    archive(period) {
        return new SplitBoard(this.client, this.name, { ...this.#options, archive: period });
    }

    // The shard in which the member is, or would be. Ranks that it replies are those in the shard.
    boardOf(member) {
        return this.boards[shardOf(member, this.shards)];
    }

    // An error is thrown when all answers are there.
    async #ask(answers) {
        this.rounds += answers.length > 0;
        const settled = await Promise.allSettled(answers);
        const failed = settled.find(({ status }) => status === "rejected");
        if (failed) {
            throw failed.reason;
        }
        return settled.map(({ value }) => value);
    }

    #askAll(ask) {
        return this.#ask(this.boards.map(ask));
    }

    // Items by the shard of their member. Gives an array of [board, items].
    #byShard(items, memberOf) {
        const lists = new Map();
        for (const item of items) {
            const board = this.boardOf(memberOf(item));
            lists.set(board, lists.get(board) ?? []).get(board).push(item);
        }
        return [...lists];
    }

    // What was interrupted is completed by the same call again.
    async create(options) {
        const settled = await Promise.allSettled(this.boards.map((board) => board.create(options)));
        const errors = settled.flatMap(({ reason }) => reason ? [reason] : []);
        const isThere = ({ message }) => message.startsWith("BUSYKEY");
        if (errors.length === this.shards || !errors.every(isThere)) {
            throw errors.find((error) => !isThere(error)) ?? errors[0];
        }
        const infos = errors.length > 0 ? await this.#askAll((board) => board.info()) : [];
        const layouts = new Set(infos.map(({ layout }) => layout));
        if (layouts.size > 1) {
            throw new Error(`shards of "${this.name}" have different layouts: ${[...layouts].sort().join(", ")}`);
        }
    }

    // Does it count?
    async submit(member, field, options) {
        const [[result]] = await this.#ask([this.boardOf(member).submit(member, field, { ...options, boards: undefined })]);
        return result.counts;
    }

    // Each shard writes its own as a whole or not at all.
    async add(results, options) {
        const lists = this.#byShard(entries(results), ([member]) => member);
        return sum(await this.#ask(lists.map(([board, own]) => board.add(own, options))));
    }

    async tag(member, tag, options) {
        return (await this.#ask([this.boardOf(member).tag(member, tag, options)]))[0];
    }

    // With ZREM: in the module a `board` line must match the shards' names.
    async remove(member) {
        const lists = this.#byShard([member].flat(), (each) => each);
        return sum(await this.#ask(lists.map(([board, own]) =>
            board.run(board.key, "ZREM", false, "integer", [board.key, own]))));
    }

    async delete() {
        return sum(await this.#askAll((board) => board.run(board.key, "UNLINK", false, "integer", [board.key])));
    }

    // In one round, ranks in the shards. null: it is not there.
    async #records(members, options) {
        const found = members.map(() => null);
        const lists = this.#byShard(members.keys(), (place) => members[place]);
        const answers = await this.#ask(lists.map(([board, places]) =>
            board.get(places.map((place) => members[place]), options)));
        lists.forEach(([, places], i) => places.forEach((place, j) => {
            found[place] = answers[i][j];
        }));
        return found;
    }

    // The options with the group of `within` as where: a round, if there is one. null: the member is not in the group.
    async #within(member, { within = [], ...options }) {
        const names = [within].flat().map((name) => text(name).toLowerCase());
        if (names.length === 0) {
            return options;
        }
        const [record] = await this.#records([member], { ...groupOf(options), within, tags: true });
        const tags = new Map(Object.entries(record?.tags ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
        const others = entries(options.where ?? []).filter(([name]) => !names.includes(name.toLowerCase()));
        return record && { ...options, where: [...others, ...names.map((name) => [name, tags.get(name) ?? ""])] };
    }

    // The packed key that has in this shard all that is before the member above it: of lower shards those with the same
    // key, too.
    #at(member, key, shard, comp = false) {
        return shard < shardOf(member, this.shards) && !comp ? `=${key}` : key;
    }

    // The member's record; null: it is not there, or not in the group. Two rounds, three with within.
    async rank(member, options = {}) {
        const found = await this.#within(member, options);
        return found && (await this.get(member, found))[0];
    }

    // The records of many, in two rounds. comp: members with the same fields share the best rank.
    async get(member, { comp = false, ...options } = {}) {
        const members = [member].flat();
        const found = await this.#records(members, { ...shown(options), comp });
        const asked = this.boards.map((board, shard) => [board, [...members.keys()].filter((place) =>
            found[place] !== null && this.boardOf(members[place]) !== board), shard])
            .filter(([, places]) => places.length > 0);
        const counts = await this.#ask(asked.map(([board, places, shard]) => board.above(
            places.map((place) => this.#at(members[place], found[place].key, shard, comp)), { ...groupOf(options), comp })));
        asked.forEach(([, places], i) => places.forEach((place, j) => {
            found[place].rank += counts[i][j];
        }));
        return found;
    }

    // count records with the member in the middle, as LB.AROUND. Two rounds, three with within.
    async around(member, count, options = {}) {
        needWhole("count", count);
        const group = await this.#within(member, options);
        const [size, own] = [2 * (count + 1), shardOf(member, this.shards)];
        let [record] = group === null ? [] : await this.#records([member], shown(group));
        for (let round = 0; record && round < ROUNDS_MAX; round++) {
            const lists = placed(await this.#askAll((board, shard) => shard === own
                ? board.around(member, size, shown(group))
                : board.around(null, size, { ...shown(group), packed: this.#at(member, record.key, shard) })));
            const found = lists[own].find((each) => each.record.member === text(member));
            if (found?.key === record.key) { // else it has moved
                const before = lists.map((list) => list.filter((each) => compare(each, found) < 0).length);
                // The place is in the middle but where the board ends.
                const ends = lists.map((list, shard) => list.length < size || before[shard] > size / 2);
                const most = Math.min(sum(before) - Math.floor(count / 2), lists.flat().length - count);
                const first = Math.max(0, sum(lists.map(([head]) => head?.rank ?? 0)) + most);
                const records = merge(lists, ends, first, count);
                if (records !== null) {
                    return records;
                }
            }
            record = found?.record;
        }
        if (record) {
            throw new BoardChanged(this.name, `records around "${member}"`);
        }
        return [];
    }

    // The records at the places start .. stop, from 0 on. Three rounds; one near the top; four with 64 shards, or a billion
    // members.
    async range(start, stop, options = {}) {
        needWhole("start", start, 0);
        needWhole("stop", stop, 0);
        return stop < start ? [] : this.#find(new Search(start, stop - start + 1, this.shards), options);
    }

    async top(count, options) {
        needWhole("count", count);
        return this.range(0, count - 1, options);
    }

    // As Leaderboard's, which is made of range and count.
    page(number, options) {
        return Leaderboard.prototype.page.call(this, number, options);
    }

    records(options) {
        return Leaderboard.prototype.records.call(this, { batch: WALKED, ...options });
    }

    [Symbol.asyncIterator]() {
        return this.records();
    }

    // A record for each quantile from 0, the worst, to 1, the best, as LB.QUANTILE; null: nobody is there. Rounds as of a
    // page, together.
    async quantile(q, options = {}) {
        const quantiles = [q].flat();
        quantiles.forEach((each) => fromWorst(each, 0)); // throws
        const cuts = await this.#cuts(new Search(0, Infinity, this.shards), 1, options);
        const total = sum(cuts.map(sizeOf));
        return Promise.all(quantiles.map(async (each) => {
            const search = new Search(Math.max(0, total - Math.max(1, fromWorst(each, total))), 1, this.shards);
            if (!search.isNarrow) {
                search.takeCuts(cuts);
            }
            return (await this.#find(search, options, quantiles.length))[0] ?? null;
        }));
    }

    // A round: cuts of what is left. c of them in each shard leave about 2 / c of it, and limits.many may remain. searches:
    // how many there are at once.
    async #cuts({ left, shards }, searches, options) {
        const most = left === Infinity ? limits.cuts / this.shards : 4 * limits.cuts / (this.shards * searches);
        const count = Math.floor(Math.max(2, Math.min(CUTS_MAX, most, 3 * left / limits.many + 2)));
        return cutsOf(await this.#askAll((board, shard) => {
            const { first, end } = shards[shard];
            const span = end === Infinity ? [null, null] : [first, end - 1];
            return end === first ? [] : board.cuts(count, ...span, groupOf(options));
        }));
    }

    async #find(search, options, searches = 1) {
        for (let round = 0; round < ROUNDS_MAX; round++) {
            if (!search.isNarrow) {
                search.takeCuts(await this.#cuts(search, searches, options));
                continue;
            }
            const ranges = search.ranges();
            const records = search.records(placed(
                await this.#askAll((board, shard) => board.range(...ranges[shard], shown(options)))));
            if (records !== null) {
                return records;
            }
            search.widen();
        }
        throw new BoardChanged(this.name, `place ${search.first}`);
    }

    // How many members, or with scores from start to stop ("(5": without 5 itself). One round.
    async count(start, stop, options) {
        const words = scores(start, stop, options);
        return sum(await this.#askAll((board) => board.count(...words)));
    }

    // The same by the values of one tag or two, most first.
    async countBy(by, start, stop, options) {
        const [words, rows] = [scores(start, stop, options), new Map()];
        for (const { values, count } of (await this.#askAll((board) => board.countBy(by, ...words))).flat()) {
            const key = JSON.stringify(values);
            rows.set(key, { values, count: count + (rows.get(key)?.count ?? 0) });
        }
        const bytes = ({ values }) => Buffer.from(values.map((value) => value ?? "").join("\0"));
        return [...rows.values()].sort((a, b) => b.count - a.count || Buffer.compare(bytes(a), bytes(b)));
    }

    // Members below the first edge, between edges, and from the last one up. One round.
    async hist(edge, options = {}) {
        return merged.integers(await this.#askAll((board) => board.hist(edge, groupOf(options))));
    }
}

module.exports = { SplitBoard, BoardChanged, shardOf, limits };
