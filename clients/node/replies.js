// From replies to records. RESP2 and RESP3, and both clients, differ in what a map is (an array of names and values, a
// Map, an object) and in whether a number is text.
"use strict";
const shapes = require("./shapes.js");

const isNothing = (reply) => reply === null || reply === undefined;
const integer = (reply) => isNothing(reply) ? null : Number(reply);
const date = (reply) => isNothing(reply) ? null : new Date(Number(reply));
const boolean = (reply) => Number(reply) === 1;

function pairs(reply) {
    if (reply instanceof Map) {
        return [...reply];
    }
    return Array.isArray(reply) ? reply.flatMap((name, i) => i % 2 ? [] : [[name, reply[i + 1]]]) : Object.entries(reply);
}
const object = (reply) => isNothing(reply) ? null : Object.fromEntries(pairs(reply));
const camel = (name) => name.replace(/-./g, (end) => end[1].toUpperCase());

// The number that a text says, or an error: never another one.
const numbers = {
    number(text) {
        const value = Number(text);
        const isExact = /^-?\d+$/.test(text) ? Number.isSafeInteger(value)
            : text.replace(/\D/g, "").replace(/^0+/, "").length <= 15;
        if (!isExact) {
            throw new RangeError(`${text} has more digits than a number holds: read it with numbers: "bigint" or "string"`);
        }
        return value;
    },
    bigint(text) {
        if (!/^-?\d+$/.test(text)) {
            throw new RangeError(`${text} is no whole number: read it with numbers: "number" or "string"`);
        }
        return BigInt(text);
    },
    string: (text) => text,
};

// A value as text. What a client has rounded already is an error, too.
function exactText(reply) {
    if (typeof reply === "number" && Number.isInteger(reply) && !Number.isSafeInteger(reply)) {
        throw new RangeError(`${reply} was rounded by the client`);
    }
    return String(reply);
}

// A property whose error is thrown by whoever reads it. So a write that was done never looks as if it had failed.
function define(record, name, make) {
    try {
        record[name] = make();
    } catch (error) {
        Object.defineProperty(record, name, {
            enumerable: true,
            get() {
                throw error;
            },
        });
    }
}

// Values of a record: score, values, and (if the board's fields have been named) fields.
function defineValues(record, board, replies) {
    const convert = (reply) => numbers[board.numbers](exactText(reply));
    define(record, "score", () => convert(replies[0]));
    define(record, "values", () => replies.map(convert));
    if (board.fields) {
        define(record, "fields", () =>
            Object.fromEntries(board.fields.map((name, i) => [name, convert(replies[i])])));
    }
    return record;
}

function data(reply, names) {
    return isNothing(reply) || !names ? object(reply)
        : Object.fromEntries(names.map((name, i) => [name, reply[i] ?? null]));
}

// [rating, deviation, volatility, games, won, drawn, lost, last] as properties of what it belongs to. Numbers are converted as
// values are; those that the system has not are null.
function defineRating(found, board, [rating, deviation, volatility, games, won, drawn, lost, last]) {
    defineNumbers(found, board, { rating, deviation, volatility });
    return Object.assign(found, {
        games: integer(games), won: integer(won), drawn: integer(drawn), lost: integer(lost), last: date(last),
    });
}

function defineNumbers(found, board, replies) {
    for (const [name, reply] of Object.entries(replies)) {
        define(found, name, () => isNothing(reply) ? null : numbers[board.numbers](exactText(reply)));
    }
    return found;
}

const rated = (reply, board) => isNothing(reply) ? null
    : defineRating({ member: reply[0], rank: integer(reply[1]) }, board, reply.slice(2));

// [member, rank, time, values ..., percent, key, tags, data, rank on another board, rating], the last six if they were asked
// for.
function record(reply, board, asked = {}) {
    if (isNothing(reply)) {
        return null;
    }
    const rest = [...reply];
    const end = {};
    if (asked.rating) {
        const rating = rest.pop();
        end.rating = isNothing(rating) ? null : defineRating({}, board, rating);
    }
    if (!isNothing(asked.since)) {
        end.since = integer(rest.pop());
    }
    if (!isNothing(asked.data)) {
        end.data = data(rest.pop(), asked.fields);
    }
    if (asked.tags) {
        end.tags = object(rest.pop());
    }
    if (asked.withkey) {
        end.key = BigInt(rest.pop());
    }
    if (asked.pct) {
        end.percent = Number(rest.pop());
    }
    const [member, rank, time, ...values] = rest;
    return Object.assign(defineValues({ member, rank: integer(rank), time: date(time) }, board, values), end);
}

