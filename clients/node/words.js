// The words of a request, from what a method is given. What is not given has none.
"use strict";

const isMissing = (value) => value === undefined || value === null;

// An argument as text, exactly.
function text(value) {
    if (value instanceof Date) {
        return String(value.getTime());
    }
    if (typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)) {
        throw new RangeError(`${value} is beyond what a number holds exactly: give a bigint or a string`);
    }
    if (!["string", "number", "bigint"].includes(typeof value)) {
        throw new TypeError(`${typeof value} is no argument: a string, a number, a bigint or a Date is`);
    }
    return String(value);
}

const entries = (map) => typeof map[Symbol.iterator] === "function" ? [...map] : Object.entries(map);

// A value's parts, each an array of words: one, several, a map's names and values, a map's values and members.
const one = (value) => [[value]];
const several = (value) => [value].flat().map((each) => [each]);
const pairs = (value) => entries(value).flatMap(([name, each]) => [each].flat().map((single) => [name, single]));
const results = (value) => entries(value).map(([member, each]) => [...[each].flat(), member]);
// Teams: the number of the members of each, and they.
const groups = (value) => {
    if (!Array.isArray(value)) {
        throw new TypeError("teams are an array: of members, or of arrays of members");
    }
    return value.map((each) => [[each].flat().length, ...[each].flat()]);
};
const counted = (part) => (value) => {
    const found = part(value);
    return [[found.length], ...found];
};

// Behind a word that is always the same.
const after = (word, part) => (value) => [[word], ...part(value)];

// A value that has to be given. Without it the next one would take its place.
function needed(name, value) {
    if (isMissing(value)) {
        throw new TypeError(`${name} is needed`);
    }
    return value;
}

// The token, if there is one, and the value; with several parts the value is an array of theirs.
function values(value, token, ...parts) {
    if (isMissing(value)) {
        return [];
    }
    const found = parts.length === 1 ? parts[0](value) : parts.flatMap((part, i) => part(value[i]));
    return [...token ? [token] : [], ...found.flat()];
}

// The token before each.
const each = (value, token, part) => isMissing(value) ? [] : part(value).flatMap((words) => [token, ...words]);

const flag = (value, token) => value ? [token] : [];

// In the syntax of the command: one text with blanks, or an array.
const words = (value, token) => isMissing(value) ? []
    : [...token ? [token] : [], ...Array.isArray(value) ? value : text(value).split(/ +/)];

// Options that nobody knows are mistakes.
function known(options, names) {
    for (const name of Object.keys(options ?? {})) {
        if (!names.includes(name)) {
            throw new TypeError(`${name} is no option: ${names.join(", ")}`);
        }
    }
}

// Of these one may be given, or must.
function alternatives(values, isNeeded) {
    const given = Object.keys(values).filter((name) => !isMissing(values[name]) && values[name] !== false);
    if (given.length > 1) {
        throw new TypeError(`${given.join(" and ")} exclude each other`);
    }
    if (isNeeded && given.length === 0) {
        throw new TypeError(`one of these is needed: ${Object.keys(values).join(", ")}`);
    }
}

function needWhole(name, value, from = 1) {
    if (!Number.isSafeInteger(value) || value < from) {
        throw new RangeError(`${name}: ${value}: a whole number from ${from} on is allowed`);
    }
}

module.exports = {
    text, needed, entries, one, several, pairs, results, groups, counted, after, values, each, flag, words, known, alternatives,
    needWhole,
};
