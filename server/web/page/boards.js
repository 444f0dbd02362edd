// All boards in the order of their names, found as one types; past periods are folded under their board, and what
// belongs to a league's rooms under the league.
import * as api from "./api.js";
import { boardAddress, boardsAddress } from "./address.js";
import { h, replace } from "./dom.js";
import { leagueNames } from "./league.js";
import { hasAddress, isDots, nameOf, nameText, plainName, wholeName } from "./names.js";
import { t, count, duration, language, moment, wholeMoment } from "./text.js";

const SEARCH_MS = 150;
const REFRESH_MS = 5000;
const PAUSE = 20; // times as long as reading the list takes it is not read again
const SHOWN = 60; // on one page
const ASKED_MAX = 150; // requests of one walk, of 200 boards each

// What LB.LIST MATCH takes: the text anywhere in the name, its own stars and brackets as they are.
const pattern = (text) => (text === "" ? "" : `*${text.replace(/[\\*?[\]]/g, "\\$&")}*`);

// "FIELD lap 33 ASC SCALE 3 TIME 31 S TAG country 8" in words.
export function layoutWords(layout) {
    const parts = layout.split(/ (?=(?:FIELD|TIME|TAG) )/).map((part) => part.split(" "));
    const named = (kind) => parts.filter(([word]) => word === kind);
    const [time] = named("TIME");
    const tags = named("TAG").map(([, name]) => name);
    return [t("rankedBy", named("FIELD").map(([, name, , ...rest]) => ({ name, isAscending: rest.includes("ASC") }))),
        time ? t(time.includes("LATEST") ? "tieLatest" : "tieFirst") : null,
        tags.length > 0 ? t("groupsBy", tags) : null].filter(Boolean).join(" · ");
}

// Under which of them a board is folded; null: under none.
function parentOf(board, found, owners) {
    const owner = owners.get(board.name.key)
        ?? leagueNames(board.name).find(({ key }) => found.get(key)?.league)?.key;
    return owner !== undefined && owner !== board.name.key ? found.get(owner) ?? null : null;
}

// [{board, inside: [board, ...]}, ...] in their order, of what was found by its key.
function arrange(found) {
    const { compare } = new Intl.Collator(language(), { numeric: true });
    const byName = (a, b) => compare(a.name.text, b.name.text) || (a.name.key < b.name.key ? -1 : 1);
    const owners = new Map([...found.values()].flatMap((board) => board.archives.map(({ key }) =>
        [key, board.name.key])));
    const inside = new Map();
    const shown = [];
    for (const board of [...found.values()].sort(byName)) {
        let parent = parentOf(board, found, owners);
        if (parent === null) {
            shown.push(board);
            continue;
        }
        parent = parentOf(parent, found, owners) ?? parent; // the archive of a room is its league's
        inside.set(parent.name.key, [...inside.get(parent.name.key) ?? [], board]);
    }
    return shown.map((board) => ({ board, inside: inside.get(board.name.key) ?? [] }));
}

