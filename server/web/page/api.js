// What the server is asked: /api/v1, as docs/web.md describes it.
import { groupWords } from "./address.js";
import { isDots, nameOf } from "./names.js";

const ROOT = "/api/v1";
const RETRY_MS = 2000;
const HELD_STEP = 100;

export class ApiError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status; // 0: no answer
    }
}

async function ask(path, options = {}) {
    let reply;
    try {
        reply = await fetch(ROOT + path, { credentials: "same-origin", cache: "no-store", ...options,
            headers: { Accept: "application/json", ...options.headers } });
    } catch (error) {
        if (error.name === "AbortError") {
            throw error;
        }
        throw new ApiError(0, "no answer");
    }
    const text = await reply.text();
    let json = null;
    try {
        json = text === "" ? {} : JSON.parse(text);
    } catch {
        json = { error: text.slice(0, 500) };
    }
    if (!reply.ok) {
        throw new ApiError(reply.status, String(json.error ?? reply.statusText));
    }
    return json;
}

function query({ group, ...values }) {
    const parts = [...Object.entries(values).filter(([, value]) => value !== undefined && value !== null
        && value !== "" && value !== 0)
        .map(([name, value]) => `${name}=${encodeURIComponent(value)}`),
    ...groupWords(group).map((word) => `where=${word}`)];
    return parts.length > 0 ? `?${parts.join("&")}` : "";
}

const board = (name, db, rest = "", values = {}) => `/boards/${name.key}${rest}${query({ ...values, db })}`;

const date = (text) => (text ? new Date(text) : null);

// The name in json.member, say; its bytes are in json.member_base64 if they are no UTF-8.
const named = (json, field) => (json[field] === null || json[field] === undefined ? null
    : nameOf(json[field], json[`${field}_base64`]));

let avatars = null; // {field, origins}: which of the data is a picture's address, and where pictures may be

// null: it is no address of a picture that may be loaded. Nothing of this API is one.
function pictureOf(text) {
    if (!text || !URL.canParse(text, location.origin)) {
        return null;
    }
    const url = new URL(text, location.origin);
    return url.origin === location.origin && !url.pathname.startsWith("/api/")
        || avatars.origins.includes(url.origin) ? url.href : null;
}

// {data: [text or null], picture}: the first of the data is how the member is called; the picture is undefined
// where none are shown, and null for a member without one.
function dataOf(json, dataFields) {
    const fields = dataFields ?? Object.keys(json.data ?? {});
    const isPicture = (field) => field === avatars?.field;
    return { data: fields.filter((field) => !isPicture(field)).map((field) => json.data?.[field] ?? null),
        picture: fields.some(isPicture) ? pictureOf(json.data?.[avatars.field]) : undefined };
}

// {rating, deviation, games, won, drawn, lost, last: Date or null}, the first two as texts
const ratingOf = (json) => json && { ...json, last: date(json.last_at) };

// A row: {rank, name, scores: [text], reached: Date or null, data, picture, tags: those that were asked for, since: the
// rank on the board that was asked for, null or undefined: none; rating, if it was asked for}.
const rowOf = (json, dataFields) => ({ rank: json.rank, name: named(json, "member"), scores: json.fields,
    reached: date(json.reached_at), tags: json.tags ?? {}, since: json.since, rating: ratingOf(json.rating) ?? null,
    ...dataOf(json, dataFields) });

// The value of a row's tag, as a name; null: it has none.
export const valueOf = (row, tag) => (Object.hasOwn(row.tags, tag) ? named(row.tags, tag) : null);

const rowsOf = (rows, dataFields) => rows.map((row) => rowOf(row, dataFields));

const pageOf = (json) => ({ from: json.from, members: json.count, rows: rowsOf(json.rows, json.data_fields),
    frozen: json.frozen, opens: date(json.opens_at), closes: date(json.closes_at),
    rollsAt: date(json.rolls_at) });

