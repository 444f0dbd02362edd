// Finding a member as one types, and the card of the one that was found: place, percentile, neighbours.
import * as api from "./api.js";
import { boardAddress } from "./address.js";
import { h, replace } from "./dom.js";
import { exact } from "./exact.js";
import { fieldText, roomName } from "./league.js";
import { called, face, nameOf, nameText, strangersText, wholeName } from "./names.js";
import { Rows } from "./rows.js";
import { deviationText, playedText, ratingText } from "./rating.js";
import { t, count, percent, moment, wholeMoment } from "./text.js";

const SEARCH_MS = 120;
const FOUND_MAX = 10;
const ASKED_MAX = 20; // parts of one search: on a large board few names may begin so
const NAMES_ASKED_MAX = 50; // of one by shown names, 20,000 places each

// An input with a list under it (the combobox of ARIA). state(): that of the address, for the data. pick: told the
// name that was chosen.
export function findBox(board, context, state, pick) {
    let asked = new AbortController();
    let timer = 0;
    let names = [];
    let active = -1;
    const list = h("ul.found", { id: "found", role: "listbox", "aria-label": t("find"), hidden: true });
    const status = h("p.sr", { role: "status" });
    const input = h("input", { type: "search", role: "combobox", "aria-expanded": "false",
        "aria-controls": "found", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
        autocapitalize: "none", placeholder: t("find"), "aria-label": t("find"), title: t("findHint"),
        "data-key": "search",
        oninput: () => {
            clearTimeout(timer);
            timer = setTimeout(() => look(input.value).catch(context.refused), SEARCH_MS);
        },
        onkeydown: onKey,
        onfocus: () => names.length > 0 && show(true),
        onblur: () => setTimeout(() => show(false), 150) });

    function show(isShown) {
        list.hidden = !isShown || list.childElementCount === 0;
        input.setAttribute("aria-expanded", String(!list.hidden));
    }

    function activate(index) {
        active = names.length === 0 ? -1 : (index + names.length) % names.length;
        list.querySelectorAll("[role=option]").forEach((option, i) => {
            option.setAttribute("aria-selected", String(i === active));
            if (i === active) {
                input.setAttribute("aria-activedescendant", option.id);
                option.scrollIntoView({ block: "nearest" });
            }
        });
        if (active < 0) {
            input.removeAttribute("aria-activedescendant");
        }
    }

    function choose(name) {
        clearTimeout(timer);
        asked.abort();
        input.value = "";
        names = [];
        replace(list);
        show(false);
        pick(name);
    }

    function option(name, index, ...content) {
        return h("li", { id: `found-${index}`, role: "option", "aria-selected": "false",
            onpointerdown: (event) => {
                event.preventDefault();
                choose(name);
            } }, content);
    }

    async function look(text) {
        asked.abort();
        asked = new AbortController();
        const { signal } = asked;
        if (text === "") {
            names = [];
            replace(list);
            show(false);
            return;
        }
        const found = new Map(); // by key
        const parts = { id: false, name: false }; // whether all was searched
        async function collect(by, askedMax) {
            const { hash, data, group } = state();
            let cursor = "0";
            for (let i = 0, n = 0; i < askedMax && cursor !== null && n < FOUND_MAX; i++) {
                const part = await api.search(board.name, board.db, text, cursor, { by, hash, data, group, signal });
                if (signal.aborted) {
                    return;
                }
                n += part.rows.length;
                part.rows.forEach((row) => found.set(row.name.key, row));
                ({ cursor } = part);
                drawFound(text, found, null);
            }
            parts[by] = cursor === null;
        }
        const byName = collect("name", NAMES_ASKED_MAX).catch((error) => {
            if (error.status !== 413) { // names too long to be looked through: ids alone
                throw error;
            }
        });
        await Promise.all([collect("id", ASKED_MAX), byName]);
        if (!signal.aborted) {
            drawFound(text, found, parts);
        }
    }

    // parts: null while the search goes on.
    function drawFound(text, found, parts) {
        const own = nameOf(text);
        const rows = [...found.values()].sort((a, b) => (b.name.key === own.key) - (a.name.key === own.key)
            || a.rank - b.rank).slice(0, FOUND_MAX);
        const complete = parts === null || parts.id && parts.name;
        const exactly = parts !== null && (!parts.id || board.rating !== null) && !found.has(own.key);
        const before = names[active]?.key;
        names = [...rows.map((row) => row.name), ...exactly ? [own] : []];
        const note = parts === null ? rows.length === 0 ? t("finding") : "" : rows.length >= FOUND_MAX ? ""
            : rows.length === 0 && complete ? t("findNone", text) : complete ? "" : t("findPart");
        replace(list, rows.map((row, index) => option(row.name, index,
            h("span.found-place", {}, count(row.rank + 1)), face(row),
            h("span.found-name", {}, called(row, 40), row.data[0] ? h("span.faint.small", {}, " ",
                nameText(row.name, 40)) : null),
            h("span.found-score", {}, exact(row.scores[0], board.fields[0].scale)))),
        exactly ? option(own, rows.length, t("findExact", text)) : null,
        note ? h("li.faint", { role: "presentation" }, note) : null);
        status.textContent = note || String(rows.length);
        show(true);
        activate(Math.max(0, names.findIndex((name) => name.key === before)));
    }

    function onKey(event) {
        const steps = { ArrowDown: 1, ArrowUp: -1 };
        if (event.key in steps && names.length > 0) {
            event.preventDefault();
            show(true);
            activate(active + steps[event.key]);
        } else if (event.key === "Enter" && input.value !== "") {
            event.preventDefault();
            choose(!list.hidden && active >= 0 ? names[active] : nameOf(input.value));
        } else if (event.key === "Escape") {
            if (!list.hidden) {
                event.preventDefault();
            }
            show(false);
        }
    }

    return { element: h("div.find", { role: "search" }, input, list, status),
        focus: () => input.focus(),
        close: () => {
            clearTimeout(timer);
            asked.abort();
        } };
}