export async function showBoards(state, context) {
    let { match, place } = state;
    let timer = 0;
    let next = 0;
    let asked = new AbortController();
    let shown = []; // the newest list that was read to its end
    let isPart = 0; // how many were read, if there are more
    let isOver = false;
    const list = h("div.boards", { role: "list" });
    const status = h("p.faint", { role: "status" });
    const pager = h("nav.pager", { "aria-label": t("pages") });
    const search = h("input", { type: "search", value: match, "data-key": "search", autocomplete: "off",
        spellcheck: "false", placeholder: t("boardsSearch"), "aria-label": t("boardsSearch"),
        oninput: () => {
            clearTimeout(timer);
            timer = setTimeout(() => {
                match = search.value.trim();
                place = 1;
                history.replaceState(null, "", boardsAddress(state.db, match));
                read().catch(context.refused);
            }, SEARCH_MS);
        } });

    // All of the list; what is shown stays until then.
    async function read() {
        asked.abort();
        asked = new AbortController();
        clearTimeout(next);
        const { signal } = asked;
        const begin = Date.now();
        const found = new Map();
        let cursor = "0";
        for (let i = 0; i < ASKED_MAX && cursor !== null; i++) {
            const part = await api.boards(state.db, pattern(match), cursor, { signal });
            if (signal.aborted) {
                return;
            }
            part.boards.forEach((board) => found.set(board.name.key, board));
            ({ cursor } = part);
            if (shown.length === 0 && cursor !== null) {
                status.textContent = t("boardsReading", found.size);
            }
        }
        isPart = cursor === null ? 0 : found.size;
        shown = arrange(found);
        draw();
        plan(Math.max(REFRESH_MS, PAUSE * (Date.now() - begin)));
    }

    function plan(wait) {
        clearTimeout(next);
        if (!isOver) {
            next = setTimeout(() => (document.hidden || document.activeElement === search ? plan(REFRESH_MS)
                : read().catch((error) => {
                    plan(REFRESH_MS);
                    context.refused(error);
                })), wait);
        }
    }

    function draw() {
        const opened = new Set(Array.from(list.querySelectorAll("details[open]"), (it) => it.dataset.board));
        const all = shown.length;
        place = Math.min(place, Math.max(1, Math.floor((all - 1) / SHOWN) * SHOWN + 1));
        const page = shown.slice(place - 1, place - 1 + SHOWN);
        replace(list, page.map(({ board, inside }) => card(board, inside, opened.has(board.name.key))));
        drawPager(all);
        if (all > 0) {
            status.textContent = [all > SHOWN ? t("boardsShown", place, place + page.length - 1, all)
                : t("boardsFound", all), isPart ? t("boardsPart", isPart) : ""].join(" ").trim();
        } else {
            replace(status, match === "" ? [t("boardsNone"), " ", t("boardsNoneHint"), " ",
                h("code", {}, "ZADD arena 100 ann")] : t("boardsNoMatch", plainName(nameOf(match))));
        }
    }

    function drawPager(all) {
        const step = (name, to, isThere) => (isThere
            ? h("a.button", { href: boardsAddress(state.db, match, to), "data-key": name, "data-keep": true }, t(name))
            : h("span.button.off", {}, t(name)));
        const last = Math.max(1, Math.floor((all - 1) / SHOWN) * SHOWN + 1);
        pager.hidden = all <= SHOWN;
        replace(pager, step("first", 1, place > 1), step("previous", Math.max(1, place - SHOWN), place > 1),
            step("next", place + SHOWN, place + SHOWN <= all), step("last", last, place + SHOWN <= all));
    }

    const link = (one) => (hasAddress(one.name) && !isDots(one.name)
        ? h("a", { href: boardAddress(one.name, { db: state.db }) }, nameText(one.name))
        : nameText(one.name));

    // What is folded under a board: its past periods, the newest first; of a league, what its rooms are like and
    // those that were found.
    function folded(board, inside, isOpen) {
        if (inside.length === 0) {
            return null;
        }
        const title = board.league ? t("roomsLabel") : t("pastPeriods", inside.length);
        return h("details", { open: isOpen, "data-board": board.name.key },
            h("summary", { "data-key": `periods ${board.name.key}` }, title),
            h("ul", {}, (board.league ? inside : inside.toReversed()).map((one) => h("li", {}, link(one),
                h("span.faint", {}, one.members === 0 && board.league ? t("roomsLike") : t("members", one.members))))));
    }

    function card(board, inside, isOpen) {
        const archive = board.archiveOf;
        return h("div.card", { role: "listitem" },
            h("div.card-main", {},
                h("h2", {}, link(board), wholeName(board.name)),
                h("p.faint.small.layout", { title: board.layout }, board.league ? t("leagueOf", board.league)
                    : layoutWords(board.layout)),
                h("p.card-facts", {},
                    board.frozen ? h("span.tag", {}, t("frozen")) : null,
                    board.opens && board.opens > Date.now()
                        ? h("span.tag", {}, t("opensAt", moment(board.opens))) : null,
                    archive ? h("span.tag", {}, t("archiveOf"), " ", nameText(archive, 40)) : null,
                    board.period ? h("span.tag", {}, t("every")[board.period.unit.toLowerCase()]
                        ?? board.period.unit) : null,
                    board.rollsAt ? h("time.faint", { datetime: board.rollsAt.toISOString(),
                        title: wholeMoment(board.rollsAt) },
                    t("rollsIn", duration(board.rollsAt - Date.now()))) : null)),
            h("p.card-count", {}, h("b", {}, count(board.members)), " ",
                h("span", {}, t("members", board.members).replace(count(board.members), "").trim())),
            folded(board, inside, isOpen));
    }

    // The page is there at once, with how far reading has come.
    const failed = (error) => {
        plan(REFRESH_MS);
        context.refused(error);
    };
    const first = read();
    await Promise.race([first, new Promise((done) => setTimeout(done, 300))]);
    first.catch(failed);
    return {
        title: t("boardsTitle"),
        element: h("section", {}, h("div.title", {}, h("h1", {}, t("boardsTitle"),
            state.db > 0 ? h("span.tag", {}, t("database", state.db)) : null),
        h("div.search", {}, search)), status, list, pager),
        update: (to) => {
            if (to.page !== "boards" || to.db !== state.db || to.match !== match) {
                return false;
            }
            ({ place } = to);
            draw();
            list.querySelector("a")?.focus({ preventScroll: true });
            window.scrollTo(0, 0);
            return true;
        },
        close: () => {
            isOver = true;
            clearTimeout(timer);
            clearTimeout(next);
            asked.abort();
        },
    };
}
