// A league and its rooms: docs/reference/leagues.md.
//
//     weekly             a league's board, {weekly}:3:17 room 17 of its tier 3, {weekly}:3:17@2026-11-16 a past one
//     {weekly}:rooms     an empty board: what its rooms are like
import * as api from "./api.js";
import { boardAddress } from "./address.js";
import { h, focusOn, replace } from "./dom.js";
import { exact } from "./exact.js";
import { nameOf } from "./names.js";
import { Rows } from "./rows.js";
import { t, dayOf } from "./text.js";

const [TIER, PERIOD, ROOM] = [0, 1, 2]; // among the fields of a league
const PERIODS_BEGIN = Date.UTC(2020, 0, 1); // periods are counted from there, in hours
const ROOMS = 6; // of a tier that are shown at a time
const ROOMS_BEGIN = 12; // of all tiers that are shown at first: each is read for itself
const ROWS_MAX = 200;
const REFRESH_MS = 5000;
const PAUSE = 20; // times as long as reading takes nothing is read again

// What the names of a league's rooms begin with: a name without a tag gets braces.
const prefixOf = (league) => (/\{[^}]+\}/.test(league) ? league : `{${league}}`);

const partsOf = (name) => (name.bytes ? null
    : /^(.*\{[^}]+\}.*):(?:([1-9]\d*):([1-9]\d*)(@[^@]*)?|rooms)$/s.exec(name.text));

// By the name of a room, or of what rooms are like: how its league may be called; none: it is neither.
export function leagueNames(name) {
    const parts = partsOf(name);
    return parts === null ? [] : [parts[1], ...(/^\{[^}]*\}$/.test(parts[1]) ? [parts[1].slice(1, -1)] : [])]
        .map((text) => nameOf(text));
}

const nameOfRoom = (league, tier, room) => (league.bytes ? null
    : nameOf(`${prefixOf(league.text)}:${tier}:${room}`));

// The room of a row of a league's board; null: it has none.
export function roomName(board, row) {
    return !board.league || row.scores[ROOM] === "0" ? null
        : nameOfRoom(board.name, row.scores[TIER], row.scores[ROOM]);
}

// A league has the period of its rooms, and thereby their zone.
export async function learnPeriod(board) {
    if (board.league && !board.name.bytes) {
        const like = await api.boardInfo(nameOf(`${prefixOf(board.name.text)}:rooms`), board.db, []).catch(() => null);
        board.roomsPeriod = like?.period ?? null;
    }
}

// A time when a period of a league begins or ends.
export const dayIn = ({ roomsPeriod }, date) => dayOf(date, roomsPeriod?.tz, roomsPeriod?.unit);

// A field of a row as people read it: of a league the period is a date.
export function fieldText(board, index, text) {
    return board.league && index === PERIOD ? (text === "0" ? "–"
        : dayIn(board, new Date(PERIODS_BEGIN + Number(text) * 3600000)))
        : board.league && index === ROOM && text === "0" ? "–" : exact(text, board.fields[index].scale);
}

// {name, tier, room, rules} of the league to which a board belongs; null: to none.
export async function leagueOf(board) {
    const [, , tier, room] = partsOf(board.name) ?? [];
    for (const name of tier ? leagueNames(board.name) : []) {
        const found = await api.boardInfo(name, board.db, []).catch(() => null);
        if (found?.league) {
            return { name, tier: Number(tier), room: Number(room), rules: found.league };
        }
    }
    return null;
}

// Where a place in a room leads: "up", "down", or null.
export function wayOf({ tier, rules }, rank, members) {
    return rank < rules.up ? (tier < rules.tiers ? "up" : null)
        : members - rank <= rules.down && tier > 1 ? "down" : null;
}

// Who goes where from the rooms of a tier, in words.
function waysOf({ tier }, rules) {
    return [tier < rules.tiers ? t("tierUp", rules.up) : null, tier > 1 ? t("tierDown", rules.down) : null]
        .filter(Boolean).join(", ") || t("tierStay");
}