const summaryOf = (json) => ({ name: named(json, "name"), layout: json.layout, members: json.count,
    period: json.period, cap: json.cap, limit: json.limit, stale: json.stale, settled: json.settled,
    frozen: json.frozen, opens: date(json.opens_at),
    closes: date(json.closes_at), rollsAt: date(json.rolls_at), archiveOf: named(json, "archive_of"),
    archives: (json.archives ?? []).map((archive) => named(archive, "name")), league: json.league ?? null,
    window: json.window ?? null, rating: json.rating ?? null, held: json.held ?? null });

export async function me() {
    const json = await ask("/me");
    avatars = json.avatars && { field: json.avatars.field,
        origins: json.avatars.origins.map((origin) => new URL(origin).origin) };
    return json;
}

export function login(user, password) {
    return ask("/login", { method: "POST", body: JSON.stringify({ user, password }),
        headers: { "Content-Type": "application/json" } });
}

export const logout = () => ask("/logout", { method: "POST" });

// cursor of the next part, null after the last one.
const cursorOf = (json) => (json.cursor === "0" ? null : json.cursor);

// The rooms of leagues are only in a list of those that match.
export async function boards(db, match, cursor, options) {
    const rooms = match ? "1" : "0";
    const json = await ask(`/boards${query({ match, cursor, count: 200, rooms, db })}`, options);
    return { cursor: cursorOf(json), boards: json.boards.map(summaryOf) };
}

// {starts, ends, list: [{tier, members, open_room}], room, tiers, up, down, idle}
export async function league(name, db) {
    const json = await ask(`/leagues/${name.key}${query({ db })}`);
    return { ...json, starts: date(json.starts_at), ends: date(json.ends_at) };
}

// tags: [{name: text, values: how many, top: [{value: name, members}] of the most frequent, without: members without
// a value, isPart: whether members of the first places alone are counted}]; as the group, but for the tag, has them
export async function boardInfo(name, db, group) {
    const json = await ask(board(name, db, "", { group }));
    return { ...summaryOf(json), db, fields: json.fields, time: json.time, tags: json.tags.map((tag) => ({
        name: tag.name, values: tag.values, without: tag.without, isPart: tag.places !== null,
        top: tag.top.map((one) => ({ value: named(one, "value"), members: one.count })) })) };
}

const window_ = ({ from, count, hash, data, group, since, rating }) =>
    ({ from, count, hash, data, group, since, rating: rating ? 1 : 0 });

export async function page(name, db, wanted) {
    return pageOf(await ask(board(name, db, "/page", window_(wanted))));
}

// null: this member is not on the board or in the group, or there is no such board any more.
export async function member({ name, db, tags, rating }, who, { hash, data, group }) {
    if (isDots(who)) {
        return findDots(name, db, who, { hash, data, group });
    }
    try {
        const json = await ask(board(name, db, `/members/${who.key}`,
            { hash, data, group, tags: tags.length > 0 ? 1 : 0, rating: rating ? 1 : 0 }));
        return { ...rowOf(json.row, json.data_fields), members: json.count,
            around: rowsOf(json.around, json.data_fields) };
    } catch (error) {
        if (error.status === 404) {
            return null;
        }
        throw error;
    }
}

// A member whose name no path can have: searched for, with the rows around its rank.
async function findDots(name, db, who, { hash, data, group }) {
    const found = (await search(name, db, who.text, "0", { group })).rows.find((row) => row.name.key === who.key);
    if (found === undefined) {
        return null;
    }
    const around = await page(name, db, { from: Math.max(0, found.rank - 5), count: 11, hash, data, group });
    const row = around.rows.find((one) => one.name.key === who.key) ?? found;
    return { ...row, members: around.members, around: around.rows };
}

