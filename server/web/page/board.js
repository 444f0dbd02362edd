// One board: its ranking as it moves, the distribution of its scores, its periods, and one member.
import * as api from "./api.js";
import { boardAddress, groupWords } from "./address.js";
import { h, replace, say, focusIn, focusOn } from "./dom.js";
import { findBox, memberCard } from "./find.js";
import { glanceCard } from "./glance.js";
import { groupChoice } from "./groups.js";
import { heldView } from "./held.js";
import { dayIn, leagueOf, leagueView, learnPeriod, roomName, wayOf } from "./league.js";
import { hasAddress, nameText, plainName, wholeName } from "./names.js";
import { periodsView } from "./periods.js";
import { Rows } from "./rows.js";
import { spreadView } from "./spread.js";
import { t, duration, moment, wholeMoment } from "./text.js";

const MEMBER_MS = 2000; // between two looks at the member's card
const stateOf = ({ frozen, opens, closes, rollsAt, league }) => [frozen, opens, closes, league ? "" : rollsAt]
    .map(String).join();
const LOOK_MS = 10000; // at it and at the head, whatever happens
const SIZES = [10, 25, 50, 100];
const roomy = window.matchMedia("(min-width: 62rem)");

export async function showBoard(state, context) {
    let board;
    try {
        board = await api.boardInfo(state.board, state.db, state.group);
    } catch (error) {
        if (error.status === 400 && state.group.length > 0) {
            return noGroup(state, error);
        }
        throw error;
    }
    board.of = await leagueOf(board);
    await learnPeriod(board);
    const head = h("div", {});
    const tabs = h("nav.tabs", { "aria-label": plainName(board.name) });
    const inner = h("div.inner", {});
    const aside = h("aside", { "aria-label": t("member") });
    let card = null;
    let glance = null;
    let part = null;
    let now = state;
    let refreshed = 0;
    let due = 0;
    const address = (changes) => boardAddress(board.name, { ...now, ...changes });
    let isFound = false; // the next card is of a member that was looked for: the focus goes there
    const find = findBox(board, context, () => now, (name) => {
        isFound = true;
        context.go(address({ member: name }), { keep: true });
        if (card && now.member.key === name.key) {
            card.element.focus();
        }
    });
    const groups = groupChoice(board, () => now, (group) => context.go(address({ group, place: 1 }), { keep: true }),
        () => address({ group: [], place: 1 }));
    let isOther = false; // the next page is of another group: its members are said
    const cardPlace = h("div", {});
    aside.append(find.element, cardPlace);

    async function showMember() {
        const hasFocus = () => cardPlace.contains(document.activeElement);
        if (now.member === null) {
            const hadFocus = hasFocus();
            card = null;
            replace(cardPlace);
            if (hadFocus) {
                find.focus();
            }
            showGlance();
            return;
        }
        glance = null;
        const wanted = now.member.key;
        const made = await memberCard(board, now.member, () => now);
        if (now.member?.key === wanted) {
            const takesFocus = isFound || hasFocus(); // now: who looks for another one meanwhile keeps it
            card = made;
            replace(cardPlace, made.element);
            if (takesFocus) {
                made.element.focus();
            }
            isFound = false;
        }
    }

    // Where there is no room beside the board, it would only push the board down; and a user without the right to
    // distributions does without.
    async function showGlance() {
        const wanted = now.view;
        if (now.member !== null || glance?.view === wanted || !roomy.matches || board.league) {
            return;
        }
        const made = await glanceCard(board, () => now, (name) => address({ member: name }),
            () => address({ view: "spread" })).catch(() => null);
        if (made && now.member === null && now.view === wanted) {
            glance = made;
            replace(cardPlace, made.element);
        }
    }

    // Soon after the board has changed; what the shown page does not show changes as well, so now and then.
    function changed(page) {
        if (page && isOther) {
            isOther = false;
            say(t("members", page.members));
        }
        // A period is over, or the board was frozen.
        if (page?.rollsAt !== undefined && stateOf({ ...page, league: board.league }) !== stateOf(board)) {
            Object.assign(board, { frozen: page.frozen, opens: page.opens, closes: page.closes,
                rollsAt: board.league ? board.rollsAt : page.rollsAt });
            drawHead();
            lookAtBoard().catch(context.refused);
        }
        due ||= setTimeout(() => {
            due = 0;
            refreshed = Date.now();
            card?.refresh().catch(context.refused);
        }, Math.max(0, refreshed + MEMBER_MS - Date.now()));
    }

    async function showPart() {
        const focused = focusIn(inner);
        part?.close();
        part = null;
        context.live(null);
        const link = (name) => address({ member: name });
        const next = now.view === "spread"
            ? await spreadView(board, context, () => now, () => card?.get() ?? null, link)
            : now.view === "periods" ? await periodsView(board, context, now)
            : now.view === "held" ? await heldView(board, context, () => now)
                : board.league && now.view === "places" ? await tiersView(focused)
                    : rankingView(board, () => now, context, changed, focused);
        part = next;
        replace(inner, next.element);
        drawTabs();
    }

    function tellPeriod({ starts, ends }) {
        Object.assign(board, { starts, rollsAt: ends });
        drawHead();
    }

    // Who may not read the league by its tiers sees its members.
    const tiersView = (focused) => leagueView(board, context, () => now, tellPeriod).catch((error) => {
        if (![401, 403].includes(error.status)) {
            throw error;
        }
        return rankingView(board, () => now, context, changed, focused);
    });

    const views = () => (board.league ? ["places", "members"]
        : ["places", "spread", ...board.archives.length > 0 || now.view === "periods" ? ["periods"] : [],
            ...board.held !== null || now.view === "held" ? ["held"] : []]);
    const viewName = (view) => (view === "held" && board.held > 0 ? t("heldCount", board.held) : t({ places: board.league ? "tiers" : "places", members: "leagueMembers" }[view]
        ?? view));

    function drawTabs() {
        replace(tabs, views().map((view) => h("a", { href: address({ view }),
            "data-keep": true, "aria-current": now.view === view ? "page" : null }, viewName(view))));
    }

    function drawHead() {
        replace(head, boardHead(board));
    }

    // Which values there are, and how many members have them; which past periods; and how many results are held.
    async function lookAtBoard() {
        const wanted = groupWords(now.group).join();
        const { tags, archives, held } = await api.boardInfo(board.name, board.db, now.group);
        if (wanted === groupWords(now.group).join()) {
            const hadPeriods = board.archives.length > 0;
            const hadHeld = board.held;
            Object.assign(board, { tags, archives, held });
            groups.draw();
            if (hadPeriods !== archives.length > 0 || hadHeld !== held) {
                drawTabs();
            }
        }
    }

    drawHead();
    if (board.league && now.view !== "places") {
        api.league(board.name, board.db).then(tellPeriod).catch(() => {});
    }
    await showMember();
    await showPart();
    const ticking = setInterval(() => {
        if (!document.hidden) {
            drawHead();
            changed();
            glance?.refresh().catch(context.refused);
            if (board.tags.length > 0 || board.period || board.held !== null) {
                lookAtBoard().catch(context.refused);
            }
        }
    }, LOOK_MS);
    return {
        title: plainName(board.name),
        element: h("section.board", {}, head, h("div.columns", {},
            h("div.content", {}, tabs, groups.element, inner), aside)),
        // Another page, part, group or member of the same board.
        update: (next) => {
            if (next.page !== "board" || next.board.key !== now.board.key || next.db !== now.db) {
                return false;
            }
            const before = now;
            now = next;
            const isOtherMember = before.member?.key !== now.member?.key;
            const isOtherGroup = groupWords(before.group).join() !== groupWords(now.group).join();
            const isOtherPart = before.view !== now.view
                || now.view === "periods" && (isOtherMember || isOtherGroup);
            const isOtherPage = before.place !== now.place || before.count !== now.count
                || before.hash !== now.hash || before.data !== now.data || isOtherGroup;
            groups.draw();
            if (isOtherGroup) {
                isOther = true;
                lookAtBoard().catch(context.refused);
                glance?.refresh().catch(context.refused);
            }
            (isOtherMember ? showMember() : Promise.resolve(isOtherGroup ? card?.refresh() : null))
                .then(() => (isOtherPart || isOtherPage && ["places", "members"].includes(now.view) ? showPart()
                    : part?.refresh?.()))
                .then(() => {
                    drawTabs();
                    showGlance();
                    return card?.refresh();
                }).catch(context.refused);
            return true;
        },
        close: () => {
            clearInterval(ticking);
            clearTimeout(due);
            find.close();
            part?.close();
        },
    };
}

