// What stands beside a board while no member is chosen: beside its ranking what a score is worth, beside the
// distribution who leads.
import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { exact } from "./exact.js";
import { Rows } from "./rows.js";
import { spreadFigure } from "./spread.js";
import { t } from "./text.js";

const SHOWN = [1, 0.99, 0.9, 0.75, 0.5, 0.25];
const LEADERS = 10;

// {element, refresh(), view}; link(name): the address of a member's card; toSpread(): that of the distribution
export async function glanceCard(board, state, link, toSpread) {
    const { view } = state();
    const place = h("div", {});
    const leaders = view === "spread" ? new Rows(board, { dense: true, caption: t("leaders"), link }) : null;
    const element = h("section.glance", { "aria-label": t(leaders ? "leaders" : "atAGlance") },
        h("h2", {}, t(leaders ? "leaders" : "atAGlance")), place);

    async function refresh() {
        if (leaders) {
            const page = await api.page(board.name, board.db, { ...state(), from: 0, count: LEADERS });
            leaders.update(page.rows);
            element.hidden = page.members === 0;
            if (!place.contains(leaders.element)) {
                replace(place, leaders.element);
            }
            return;
        }
        const spread = await api.histogram(board.name, board.db, "auto", state());
        element.hidden = spread.bins.length < 2;
        if (element.hidden) {
            return;
        }
        const rows = spread.quantiles.filter((quantile) => SHOWN.includes(Number(quantile.q))).reverse();
        replace(place, spreadFigure(board, spread, null, 0.34),
            h("dl.facts", {}, rows.map((quantile) => [h("dt", {}, t("quantile", Number(quantile.q))),
                h("dd", {}, h("a", { href: link(quantile.name), "data-keep": true },
                    exact(quantile.score, board.fields[0].scale)))])),
            h("p", {}, h("a.button", { href: toSpread(), "data-keep": true, "data-key": "spread" }, t("spread"))));
    }

    await refresh();
    return { element, refresh, view };
}