// The tiers, the highest first, each with its rooms: who is in them, and who goes up or down. state: of the address;
// told: the league, whenever it was read.
export async function leagueView(board, context, state, told) {
    const place = h("div.league", {});
    const rooms = new Map(); // by the tier: which are shown, from 0 on
    const opened = new Set(); // tiers whose rooms are shown
    const lists = new Map(); // by the room's name: its rows
    let league = await api.league(board.name, board.db);
    let like = null; // a room: all have the same layout
    let timer = 0;
    let isOver = false;

    function rowsOf(name, tier) {
        if (!lists.has(name.key)) {
            const entry = { members: 0, rows: null };
            entry.rows = new Rows(like, { dense: true, selected: state().member?.key,
                medals: false, caption: t("roomNumber", name.text.split(":").at(-1)),
                link: (member) => boardAddress(name, { db: board.db, member }),
                way: (row) => wayOf({ tier, rules: league }, row.rank, entry.members) });
            lists.set(name.key, entry);
        }
        return lists.get(name.key);
    }

    async function roomOf(tier, number) {
        const name = nameOfRoom(board.name, tier, number);
        const page = await api.page(name, board.db, { from: 0, count: Math.min(ROWS_MAX, league.room) })
            .catch((error) => (error.status === 404 ? null : Promise.reject(error)));
        if (page === null) {
            return null; // nobody has come into it again since the period began
        }
        like ??= await api.boardInfo(name, board.db, []);
        const entry = rowsOf(name, tier);
        entry.members = page.members;
        entry.rows.update(page.rows);
        return h("section.room", {}, h("h3", {}, h("a", { href: boardAddress(name, { db: board.db }) },
            t("roomNumber", number)), " ", h("span.faint.small", {}, page.rows.length < page.members
            ? t("shows", 1, page.rows.length, page.members) : t("members", page.members))), entry.rows.element);
    }

    async function tierOf(tier) {
        const last = Math.max(0, Math.ceil(tier.open_room / ROOMS) - 1);
        const at = Math.min(rooms.get(tier.tier) ?? 0, last);
        const isOpen = opened.has(tier.tier);
        const numbers = Array.from({ length: isOpen ? ROOMS : 0 }, (_, i) => at * ROOMS + i + 1)
            .filter((number) => number <= tier.open_room);
        const found = (await Promise.all(numbers.map((number) => roomOf(tier.tier, number)))).filter(Boolean);
        // At an end its button is off: the focus goes to the other one.
        const step = (name, to, other) => h("button.small", { type: "button", "data-key": `${name} ${tier.tier}`,
            disabled: to < 0 || to > last, onclick: () => {
                rooms.set(tier.tier, to);
                draw().then(() => document.activeElement === document.body
                    && focusOn(place, `${other} ${tier.tier}`)).catch(context.refused);
            } }, t(name));
        return h("section.tier", { "data-tier": tier.tier }, h("div.tier-head", {}, h("h2", {}, t("tier", tier.tier)),
            h("span.tag", {}, t("members", tier.members)),
            tier.open_room > 0 ? h("span.tag", {}, t("rooms", tier.open_room)) : null,
            h("span.faint.small", {}, waysOf(tier, league)),
            tier.open_room > 0 ? h("button.small", { type: "button", "data-key": `rooms ${tier.tier}`,
                "aria-expanded": String(isOpen), onclick: () => {
                    opened[isOpen ? "delete" : "add"](tier.tier);
                    draw().catch(context.refused);
                } }, t(isOpen ? "roomsHide" : "roomsShow")) : null,
            last > 0 && isOpen ? h("div.pager", {}, h("span.faint.small", {}, t("roomsShown", numbers[0], numbers.at(-1))),
                step("previous", at - 1, "next"), step("next", at + 1, "previous")) : null),
        found.length > 0 ? h("div.rooms", {}, found) : !isOpen && tier.open_room > 0 ? null
            : h("p.faint", {}, t(tier.members === 0 ? "tierEmpty" : "tierIdle")));
    }

    // Tiers that nobody is in are named together, so that 255 of them are no long page.
    async function draw() {
        const tiers = league.list.filter((tier) => tier.members > 0);
        const empty = league.list.length - tiers.length;
        const drawn = await Promise.all(tiers.map(tierOf));
        if (!isOver) {
            replace(place, drawn, empty > 0 ? h("p.faint", {}, t("tiersEmpty", empty)) : null);
        }
    }

    async function refresh() {
        for (const { rows } of lists.values()) {
            rows.select(state().member?.key);
        }
        league = await api.league(board.name, board.db);
        told(league);
        await draw();
    }

    function plan(begin) {
        timer = setTimeout(async () => {
            const next = Date.now();
            if (!document.hidden) {
                await refresh().catch(context.refused);
            }
            if (!isOver) {
                plan(next);
            }
        }, Math.max(REFRESH_MS, PAUSE * (Date.now() - begin)));
    }

    let left = ROOMS_BEGIN;
    for (const { tier, open_room: count } of league.list) {
        if (left > 0 && count > 0) {
            opened.add(tier);
            left -= Math.min(ROOMS, count);
        }
    }
    told(league);
    const begin = Date.now();
    await draw();
    plan(begin);
    return { element: place, refresh, close: () => {
        isOver = true;
        clearTimeout(timer);
    } };
}
