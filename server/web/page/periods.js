// The period that is going on and those before it, beside each other. When a period ends, or the board is rolled
// over by hand, they are fetched anew.
import * as api from "./api.js";
import { boardAddress } from "./address.js";
import { h, replace } from "./dom.js";
import { nameText, plainName } from "./names.js";
import { Rows } from "./rows.js";
import { t } from "./text.js";

const ROWS = 10;
const LOOK_MS = 2000; // between two looks at the periods before

export async function periodsView(board, context, { member, group }) {
    const wanted = { from: 0, count: ROWS, group };
    const place = h("div", {});
    const columns = h("div.periods", { tabindex: "0", role: "region", "aria-label": t("periodsTitle") });
    let current = null;
    let shown = null; // the page that current shows
    let looked = 0;
    let due = 0;

    const column = (name, heading, page) => {
        const rows = new Rows(board, { dense: true, selected: member?.key, caption: plainName(name),
            link: (who) => boardAddress(name, { db: board.db, member: who, group }) });
        const count = h("p.faint.small", {}, t("members", page.members));
        rows.update(page.rows);
        return { rows, count, element: h("section.period", {}, h("h2.h3", {},
            h("a", { href: boardAddress(name, { db: board.db, member, group }) }, heading)), count, rows.element) };
    };
    // Of "week@2026-11-16" under "week" the date is enough.
    const heading = (name) => (name.text.startsWith(`${board.name.text}@`)
        ? name.text.slice(board.name.text.length + 1) : nameText(name, 30));

    async function draw() {
        looked = Date.now();
        const [now, archives] = await Promise.all([
            api.page(board.name, board.db, wanted), api.archives(board.name, board.db, group)]);
        shown = now;
        if (archives.length === 0) {
            current = null;
            replace(place, h("p.faint", {}, t("periodsNone")));
            return;
        }
        current = column(board.name, t("periodNow"), now);
        replace(columns, current.element, archives.map((archive) => column(archive.name,
            heading(archive.name), archive).element));
        if (!place.contains(columns)) {
            replace(place, columns);
        }
    }

    // Fewer members than before: so it is behind a roll, too.
    const isOther = (page) => Number(page.rollsAt) !== Number(shown.rollsAt) || page.members < shown.members;

    function take(page) {
        if (isOther(page)) {
            due ||= setTimeout(() => {
                due = 0;
                draw().catch(context.refused);
            }, Math.max(0, looked + LOOK_MS - Date.now()));
        }
        shown = page;
        current?.rows.update(page.rows);
        current?.count.replaceChildren(t("members", page.members));
    }

    await draw();
    const stop = api.followPage(board.name, board.db, wanted, { take,
        gone: () => current?.rows.update([]), told: context.live, refused: context.refused });
    return { element: place, close: () => {
        clearTimeout(due);
        stop();
    } };
}