// Also of a player who is not ranked; null: there is none, or this user may not know it.
export async function rating(name, db, who) {
    try {
        return ratingOf(await ask(board(name, db, `/members/${who.key}/rating`)));
    } catch (error) {
        if ([401, 403, 404].includes(error.status)) {
            return null;
        }
        throw error;
    }
}

// Members that begin with text, the one that is called exactly so first; by: "name": members whose shown name has
// a word that begins so, the best first.
export async function search(name, db, text, cursor, { by, hash, data, group, ...options } = {}) {
    const json = await ask(board(name, db, "/search", { q: text, by, count: 10, cursor, hash, data, group }), options);
    return { rows: rowsOf(json.rows, json.data_fields), cursor: cursorOf(json) };
}

// spacing: even, log, or auto: by decades if even bins would show one bar.
export async function histogram(name, db, spacing, { hash, data, group }) {
    const json = await ask(board(name, db, "/histogram", { buckets: 32, spacing, hash, data, group }));
    return { members: json.count, isLog: json.spacing === "log",
        bins: json.bins.map((bin) => ({ from: bin.from, to: bin.to, members: bin.count })),
        quantiles: json.quantiles.map((quantile) => ({ q: quantile.q, score: quantile.score,
            rank: quantile.rank, name: named(quantile, "member"), ...dataOf(quantile, json.data_fields) })) };
}

export async function archives(name, db, group) {
    const json = await ask(board(name, db, "/archives", { group }));
    return json.archives.map((archive) => ({ name: named(archive, "name"), members: archive.count,
        startsAt: date(archive.starts_at), rows: rowsOf(archive.rows, archive.data_fields) }));
}

// {held: [{id, name, values: [text], reason, at, user, address}], isPart}: so many at the most, the oldest first
export async function held(name, db, most) {
    const found = [];
    let cursor = null;
    do {
        const json = await ask(board(name, db, "/held", { cursor, count: Math.min(HELD_STEP, most - found.length) }));
        cursor = cursorOf(json);
        found.push(...json.held.map((each) => ({ id: each.id, name: named(each, "member"), values: each.values,
            reason: each.reason, at: date(each.at), user: named(each, "user"), address: each.address })));
    } while (cursor !== null && found.length < most);
    return { held: found, isPart: cursor !== null };
}

export const server = () => ask("/server");
export const history = () => ask("/server/history");
export const slowlog = (count) => ask(`/slowlog${query({ count })}`);

// Follow a stream of events until the function that is returned is called. A page that nobody looks at has
// no stream. on: {event name: function of its JSON}; told(true | false): whether there is a connection;
// refused(): the server does not give this stream, and it is asked for again later.
function follow(path, on, told, refused) {
    let source = null;
    let retry = 0;
    const close = () => {
        clearTimeout(retry);
        source?.close();
        source = null;
    };
    const open = () => {
        close();
        source = new EventSource(ROOT + path);
        source.onopen = () => told(true);
        source.onerror = () => {
            told(false);
            if (source.readyState === EventSource.CLOSED) { // it will not try again by itself
                retry = setTimeout(open, RETRY_MS);
                refused();
            }
        };
        for (const [event, take] of Object.entries(on)) {
            source.addEventListener(event, (message) => take(JSON.parse(message.data)));
        }
    };
    const look = () => (document.hidden ? close() : open());
    document.addEventListener("visibilitychange", look);
    look();
    return () => {
        document.removeEventListener("visibilitychange", look);
        close();
    };
}

// {take(page), told(isConnected), gone(error): there is no such board or tag any more, refused(error)}
export function followPage(name, db, wanted, { take, told, gone, refused }) {
    const again = () => page(name, db, wanted).then(take)
        .catch((error) => (error.status === 404 ? gone({ code: "not_found" }) : refused(error)));
    return follow(board(name, db, "/events", window_(wanted)), { page: (json) => take(pageOf(json)), gone },
        told, again);
}

export function followServer({ take, told, refused }) {
    return follow("/server/events", { server: take }, told, () => server().then(take).catch(refused));
}
