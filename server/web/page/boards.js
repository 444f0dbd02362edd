// All boards: found as one types, with the past periods folded under their board.
import * as api from "./api.js";
import { boardAddress, boardsAddress } from "./address.js";
import { h, replace } from "./dom.js";
import { hasAddress, isDots, nameText, wholeName } from "./names.js";
import { t, count, duration, moment, wholeMoment } from "./text.js";

const SEARCH_MS = 150;
const REFRESH_MS = 5000;
const SHOWN_MIN = 30; // boards that a walk brings before it waits for 'Show more'
const ASKED_MAX = 40; // requests of one walk: of many keys a pattern may match few

// What LB.LIST MATCH takes: the text anywhere in the name, its own stars and brackets as they are.
const pattern = (text) => (text === "" ? "" : `*${text.replace(/[\\*?[\]]/g, "\\$&")}*`);


// The window of times follows from the period.
const layoutOf = (board) => (board.period ? board.layout.replace(/ (START|END) \S+/, "") : board.layout);

export async function showBoards(state, context) {
    let match = state.match;
    let timer = 0;
    let asked = new AbortController();
    let cursor = null;
    let found = [];
    let isOver = false;
    const list = h("div.boards", { role: "list" });
    const status = h("p.faint", { role: "status" });
    const more = h("button", { type: "button", hidden: true, onclick: () => walk(found.length + SHOWN_MIN) },
        t("boardsMore"));
    const search = h("input", { type: "search", value: match, "data-key": "search", autocomplete: "off",
        spellcheck: "false", placeholder: t("boardsSearch"), "aria-label": t("boardsSearch"),
        oninput: () => {
            clearTimeout(timer);
            timer = setTimeout(() => {
                match = search.value.trim();
                history.replaceState(null, "", boardsAddress(state.db, match));
                begin().catch(context.refused);
            }, SEARCH_MS);
        } });

    async function walk(enough) {
        const { signal } = asked;
        for (let i = 0; i < ASKED_MAX && found.length < enough && cursor !== null; i++) {
            const part = await api.boards(state.db, pattern(match), cursor, { signal });
            if (signal.aborted) {
                return;
            }
            const names = new Set(found.map((board) => board.name.key));
            found.push(...part.boards.filter((board) => !names.has(board.name.key)));
            ({ cursor } = part);
        }
        draw();
    }

    async function begin() {
        asked.abort();
        asked = new AbortController();
        const before = found.length;
        found = [];
        cursor = "0"; // from the beginning
        await walk(Math.max(SHOWN_MIN, before));
    }

    function draw() {
        const opened = new Set(Array.from(list.querySelectorAll("details[open]"), (it) => it.dataset.board));
        const archives = new Map();
        for (const board of found.filter((one) => one.archiveOf !== null)) {
            const { key } = board.archiveOf;
            archives.set(key, [...archives.get(key) ?? [], board]);
        }
        const present = new Set(found.map((board) => board.name.key));
        const shown = found.filter((board) => board.archiveOf === null || !present.has(board.archiveOf.key))
            .sort((a, b) => a.name.text.localeCompare(b.name.text));
        replace(list, shown.map((board) => card(board, archives.get(board.name.key) ?? [],
            opened.has(board.name.key))));
        more.hidden = cursor === null;
        if (shown.length > 0) {
            status.textContent = cursor === null ? t("boardsFound", shown.length) : "";
        } else {
            replace(status, match === "" ? [t("boardsNone"), " ", t("boardsNoneHint"), " ",
                h("code", {}, "ZADD arena 100 ann")] : t("boardsNoMatch", match));
        }
    }

    function card(board, archives, isOpen) {
        const link = (one) => (hasAddress(one.name) && !isDots(one.name)
            ? h("a", { href: boardAddress(one.name, { db: state.db }) }, nameText(one.name))
            : nameText(one.name));
        archives.sort((a, b) => b.name.text.localeCompare(a.name.text));
        return h("div.card", { role: "listitem" },
            h("div.card-main", {},
                h("h2", {}, link(board), wholeName(board.name)),
                h("p.faint.small.layout", { title: t("layout") }, layoutOf(board)),
                h("p.card-facts", {},
                    board.frozen ? h("span.tag", {}, t("frozen")) : null,
                    board.opens && board.opens > Date.now()
                        ? h("span.tag", {}, t("opensAt", moment(board.opens))) : null,
                    board.archiveOf ? h("span.tag", {}, t("archiveOf"), " ", nameText(board.archiveOf, 40)) : null,
                    board.period ? h("span.tag", {}, t("every")[board.period.unit.toLowerCase()]
                        ?? board.period.unit) : null,
                    board.rollsAt ? h("time.faint", { datetime: board.rollsAt.toISOString(),
                        title: wholeMoment(board.rollsAt) },
                    t("rollsIn", duration(board.rollsAt - Date.now()))) : null)),
            h("p.card-count", {}, h("b", {}, count(board.members)), " ",
                h("span", {}, t("members", board.members).replace(count(board.members), "").trim())),
            archives.length === 0 ? null : h("details", { open: isOpen, "data-board": board.name.key },
                h("summary", { "data-key": `periods ${board.name.key}` }, t("pastPeriods", archives.length)),
                h("ul", {}, archives.map((archive) => h("li", {},
                    link(archive),
                    h("span.faint", {}, t("members", archive.members)))))));
    }

    await begin();
    const refresh = setInterval(() => {
        if (!document.hidden && !isOver && document.activeElement !== search) {
            begin().catch(context.refused);
        }
    }, REFRESH_MS);
    return {
        title: t("boardsTitle"),
        element: h("section", {}, h("div.title", {}, h("h1", {}, t("boardsTitle"),
            state.db > 0 ? h("span.tag", {}, t("database", state.db)) : null),
        h("div.search", {}, search)), status, list, more),
        close: () => {
            isOver = true;
            clearTimeout(timer);
            clearInterval(refresh);
            asked.abort();
        },
    };
}
