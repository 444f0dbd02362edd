// The rows of a board: a table that follows the board. Rows glide to their new places, and a mark says for
// a while by how much a member rose or fell; else it says how many places were gained or lost since the last period.
import { h, icon } from "./dom.js";
import { fieldText } from "./league.js";
import { called, face, nameText, plainlyCalled, strangersText, wholeName, hasAddress } from "./names.js";
import { ratingColumns } from "./rating.js";
import { t, count, moment, wholeMoment } from "./text.js";

const GLIDE_MS = 520;
const MARK_MS = 9000;
const UP = "M12 5l7 9H5z";
const DOWN = "M12 19l-7-9h14z";

const still = window.matchMedia("(prefers-reduced-motion: reduce)");

// board: of boardInfo; options: {link(name): address or null, selected: key, caption, dense, room(row): address or
// null of what the last field stands for, medals: false for none, way(row): "up", "down" or null}
export class Rows {
    constructor(board, options) {
        this.board = board;
        this.options = options;
        this.ratings = board.rating && !options.dense ? ratingColumns(board) : [];
        this.rows = new Map(); // key of the member -> {line, rank, scores, moved, until, cells}
        this.body = h("tbody", { role: "rowgroup" });
        this.element = h(options.dense ? "table.rows.dense" : "table.rows", { role: "table" },
            h("caption.sr", {}, options.caption ?? ""), this.head(), this.body);
    }

    head() {
        const cell = (name, ...content) => h(`th.${name}`, { role: "columnheader", scope: "col" }, content);
        const fields = this.board.fields.map((field, index) => cell(index === 0 ? "score" : "extra",
            this.board.fields.length === 1 && field.name === "score" ? t("score") : h("bdi", {}, field.name),
            this.options.dense ? null
                : h("span.order", { title: t(field.order === "asc" ? "lessIsBetter" : "moreIsBetter") },
                    h("span", { "aria-hidden": "true" }, field.order === "asc" ? "↑" : "↓"),
                    h("span.sr", {}, t(field.order === "asc" ? "lessIsBetter" : "moreIsBetter")))));
        return h("thead", { role: "rowgroup" }, h("tr", { role: "row" },
            cell("rank", this.options.dense ? "#" : t("place"),
                this.options.dense ? h("span.sr", {}, t("place")) : null),
            cell("name", t("member")), fields, this.ratings.map(({ key }) => cell("extra", t(key))),
            this.board.time && !this.options.dense ? cell("reached", t("reached")) : null));
    }

    // Show these rows. Returns what has changed, in words, or null; the first time nothing has.
    update(rows, isNewPage = false) {
        const isFirst = isNewPage || this.rows.size === 0;
        const tops = new Map();
        if (!isFirst && !still.matches) {
            for (const [key, row] of this.rows) {
                tops.set(key, row.line.getBoundingClientRect().top);
            }
        }
        const known = isNewPage ? new Map() : this.rows;
        const moved = [];
        this.rows = new Map(rows.map((row) => {
            const old = known.get(row.name.key);
            const entry = old ?? this.make(row);
            if (old && old.rank !== row.rank) {
                this.mark(entry, entry.rank - row.rank);
                moved.push(row);
            }
            this.write(entry, row, !isFirst && !old);
            return [row.name.key, entry];
        }));
        this.arrange(known);
        if (!isFirst && !still.matches) {
            this.glide(tops);
        }
        return isFirst || moved.length === 0 ? null
            : moved.some((row) => row.rank === 0) ? t("leads", plainlyCalled(rows[0], 80))
                : t("changes", moved.length);
    }

