// How a board's scores are distributed: bars and quantiles, and where the member is.
import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { exact, compare } from "./exact.js";
import { called, plainlyCalled } from "./names.js";
import { bars } from "./plot.js";
import { t, count, short } from "./text.js";

const REFRESH_MS = 5000;

// The bar that a score is in: bins go from the lowest score up, each begins at its 'from'.
function binOf(bins, score) {
    let index = 0;
    while (index + 1 < bins.length && compare(bins[index + 1].from, score) <= 0) {
        index++;
    }
    return index;
}

// The marks of the bars: quantiles, of which those in one bar share a mark, and the member.
function marksOf({ bins, quantiles }, you) {
    const labels = new Map();
    for (const quantile of quantiles.filter(({ q }) => ["0.9", "0.5", "0.1"].includes(String(q)))) {
        const index = binOf(bins, quantile.score);
        labels.set(index, [...labels.get(index) ?? [], t("quantile", Number(quantile.q))]);
    }
    const marks = Array.from(labels, ([index, texts]) => ({ index, kind: "quantile", label: texts.join(", ") }));
    return you ? [...marks, { index: binOf(bins, you.scores[0]), kind: "you", label: plainlyCalled(you, 16) }] : marks;
}

// The bars with what is below them: a distribution as api.histogram gives it; you: a member, or null; labelWidth: of a
// mark's, as a share of the width.
export function spreadFigure(board, { members, bins, isLog, quantiles }, you, labelWidth = 0.2) {
    const score = (text) => exact(text, board.fields[0].scale);
    const range = (bin) => (bin.from === bin.to ? score(bin.from) : t("fromTo", score(bin.from), score(bin.to)));
    const tip = (index) => `${range(bins[index])}: ${t("members", bins[index].members)}`;
    const ticks = bins.length > 8 ? [1, 2, 3].map((quarter) => Math.round(bins.length * quarter / 4)) : [];
    const tick = (index) => {
        const element = h("span.tick.faint", {}, short(Number(bins[index].from)));
        element.style.insetInlineStart = `${index / bins.length * 100}%`;
        return element;
    };
    const label = board.fields[0].name === "score" ? t("score") : board.fields[0].name;
    return h("figure.spread", {}, bars(bins.map((bin) => bin.members), marksOf({ bins, quantiles }, you),
        { label: t("bars", count(members)), title: t("howMany"), tip, labelWidth }),
    h("figcaption", {}, h("div.axis", {}, h("span", {}, score(bins[0].from)), ticks.map(tick),
        h("span", {}, score(bins[bins.length - 1].to))),
    h("p.axis-title", {}, h("bdi", {}, label), isLog ? [" · ", t("scaleLog")] : null)));
}

// member(): what the card shows now, or null; state(): that of the address, for the data
export async function spreadView(board, context, state, member, link) {
    const place = h("div", {});
    let numbersOpen = false;
    let spacing = "auto";

    // Even bins or decades, whichever is shown: the other one is a press away.
    const spacings = (isLog) => h("div.spacings", { role: "group", "aria-label": t("spacing") },
        [["even", !isLog], ["log", isLog]].map(([name, isOn]) => h("button.small", { type: "button",
            "data-key": name, "aria-pressed": String(isOn), onclick: () => {
                spacing = name;
                refresh().catch(context.refused);
            } }, t(name === "log" ? "spacingLog" : "spacingEven"))));

    async function refresh() {
        const spread = await api.histogram(board.name, board.db, spacing, state());
        const { members, bins, quantiles } = spread;
        if (members === 0) {
            replace(place, h("p.faint", {}, t(state().group.length > 0 ? "emptyGroup" : "emptyBoard")));
            return;
        }
        const you = member();
        const score = (text) => exact(text, board.fields[0].scale);
        const isOne = bins.length === 1 && bins[0].from === bins[0].to;
        const details = h("details", { open: numbersOpen, ontoggle: () => {
            numbersOpen = details.open;
        } }, h("summary", {}, t("numbers")),
        h("div.scrolls", { tabindex: "0", role: "region", "aria-label": t("numbers") }, h("table.plain", {},
            h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("scoresFrom")),
                h("th", { scope: "col" }, t("scoresTo")), h("th", { scope: "col" }, t("howMany")))),
            h("tbody", {}, bins.map((bin) => h("tr", {}, h("td", {}, score(bin.from)), h("td", {}, score(bin.to)),
                h("td", {}, count(bin.members))))))));
        replace(place, isOne ? h("p", {}, t("spreadOne", t("members", members), score(bins[0].from)))
            : [spacings(spread.isLog), spreadFigure(board, spread, you)],
        you ? h("p.you-here", {}, h("span.swatch", { "aria-hidden": "true" }),
            t("youAreHere", plainlyCalled(you, 60)), ": ",
            h("b", {}, score(you.scores[0]))) : null,
        h("h2.h3", {}, t("quantiles")),
        h("dl.quantiles", {}, quantiles.toSorted((a, b) => b.q - a.q).map((quantile) => h("div", {},
            h("dt", {}, t("quantile", Number(quantile.q))),
            h("dd", {}, h("b", {}, score(quantile.score)),
                h("a", { href: link(quantile.name), "data-keep": true }, called(quantile, 30)))))),
        details);
    }

    await refresh();
    const timer = setInterval(() => {
        if (!document.hidden) {
            refresh().catch(context.refused);
        }
    }, REFRESH_MS);
    return { element: h("section", { "aria-label": t("spreadTitle") }, place), refresh,
        close: () => clearInterval(timer) };
}
