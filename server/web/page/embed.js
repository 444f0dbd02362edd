// /embed/BOARD: only the rows, for streams, wikis and dashboards. They are as large as their frame lets them be: as
// wide as it, and smaller if they would be too high.
//
// ?count=10&place=1&where=country:DE&title=Text&theme=light|dark|clear&lang=en|zh   clear: no background, over a picture
import * as api from "./api.js";
import { h } from "./dom.js";
import { groupText } from "./groups.js";
import { learnPeriod } from "./league.js";
import { nameText, plainName } from "./names.js";
import { Rows } from "./rows.js";
import { t } from "./text.js";

const RETRY_MS = 3000;
const FONT_MIN = 9; // pixels: what is smaller nobody reads, and the rest is scrolled to

function fit() {
    const root = document.documentElement;
    root.style.fontSize = "";
    // Less than in proportion fits, as lines wrap less: a second look takes what is left.
    for (let i = 0; i < 2 && root.scrollHeight > window.innerHeight; i++) {
        const size = parseFloat(getComputedStyle(root).fontSize) * window.innerHeight / root.scrollHeight;
        root.style.fontSize = `${Math.max(FONT_MIN, Math.floor(size * 20) / 20)}px`;
    }
}

export async function showEmbed(state) {
    document.documentElement.classList.add("embed");
    document.documentElement.dataset.theme = state.theme || "system";
    const place = h("main.embed", { id: "main" });
    const wait = (text) => {
        place.replaceChildren(h("p.faint", { role: "alert" }, text));
        setTimeout(begin, RETRY_MS);
    };

    async function begin() {
        let board;
        try {
            await api.me();
            board = await api.boardInfo(state.board, state.db, state.group);
            await learnPeriod(board);
        } catch (error) {
            if (error.status === undefined) {
                throw error;
            }
            wait({ 0: t("offline"), 401: t("forbidden"), 403: t("forbidden"), 404: t("notFound") }[error.status]
                ?? error.message.replace(/^ERR /, ""));
            return;
        }
        const rows = new Rows(board, { dense: true, selected: state.member?.key,
            caption: plainName(board.name) });
        const wanted = { from: state.place - 1, count: state.count, hash: state.hash,
            data: state.data, group: state.group };
        const empty = h("p.faint", {});
        const take = (page) => {
            const isOther = rows.rows.size !== page.rows.length;
            rows.update(page.rows);
            empty.textContent = page.rows.length > 0 ? ""
                : t(state.group.length > 0 ? "emptyGroup" : "emptyBoard");
            if (isOther) {
                fit();
            }
        };
        const sign = h("span.live", {}, h("span.dot", { "aria-hidden": "true" }), h("span.sr", {}, t("live")));
        place.replaceChildren(h("h1", {}, h("span", {}, state.title
            || [nameText(board.name, 60), groupText(state.group)]), sign), rows.element, empty);
        document.title = state.title || plainName(board.name);
        api.followPage(board.name, board.db, wanted, { take, gone: () => take({ rows: [] }),
            told: (isLive) => sign.classList.toggle("off", !isLive), refused: () => {} });
    }

    window.addEventListener("resize", fit);
    await begin();
    return { element: place };
}