// The address names a tag that the board has not.
const noGroup = (state, error) => ({ title: t("noGroup"), close: () => {}, element: h("section.middle", { role: "alert" },
    h("h1", {}, t("noGroup")), h("p.faint", {}, error.message.replace(/^ERR /, "")),
    h("p", {}, h("a.button", { href: boardAddress(state.board, { ...state, group: [] }) }, t("everybody")))) });

function boardHead(board) {
    const { time, fields } = board;
    const period = board.period ?? board.roomsPeriod;
    const at = (key, date) => h("time.tag", { datetime: date.toISOString(), title: wholeMoment(date) },
        t(key, moment(date)));
    return [h("h1", {}, nameText(board.name, 80), wholeName(board.name)),
        h("p.facts-line", {},
            board.archiveOf ? h("a.tag", { href: boardAddress(board.archiveOf, { db: board.db }) },
                t("archiveOf"), " ", nameText(board.archiveOf, 40)) : null,
            board.of ? h("a.tag", { href: boardAddress(board.of.name, { db: board.db }) },
                t("roomOf", board.of.room, board.of.tier), " ", nameText(board.of.name, 40)) : null,
            board.league ? h("span.tag", {}, t("leagueOf", board.league)) : null,
            board.db > 0 ? h("span.tag", {}, t("database", board.db)) : null,
            board.frozen ? h("span.tag.strong", {}, t("frozen")) : null,
            board.opens && board.opens > Date.now() ? at("opensAt", board.opens) : null,
            board.closes && board.closes > Date.now() ? at("closesAt", board.closes) : null,
            board.starts && board.rollsAt ? h("span.tag.strong.league-period", {},
                t("period", ...[board.starts, board.rollsAt].map((date) => dayIn(board, date)))) : null,
            period ? h("span.tag", {}, t("every")[period.unit.toLowerCase()] ?? period.unit) : null,
            board.rollsAt ? h("time.tag", { datetime: board.rollsAt.toISOString(),
                title: wholeMoment(board.rollsAt) }, t(board.league ? "left" : "rollsIn",
                duration(board.rollsAt - Date.now()))) : null,
            board.window ? h("span.tag", {}, t("windowOf", board.window)) : null,
            board.cap ? h("span.tag", {}, t("capOf", board.cap)) : null,
            board.limit ? h("span.tag", {}, t("limitOf", board.limit)) : null,
            board.rating ? h("span.tag", { title: board.rating }, t("ratedBy", board.rating)) : null,
            board.stale ? h("span.tag", {}, t("staleAfter", duration(board.stale))) : null,
            board.settled === null ? null : h("span.tag", {}, t(board.settled ? "settled" : "unsettled")),
            board.league ? null : [h("span", {}, t(fields[0].order === "asc" ? "lessIsBetter" : "moreIsBetter")),
                h("span", {}, t(!time ? "arrivalAhead" : time.order === "latest" ? "latestAhead" : "firstAhead"))])];
}