// The card of one member: {element, refresh(), get()}; get() is what it shows now, null for nobody.
// state(): that of the address, for the links.
export async function memberCard(board, who, state) {
    const card = h("section.member", { "aria-labelledby": "member-name", tabindex: "-1" });
    const address = (changes) => boardAddress(board.name, { ...state(), member: who, ...changes });
    const away = h("a.quiet.button", { "data-keep": true, "aria-label": t("forget"), title: t("forget") }, "✕");
    const title = h("h2", { id: "member-name" }, nameText(who));
    const about = h("p.data", {}); // the id, if the member is called otherwise, and more data
    const picture = h("span", {});
    const head = h("div.member-head", {}, picture, h("div", {}, title, wholeName(who), about), away);
    // Only the figures are made anew: what can have the focus stays.
    const figures = h("div", {});
    // On narrow screens the board itself comes first.
    const around = h("details", { hidden: true, open: window.matchMedia("(min-width: 62rem)").matches },
        h("summary", {}, h("h3", {}, t("around"))));
    const way = h("a.button", { "data-keep": true }, t("inRanking"));
    const foot = h("p", { hidden: true }, way);
    card.append(head, figures, around, foot);
    let rows = null;
    let shown = null;

    function showHead(member) {
        const shown = face(member);
        replace(title, called(member));
        replace(about, member.data[0] ? nameText(who, 40) : null,
            member.data.slice(1).filter(Boolean).map((datum) => strangersText(datum, 200)));
        if (picture.firstChild?.outerHTML !== shown?.outerHTML) {
            replace(picture, shown);
        }
    }

    function showFigures(member) {
        showHead(member);
        const scores = member.scores.map((text, index) => [h("dt", {}, board.fields.length === 1
            && board.fields[0].name === "score" ? t("score") : h("bdi", {}, board.fields[index].name)),
        h("dd", {}, exact(text, board.fields[index].scale))]);
        if (board.league) {
            replace(figures, leagueFacts(board, member));
            return;
        }
        replace(figures, h("p.member-place", {}, h("span", {}, t("place")), " ",
            h("b", {}, count(member.rank + 1)), " ", h("span", {}, t("ofAll", member.members))),
        standing(member),
        h("dl.facts", {}, scores, member.reached ? [h("dt", {}, t("reached")),
            h("dd", {}, h("time", { datetime: member.reached.toISOString(),
                title: wholeMoment(member.reached, board.time?.unit) },
            moment(member.reached, board.time?.unit)))] : null,
        ratingFacts(board, member.rating),
        board.tags.map((tag) => [tag.name, api.valueOf(member, tag.name)]).filter(([, value]) => value !== null)
            .map(([tag, value]) => [h("dt", {}, h("bdi", {}, tag)), h("dd", {}, h("a", { "data-keep": true,
                "data-key": `value ${tag}`, href: address({ place: 1, group: [{ tag: nameOf(tag), value }] }) },
            nameText(value, 64)))])));
    }

    async function refresh() {
        const member = await api.member(board, who, state());
        const unranked = member === null && board.rating !== null ? await api.rating(board.name, board.db, who) : null;
        shown = member;
        away.href = address({ member: null });
        around.hidden = foot.hidden = member === null;
        if (member === null) {
            rows?.element.remove();
            rows = null;
            if (unranked !== null && unranked.rank === null) {
                replace(figures, h("p.member-place", { role: "status" }, h("span.tag.strong", {}, t("provisional"))),
                    h("p.faint", {}, t("provisionalHint")), h("dl.facts", {}, ratingFacts(board, unranked)));
                return;
            }
            replace(figures, h("p", { role: "status" }, nameText(who, 40), " ",
                t(state().group.length > 0 ? "notInGroup" : "notHere")));
            return;
        }
        if (rows === null) {
            rows = new Rows(board, { dense: true, selected: who.key, caption: t("around"),
                link: (name) => address({ member: name }) });
            around.append(rows.element);
        }
        showFigures(member);
        rows.update(member.around);
        if (board.league) {
            const room = roomName(board, member);
            around.hidden = true;
            foot.hidden = room === null;
            way.textContent = t("inRoom");
            way.href = room === null ? "" : boardAddress(room, { db: board.db, member: who });
            return;
        }
        const size = state().count;
        way.href = address({ place: Math.floor(member.rank / size) * size + 1, view: "places" });
    }

    await refresh();
    return { element: card, refresh, get: () => shown };
}

