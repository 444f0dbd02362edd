// The period that is going on and those before it, beside each other.
import * as api from "./api.js";
import { boardAddress } from "./address.js";
import { h } from "./dom.js";
import { nameText } from "./names.js";
import { Rows } from "./rows.js";
import { t } from "./text.js";

export async function periodsView(board, context, member) {
    const [now, archives] = await Promise.all([
        api.page(board.name, board.db, { from: 0, count: 10 }), api.archives(board.name, board.db)]);
    if (archives.length === 0) {
        return { element: h("p.faint", {}, t("periodsNone")), close: () => {} };
    }
    const column = (name, heading, members, content) => {
        const rows = new Rows(board, { dense: true, selected: member?.key, caption: name.text,
            link: (who) => boardAddress(name, { db: board.db, member: who }) });
        rows.update(content);
        return { rows, element: h("section.period", {}, h("h2.h3", {},
            h("a", { href: boardAddress(name, { db: board.db, member }) }, heading)),
        h("p.faint.small", {}, t("members", members)), rows.element) };
    };
    // Of "week@2026-11-16" under "week" the date is enough.
    const heading = (name) => (name.text.startsWith(`${board.name.text}@`)
        ? name.text.slice(board.name.text.length + 1) : nameText(name, 30));
    const current = column(board.name, t("periodNow"), now.members, now.rows);
    const stop = api.followPage(board.name, board.db, { from: 0, count: 10 }, {
        take: (page) => current.rows.update(page.rows), gone: () => current.rows.update([]),
        told: context.live, refused: context.refused });
    return { close: stop, element: h("div.periods", { tabindex: "0", role: "region",
        "aria-label": t("periodsTitle") }, current.element, archives.map((archive) => column(archive.name,
        heading(archive.name), archive.members, archive.rows).element)) };
}