// focused: the sign of what had the focus in the page before: of the pager, say, whose buttons come with the
// first rows.
function rankingView(board, state, context, changed, focused) {
    const { place, count: size } = state();
    const { hash, data, group } = state();
    const wanted = { from: place - 1, count: size, hash, data, group, since: board.period ? "LAST" : "",
        rating: board.rating !== null };
    const link = (changes) => boardAddress(board.name, { ...state(), ...changes });
    const note = h("p.faint", { role: "status" });
    const shown = h("span", {});
    let members = 0;
    const roomAddress = (row) => {
        const name = roomName(board, row);
        return name && hasAddress(name) ? boardAddress(name, { db: board.db, member: row.name }) : null;
    };
    const rows = new Rows(board, { selected: state().member?.key, caption: plainName(board.name),
        link: (name) => link({ member: name }), room: board.league ? roomAddress : null,
        way: board.of && group.length === 0 ? (row) => wayOf(board.of, row.rank, members) : null });
    const pager = h("nav.pager", { "aria-label": t("pages") });
    let drawn = "";

    function drawPager(all) {
        const end = Math.min(place + size - 1, all);
        const lastPlace = Math.max(1, Math.floor((all - 1) / size) * size + 1);
        const text = all === 0 ? "" : t("shows", Math.min(place, all), Math.max(end, Math.min(place, all)), all);
        shown.textContent = text;
        const state_ = [place > 1, end < all, lastPlace].join();
        if (state_ === drawn) {
            return;
        }
        drawn = state_;
        const step = (name, key, to, isThere) => (isThere
            ? h("a.button", { href: link({ place: to }), "data-keep": true, "data-key": key }, t(name))
            : h("span.button.off", {}, t(name)));
        replace(pager, step("first", "first", 1, place > 1),
            step("previous", "previous", Math.max(1, place - size), place > 1),
            step("next", "next", place + size, end < all),
            step("last", "last", lastPlace, end < all));
    }

    function take(page) {
        members = page.members;
        const news = rows.update(page.rows);
        note.textContent = page.members === 0 ? t(group.length > 0 ? "emptyGroup" : "emptyBoard")
            : page.rows.length === 0 ? t("pastEnd", page.members) : "";
        rows.element.hidden = page.rows.length === 0;
        drawPager(page.members);
        if (["first", "previous", "next", "last"].includes(focused)) { // that button, or what there is
            [focused, "first", "next"].some((sign) => focusOn(pager, sign));
        }
        focused = null;
        if (news) {
            say(news);
        }
        changed(page);
    }

    const goTo = h("form.goto", { onsubmit: (event) => {
        event.preventDefault();
        const input = event.target.elements.place;
        if (/^\d{1,15}$/.test(input.value) && Number(input.value) > 0) {
            context.go(link({ place: Number(input.value) }), { keep: true });
        }
    } }, h("label", {}, h("span", {}, t("goTo")),
        h("input", { name: "place", "data-key": "place", inputmode: "numeric", pattern: "[0-9]{1,15}",
            required: true, size: 7, autocomplete: "off" })), h("button", {}, t("go")));
    const sizes = h("label", {}, h("span", {}, t("rows")), h("select", { "data-key": "rows", onchange: (event) => {
        context.go(link({ count: Number(event.target.value) }), { keep: true });
    } }, [...new Set([...SIZES, size])].sort((a, b) => a - b).map((n) => h("option", { value: String(n),
        selected: n === size }, String(n)))));
    const gone = (error) => {
        take({ rows: [], members: 0 });
        note.textContent = t(error.code === "bad_request" ? "noGroup" : "notFound");
    };
    const stop = api.followPage(board.name, board.db, wanted,
        { take, gone, told: context.live, refused: context.refused });
    api.page(board.name, board.db, wanted).then((page) => {
        if (rows.rows.size === 0) {
            take(page);
        }
    }).catch(context.refused);
    return {
        close: stop,
        refresh: () => rows.select(state().member?.key),
        element: h("div", {}, h("p.shown.faint", {}, shown), rows.element, note,
            h("div.controls", {}, pager, goTo, sizes), columnsForm(state, link, context)),
    };
}

// Which fields of the members' hashes are shown beside them.
function columnsForm(state, link, context) {
    const { hash, data } = state();
    return h("details.data-form", { open: Boolean(hash) }, h("summary", {}, t("columns")),
        h("form.row", { onsubmit: (event) => {
            event.preventDefault();
            const { pattern, fields } = event.target.elements;
            context.go(link({ hash: pattern.value.trim(), data: fields.value.replace(/\s*,\s*/g, ",") }),
                { keep: true });
        } }, h("p.faint.small", {}, t("columnsHint")),
        h("label", {}, h("span", {}, t("dataPattern")), h("input", { name: "pattern", required: true,
            value: hash, placeholder: "player:*", spellcheck: "false", autocapitalize: "none" })),
        h("label", {}, h("span", {}, t("dataFields")), h("input", { name: "fields", required: true,
            value: data, placeholder: "name,country", spellcheck: "false", autocapitalize: "none" })),
        h("button", {}, t("apply")),
        hash ? h("a.button", { href: link({ hash: "", data: "" }), "data-keep": true }, t("clear"))
            : null));
}
