// A league and its rooms: docs/contests.md#leagues.
//
//     weekly             a league's board, {weekly}:3:17 room 17 of its tier 3, {weekly}:3:17@2026-11-16 a past one
import * as api from "./api.js";
import { nameOf } from "./names.js";

const TIER = 0;
const ROOM = 2; // among the fields of a league

// What the names of a league's rooms begin with: a name without a tag gets braces.
const prefixOf = (league) => (/\{[^}]+\}/.test(league) ? league : `{${league}}`);

// The room of a row of a league's board; null: it has none.
export function roomName(board, row) {
    const [tier, room] = [row.scores[TIER], row.scores[ROOM]];
    return !board.league || board.name.bytes || room === "0" ? null
        : nameOf(`${prefixOf(board.name.text)}:${tier}:${room}`);
}

// {name, tier, room, rules} of the league to which a board belongs; null: to none.
export async function leagueOf(board) {
    const parts = board.name.bytes ? null : /^(.*\{[^}]+\}.*):([1-9]\d*):([1-9]\d*)(@[^@]*)?$/s.exec(board.name.text);
    if (!parts) {
        return null;
    }
    const [, prefix, tier, room] = parts;
    const names = /^\{[^}]*\}$/.test(prefix) ? [prefix, prefix.slice(1, -1)] : [prefix];
    for (const name of names.map((text) => nameOf(text))) {
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