    make(row) {
        const cell = (name) => h(`td.${name}`, { role: "cell" });
        const cells = { rank: cell("rank"), name: h("th.name", { role: "rowheader", scope: "row" }),
            scores: this.board.fields.map((_, index) => cell(index === 0 ? "score" : "extra")),
            ratings: this.ratings.map(() => cell("extra")), reached: this.board.time && !this.options.dense ? cell("reached") : null,
            place: h("span.place"), move: h("span.move"), data: h("span.data"), way: h("span.way"), sub: h("span.sub") };
        cells.rank.append(cells.place, cells.move);
        cells.called = this.options.link && hasAddress(row.name) ? h("a", { "data-keep": true }) : h("span", {});
        cells.face = h("span", {});
        cells.name.append(cells.face, h("span.who", {}, cells.called, wholeName(row.name), cells.way), cells.data, cells.sub);
        const line = h("tr", { role: "row" }, cells.rank, cells.name, cells.scores, cells.ratings, cells.reached);
        this.choose(line, this.options.selected === row.name.key);
        return { line, cells, rank: row.rank, scores: null, moved: 0, gained: 0, timer: 0 };
    }

    choose(line, isSelected) {
        line.classList.toggle("selected", isSelected);
        line.toggleAttribute("aria-current", isSelected);
        if (isSelected) {
            line.setAttribute("aria-current", "true");
        }
    }

    // Which member is the viewer's; the links to the others follow.
    select(selected) {
        this.options.selected = selected;
        for (const [key, { line }] of this.rows) {
            this.choose(line, key === selected);
        }
    }

    write(entry, row, isEntering) {
        const { cells, line } = entry;
        const hasChanged = entry.scores !== null && entry.scores.some((text, i) => text !== row.scores[i]);
        entry.rank = row.rank;
        entry.scores = row.scores;
        entry.gained = row.since === null || row.since === undefined ? 0 : row.since - row.rank;
        if (entry.moved === 0) {
            this.rest(entry);
        }
        cells.place.textContent = count(row.rank + 1);
        line.classList.toggle("medal", row.rank < 3 && !this.board.league && this.options.medals !== false);
        line.dataset.place = row.rank + 1;
        row.scores.forEach((text, index) => {
            cells.scores[index].textContent = fieldText(this.board, index, text);
        });
        this.show(cells, line, row);
        const ratings = this.ratings.map(({ text }) => (row.rating ? text(row.rating) : ""));
        ratings.forEach((text, index) => {
            cells.ratings[index].textContent = text;
        });
        const time = row.reached && h("time", { datetime: row.reached.toISOString(),
            title: wholeMoment(row.reached, this.board.time?.unit) }, moment(row.reached, this.board.time?.unit));
        cells.reached?.replaceChildren(...(time ? [time] : []));
        this.call(cells, row);
        cells.sub.replaceChildren(...row.scores.slice(1).map((text, index) => h("span", {},
            h("bdi", {}, this.board.fields[index + 1].name), " ",
            fieldText(this.board, index + 1, text))),
        ...ratings.map((text, index) => h("span", {}, t(this.ratings[index].key), " ", text)),
            ...(time && !this.options.dense ? [time.cloneNode(true)] : []));
        if (hasChanged) {
            this.flash(cells.scores[0], "flash");
        }
        if (isEntering) {
            this.flash(line, "enters");
        }
    }

    // Of a league: the link to the member's room. Of a room: whether its place leads up or down.
    show(cells, line, row) {
        const room = this.options.room?.(row);
        const last = cells.scores.at(-1);
        if (room) {
            last.replaceChildren(h("a", { href: room }, last.textContent));
        }
        const way = this.options.way?.(row) ?? null;
        line.classList.toggle("goes-up", way === "up");
        line.classList.toggle("goes-down", way === "down");
        cells.rank.title = way === "up" ? t("goesUp") : way === "down" ? t("goesDown") : "";
        if (cells.way.dataset.way !== String(way)) {
            cells.way.dataset.way = String(way);
            cells.way.title = cells.rank.title;
            cells.way.replaceChildren(...way === null ? []
                : [icon(way === "up" ? UP : DOWN), h("span.sr", {}, cells.rank.title)]);
        }
    }