// Of a board with RATING. rating: null: nothing is known.
function ratingFacts(board, rating) {
    const fact = (key, text) => (text === null ? null : [h("dt", {}, t(key)), h("dd", {}, text)]);
    return rating === null ? null : [fact("rating", ratingText(rating)), fact("deviation", deviationText(rating)),
        fact("games", count(rating.games)), fact("played", playedText(rating)),
        rating.last === null ? null : fact("lastMatch", h("time", { datetime: rating.last.toISOString(),
            title: wholeMoment(rating.last) }, moment(rating.last)))];
}

// Where a member of a league is.
function leagueFacts(board, member) {
    const [tier, period, room] = member.scores.map((text, index) => fieldText(board, index, text));
    const fact = (key, text) => [h("dt", {}, t(key)), h("dd", {}, text)];
    return h("dl.facts", {}, fact("tierLabel", tier), fact("roomLabel", member.scores[2] === "0" ? t("notYet") : room),
        fact("periodLabel", period));
}

// "ahead of 96 %", as text and as a bar.
function standing(member) {
    const behind = member.members - member.rank - 1;
    if (member.members === 1) {
        return h("p.faint", {}, t("oneAlone"));
    }
    const share = behind / (member.members - 1);
    const bar = h("span.standing-bar", { "aria-hidden": "true" }, h("span", {}));
    bar.firstChild.style.inlineSize = `${share * 100}%`;
    return h("p.standing", {}, bar, h("span", {}, t("betterThan", percent(share))));
}