// By the letters of shapes.js.
const converts = { s: String, i: Number, b: boolean, d: date, "#": exactText };

// The maps of LB.INFO and the like, with the maps in them. What a newer server says besides comes as it is.
function described(reply, shape) {
    if (isNothing(reply) || shape === undefined) {
        return reply ?? null;
    }
    if (typeof shape === "string") {
        return converts[shape](reply);
    }
    if (Array.isArray(shape)) {
        return reply.map((each) => described(each, shape[0]));
    }
    const found = {};
    for (const [name, value] of pairs(reply)) {
        define(found, camel(name), () => described(value, shape[name]));
    }
    return found;
}

const records = (reply, board, asked) => reply.map((each) => record(each, board, asked));
const step = (reply, item) => ({ cursor: BigInt(reply[0]), items: reply[1].map(item) });

// With withrepeat: did the id of once come before?
const told = (repeated) => isNothing(repeated) ? {} : { repeated: boolean(repeated) };

// The last element of a place: a word of LB.LEAGUE GET, or what withrepeat asks LB.LEAGUE ADD for.
const outlook = (last) => ["up", "stay", "down"].includes(String(last)) ? { outlook: String(last) }
    : { outlook: null, ...told(last) };

// What a reply becomes, by its form as docs/write calls it. asked: the command's options.
const replies = {
    ok: () => undefined,
    integer,
    flag: boolean,
    integers: (reply) => reply.map(integer),
    text: String,
    board: (reply) => described(reply, shapes.Board),
    league: (reply) => described(reply, shapes.League),
    records,
    recordsOrNone: records,
    placed: (reply, board) => reply.map(([each, before, repeated]) =>
        ({ record: record(each, board), before: integer(before), ...told(repeated) })),
    results: (reply, board, { boards = [board.key] }) => reply.map(([each, before, counts, repeated], i) =>
        ({ board: boards[i], record: record(each, board), before: integer(before), counts: boolean(counts),
            ...told(repeated) })),
    boardRecords: (reply, board) => reply.map(([name, each]) => ({ board: name, record: record(each, board) })),
    leaguePlace: (reply, board) => isNothing(reply) || isNothing(reply[0]) ? null
        : { tier: integer(reply[0]), room: integer(reply[1]), record: record(reply[2], board), other: integer(reply[3]),
            ...outlook(reply[4]) },
    counts: (reply) => reply.map((row) => ({ values: row.slice(0, -1), count: integer(row[row.length - 1]) })),
    cuts: (reply) => reply.map(([rank, key]) => ({ rank: integer(rank), key: BigInt(key) })),
    rated,
    ratedEach: (reply, board) => reply.map((each) => rated(each, board)),
    played: (reply, board) => reply.map(([member, before, after, deviation, games, rankBefore, rankAfter]) =>
        Object.assign(defineNumbers({ member }, board, { before, after, deviation }),
            { games: integer(games), rankBefore: integer(rankBefore), rankAfter: integer(rankAfter) })),
    prediction: ([chances, quality]) => ({ chances: chances.map(Number), quality: Number(quality) }),
    time: date,
    tagsEach: (reply) => reply.map(object),
    boards: (reply) => step(reply, (each) => described(each, shapes.ListedBoard)),
    held: (reply) => step(reply, ([id, member, values, reason, at, user, address]) =>
        ({ id: BigInt(id), member, values: values.map(String), reason, at: date(at), user, address })),
    ownRecords: ([records, held], board, asked) => ({
        records: records.map((each) => record(each, board, asked)),
        held: held.map(([id, values, at]) => ({ id: BigInt(id), values: values.map(String), at: date(at) })),
    }),
    bans: (reply) => step(reply, ([member, pattern, until, shadow]) =>
        ({ member, pattern, until: date(until), shadow: Number(shadow) === 1 })),
};

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
// What all nodes of a cluster have answered, as one answer.
const merged = {
    integer: sum,
    flag: (flags) => flags.some(Boolean),
    integers: (rows) => rows[0].map((_, column) => sum(rows.map((row) => row[column]))),
    boardRecords: (lists) => lists.flat(),
};

module.exports = { replies, merged, defineValues, numbers };
