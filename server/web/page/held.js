// Results that a board with HOLD keeps without ranking them, the oldest first, for who may see them: docs/reference/holds.md.
// The page never writes (docs/web.md), so each result has the line that ranks it.
import * as api from "./api.js";
import { boardAddress } from "./address.js";
import { h, replace } from "./dom.js";
import { exact } from "./exact.js";
import { copy, hasAddress, nameText, strangersText } from "./names.js";
import { t, moment, wholeMoment } from "./text.js";

const STEP = 100; // results that are shown, and that more are shown at a time
const SHOWN_MAX = 1000;
const LOOK_MS = 5000;
const COLUMNS = ["member", "score", "heldWhy", "heldAt", "user", "heldFrom", "heldLine"];

// A name as a word of redis-cli: all that is not plain is escaped, so that the line shows what it does.
export function wordOf(name) {
    const text = name.key.replace(/%([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
    return /^[\w.:@{}~+-]+$/.test(text) ? text : `"${text.replace(/["\\]/g, "\\$&").replace(/[^ -~]/g, (byte) =>
        `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`)}"`;
}

export async function heldView(board, context, state) {
    const place = h("div.scrolls", { tabindex: "0", role: "region", "aria-label": t("held") });
    const note = h("p.faint", { role: "status" });
    const more = h("button", { type: "button", hidden: true, onclick: () => {
        wanted += STEP;
        draw().catch(context.refused);
    } }, t("heldMore"));
    let wanted = STEP;
    let drawn = "";
    let turn = 0; // of two that are read at a time the later one is shown

    async function draw() {
        const mine = ++turn;
        const found = await api.held(board.name, board.db, wanted);
        const text = JSON.stringify([found, state().member?.key]);
        if (mine !== turn || text === drawn) {
            return;
        }
        drawn = text;
        note.textContent = found.held.length === 0 ? t("heldNone") : "";
        place.hidden = found.held.length === 0;
        more.hidden = !found.isPart || wanted >= SHOWN_MAX;
        replace(place, h("table.plain", {}, h("caption.sr", {}, t("held")),
            h("thead", {}, h("tr", {}, COLUMNS.map((name) => h("th", { scope: "col" }, t(name))))),
            h("tbody", {}, found.held.map(rowOf))));
    }

    function rowOf({ id, name, values, reason, at, user, address }) {
        const line = `LB.APPROVE ${wordOf(board.name)} ${wordOf(name)} ${id}`;
        const shown = nameText(name, 40);
        const code = h("code", {}, line);
        return h("tr", { "data-id": id },
            h("td.name", {}, hasAddress(name) ? h("a", { "data-keep": true,
                href: boardAddress(board.name, { ...state(), member: name }) }, shown) : shown),
            h("td.values", {}, values.map((value, i) => exact(value, board.fields[i]?.scale)).join(" · ")),
            h("td", {}, t("heldReasons")[reason] ?? reason),
            h("td", {}, h("time", { datetime: at.toISOString(), title: wholeMoment(at) }, moment(at))),
            h("td", {}, nameText(user, 40)),
            h("td", {}, strangersText(address, 60)),
            h("td.command", {}, code, " ", h("button.small", { type: "button", "data-key": `copy ${id}`,
                "aria-label": `${t("copy")}: ${line}`, onclick: () => copy(code) }, t("copy"))));
    }

    await draw();
    const timer = setInterval(() => document.hidden || draw().catch(context.refused), LOOK_MS);
    return { element: h("div.held", {}, h("p.faint", {}, t("heldHint")), note, place, more), refresh: draw, close: () => {
        turn++;
        clearInterval(timer);
    } };
}
