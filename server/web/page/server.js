// How the server is: what counts now, the last hour as small plots, the commands that took long.
import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { plot } from "./plot.js";
import { t, count, short, bytes, microseconds, duration, moment, wholeMoment } from "./text.js";

const HISTORY_MS = 10000;

export async function showServer(state, context) {
    const tiles = h("dl.tiles", {});
    const plots = h("div.plots", {});
    const slow = h("div.scrolls", { tabindex: "0", role: "region", "aria-label": t("slowlog") });

    const drawTiles = (figures) => replace(tiles, tilesOf(figures));

    async function drawHistory() {
        const [past, log] = await Promise.all([api.history(), api.slowlog()]);
        replace(plots, plotsOf(past));
        replace(slow, slowTable(log.entries));
    }

    drawTiles(await api.server());
    await drawHistory();
    const stop = api.followServer({ take: drawTiles, told: context.live, refused: context.refused });
    const timer = setInterval(() => {
        if (!document.hidden) {
            drawHistory().catch(context.refused);
        }
    }, HISTORY_MS);
    return {
        title: t("serverTitle"),
        element: h("section", {}, h("div.title", {}, h("h1", {}, t("serverTitle"))),
            h("h2.sr", {}, t("figures")), tiles, h("h2", {}, t("lastHour")), plots,
            h("h2", {}, t("slowlog")), slow),
        close: () => {
            clearInterval(timer);
            stop();
        },
    };
}

function tile(label, value, ...rest) {
    return h("div.tile", {}, h("dt", {}, label), h("dd", {}, h("b", {}, value),
        rest.filter(Boolean).map((text) => h("span.faint.small", {}, text))));
}

function tilesOf(figures) {
    const { latency, memory, journal } = figures;
    return [
        tile(t("operations"), short(figures.operations_per_second)),
        tile(t("latency"), microseconds(latency.p50_us), `99 %: ${microseconds(latency.p99_us)}`,
            `99.9 %: ${microseconds(latency.p999_us)}`),
        tile(t("tick"), microseconds(figures.tick_max_us)),
        tile(t("memory"), bytes(memory.used), memory.limit > 0 ? t("ofLimit", bytes(memory.limit)) : t("noLimit"),
            t("peak", bytes(memory.peak))),
        tile(t("clients"), count(figures.clients)),
        tile(t("journal"), !journal.enabled ? t("journalOff") : journal.healthy ? t("journalOk") : t("journalBad"),
            journal.enabled ? bytes(journal.size) : null),
        tile(t("keysFigure"), count(figures.keys)),
        tile(t("uptime"), duration(figures.uptime_s * 1000), `${t("version")} ${figures.version}`),
    ];
}

function plotsOf(past) {
    const series = (name) => past.points.map((point) => [new Date(point.at).getTime(), point[name] ?? null]);
    return [plot(t("operations"), series("operations_per_second"), (n) => short(n)),
        plot(`${t("latency")}, 99 %`, series("p99_us"), microseconds),
        plot(t("tick"), series("tick_us"), microseconds),
        plot(t("memory"), series("memory"), bytes),
        plot(t("clients"), series("clients"), (n) => short(n))];
}

function slowTable(entries) {
    if (entries.length === 0) {
        return h("p.faint", {}, t("slowNone"));
    }
    return h("table.plain", {}, h("thead", {}, h("tr", {}, ["slowWhen", "slowTook", "slowWhat", "slowWho"]
        .map((key) => h("th", { scope: "col" }, t(key))))),
    h("tbody", {}, entries.map((entry) => h("tr", {},
        h("td", {}, h("time", { datetime: entry.at, title: wholeMoment(new Date(entry.at)) },
            moment(new Date(entry.at)))),
        h("td", {}, microseconds(entry.us)),
        h("td.command", {}, h("code", {}, entry.command.map(String).join(" ").slice(0, 300))),
        h("td", {}, h("bdi", {}, entry.client))))));
}