    // The member's name, or its first datum with the name below; then the other data.
    call(cells, row) {
        if (cells.called.tagName === "A") {
            cells.called.href = this.options.link(row.name);
        }
        const [alias, ...data] = row.data.map((text) => (text === null ? "" : String(text)));
        const text = [row.name.key, row.picture, alias, ...data].join("\n");
        if (cells.called.text === text) {
            return;
        }
        cells.called.text = text;
        const picture = face(row);
        cells.name.classList.toggle("faced", picture !== null);
        cells.face.replaceChildren(...picture ? [picture] : []);
        cells.called.replaceChildren(called(row));
        cells.data.replaceChildren(...alias ? [nameText(row.name, 40)] : [], ...data.filter(Boolean)
            .map((datum) => strangersText(datum, 200)));
    }

    flash(element, name) {
        element.classList.remove(name);
        void element.offsetWidth; // so that the animation begins again
        element.classList.add(name);
    }

    // steps: places gained, negative if lost; of several moves while the mark is shown the sum.
    mark(entry, steps) {
        clearTimeout(entry.timer);
        entry.moved += steps;
        const { line, cells: { move } } = entry;
        const name = entry.moved > 0 ? "rose" : "fell";
        this.rest(entry);
        if (entry.moved !== 0) {
            line.classList.add(name);
            this.point(move, entry.moved, name);
        }
        entry.timer = setTimeout(() => {
            entry.moved = 0;
            this.rest(entry);
        }, MARK_MS);
    }

    // An arrow, a number, and what is read out instead.
    point(move, steps, key) {
        const places = Math.abs(steps);
        move.className = `move ${key}`;
        move.title = t(key, places);
        move.replaceChildren(icon(steps > 0 ? UP : DOWN), h("span", { "aria-hidden": "true" }, count(places)),
            h("span.sr", {}, t(key, places)));
    }

    // The mark of a member that has not moved just now.
    rest({ line, gained, cells: { move } }) {
        line.classList.remove("rose", "fell");
        if (gained !== 0) {
            this.point(move, gained, gained > 0 ? "gained" : "lost");
            return;
        }
        move.className = "move";
        move.title = "";
        move.replaceChildren();
    }

    // Lines in their order; only those that are not in their place move, and the focus stays where it is.
    arrange(known) {
        const focused = this.body.contains(document.activeElement) ? document.activeElement : null;
        for (const [key, entry] of known) {
            if (!this.rows.has(key)) {
                clearTimeout(entry.timer);
            }
        }
        const kept = new Set(Array.from(this.rows.values(), (entry) => entry.line));
        for (const line of Array.from(this.body.children)) {
            if (!kept.has(line)) {
                line.remove();
            }
        }
        let next = this.body.firstElementChild;
        for (const { line } of this.rows.values()) {
            if (line === next) {
                next = next.nextElementSibling;
            } else {
                this.body.insertBefore(line, next);
            }
        }
        if (focused && document.activeElement !== focused && focused.isConnected) {
            focused.focus({ preventScroll: true });
        }
    }

    // From where each line was seen last, also in the middle of a glide, to where it is now.
    glide(tops) {
        const ways = [];
        for (const [key, { line }] of this.rows) {
            if (tops.has(key)) {
                line.getAnimations().filter((animation) => animation.id === "glide")
                    .forEach((animation) => animation.cancel());
                ways.push([line, tops.get(key) - line.getBoundingClientRect().top]);
            }
        }
        for (const [line, way] of ways) {
            if (Math.abs(way) > 0.5) {
                line.animate([{ transform: `translateY(${way}px)`, zIndex: way > 0 ? 2 : 1 },
                    { transform: "none", zIndex: way > 0 ? 2 : 1 }],
                { id: "glide", duration: GLIDE_MS, easing: "cubic-bezier(.2,.8,.2,1)" });
            }
        }
    }
}
