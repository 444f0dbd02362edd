// How the server is: what counts now, the last hour as small plots, the commands that took the most time
// together, and those that took long once.
import * as api from "./api.js";
import { h, replace } from "./dom.js";
import { strangersText } from "./names.js";
import { plot } from "./plot.js";
import { t, count, short, bytes, microseconds, percent, duration, moment, wholeMoment } from "./text.js";

const HISTORY_MS = 10000;
const SLOW_MAX = 25;
const COMMAND_MAX = 300; // characters of a slow one

export async function showServer(state, context) {
    const tiles = h("dl.tiles", {});
    const plots = h("div.plots", {});
    const region = (name) => h("div.scrolls", { tabindex: "0", role: "region", "aria-label": t(name) });
    const replicas = region("replicas");
    const replicasPart = h("div", { hidden: true }, h("h2", {}, t("replicas")), replicas);
    const commands = region("commands");
    const slow = region("slowlog");
    const canSeeSlow = (await api.me()).can_see_slowlog;

    function draw(figures) {
        replace(tiles, tilesOf(figures));
        replicasPart.hidden = figures.replication.replica_count === 0;
        replace(replicas, figures.replication.replica_count > 0 ? replicaTable(figures.replication) : []);
        replace(commands, commandTable(figures.commands));
    }

    async function drawPast() {
        replace(plots, plotsOf((await api.history()).points));
        if (canSeeSlow) {
            replace(slow, slowTable((await api.slowlog(SLOW_MAX)).entries));
        }
    }

    draw(await api.server());
    await drawPast();
    const stop = api.followServer({ take: draw, told: context.live, refused: context.refused });
    const timer = setInterval(() => {
        if (!document.hidden) {
            drawPast().catch(context.refused);
        }
    }, HISTORY_MS);
    return {
        title: t("serverTitle"),
        element: h("section", {}, h("div.title", {}, h("h1", {}, t("serverTitle"))),
            h("h2.sr", {}, t("figures")), tiles, replicasPart, h("h2", {}, t("lastHour")), plots,
            canSeeSlow ? [h("h2", {}, t("slowlog")), slow] : null,
            h("h2", {}, t("commands")), commands),
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
    const { latency, memory, journal, tick, databases } = figures;
    const sum = (name) => databases.reduce((total, database) => total + database[name], 0);
    return [
        tile(t("operations"), short(figures.operations_per_second),
            t("inAndOut", bytes(figures.input_bytes_per_second), bytes(figures.output_bytes_per_second))),
        tile(t("latency"), microseconds(latency.p50_us), `99\u202f%: ${microseconds(latency.p99_us)}`,
            `99.9\u202f%: ${microseconds(latency.p999_us)}`),
        tile(t("tick"), microseconds(tick.p99_us), t("longest", microseconds(tick.longest_us))),
        tile(t("memory"), bytes(memory.used), memory.limit > 0 ? t("ofLimit", bytes(memory.limit)) : t("noLimit"),
            t("peak", bytes(memory.peak))),
        tile(t("clients"), count(figures.clients), t("ofLimit", count(figures.clients_limit)),
            t("viewers", figures.web_connections)),
        tile(t("journal"), !journal.enabled ? t("journalOff") : journal.ok ? t("journalOk") : t("journalBad"),
            journal.enabled ? bytes(journal.size) : null,
            journal.enabled ? t("syncs", microseconds(journal.sync_p99_us)) : null,
            figures.writable ? null : t("notWritable")),
        replicationTile(figures.replication),
        tile(t("boards"), count(sum("boards")), t("members", sum("members")), t("keysCount", sum("keys"))),
        tile(t("uptime"), duration(figures.uptime_ms), `${t("version")} ${figures.version}`),
    ];
}

function replicationTile({ role, failing_over: isFailingOver, master, replica_count: replicas,
    replicas: shown, sync }) {
    const online = shown.filter((replica) => replica.state === "online").length;
    const copied = master && master.link === "sync" && master.copy_size > 0
        ? percent(Math.min(1, master.copied_size / master.copy_size)) : null;
    return tile(t("replication"), t(role === "master" ? "roleMaster" : "roleReplica"),
        isFailingOver ? t("failingOver") : null,
        master ? t("ofMaster", master.address) : null,
        master ? [t("links")[master.link], copied].filter(Boolean).join(" ") : null,
        master && master.link !== "connected" ? t("linkDown", duration(master.down_ms)) : null,
        master && master.unapplied_groups > 0 ? t("behind", master.unapplied_groups) : null,
        master?.error ?? null,
        replicas > 0 || !master ? t("replicasCount", replicas) : null,
        replicas > shown.length ? null : online < replicas ? t("replicasOnline", online) : null,
        sync ? t("syncStates", sync) : null);
}

function replicaTable({ replicas, replica_count: all }) {
    return [table(["replicaAddress", "replicaState", "replicaBehind", "replicaHeard"],
        replicas.map((replica) => h("tr", {},
            h("td", {}, h("bdi", {}, replica.address)),
            h("td", {}, t("replicaStates")[replica.state]),
            h("td", {}, replica.state === "online" ? t("behind", replica.lag_groups) : ""),
            h("td", {}, t("ago", duration(replica.heard_ms)))))),
    all > replicas.length ? h("p.faint.small", {}, t("replicasMore", all - replicas.length)) : null];
}

function plotsOf(points) {
    const series = (name) => points.map((point) => [new Date(point.at).getTime(), point[name]]);
    return [plot(t("operations"), series("operations_per_second"), (n) => short(n)),
        plot(`${t("latency")}, 99\u202f%`, series("p99_us"), microseconds),
        plot(t("tick"), series("tick_us"), microseconds),
        plot(t("memory"), series("memory"), bytes),
        plot(t("clients"), series("clients"), (n) => short(n)),
        plot(t("membersLabel"), series("members"), (n) => short(n))];
}

const table = (names, lines) => h("table.plain", {},
    h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, t(name))))), h("tbody", {}, lines));

// Each word keeps its direction: numbers behind a name from right to left would change places with it.
function wordsOf(command) {
    const words = [];
    let left = COMMAND_MAX;
    for (const word of command) {
        if (left > 0) {
            words.push(words.length > 0 ? " " : "", word === "" ? h("bdi", {}) : strangersText(word, left));
            left -= word.length + 1;
        }
    }
    return words;
}

function slowTable(entries) {
    return entries.length === 0 ? h("p.faint", {}, t("slowNone"))
        : table(["slowWhen", "slowTook", "slowWhat", "slowWho"], entries.map((entry) => h("tr", {},
            h("td", {}, h("time", { datetime: entry.at, title: wholeMoment(new Date(entry.at)) },
                moment(new Date(entry.at)))),
            h("td", {}, microseconds(entry.us)),
            h("td.command", {}, h("code", {}, wordsOf(entry.command))),
            h("td", {}, h("bdi", {}, entry.name || entry.client)))));
}

function commandTable(commands) {
    return table(["slowWhat", "calls", "failed", "mean", "p99"], commands.slice(0, 10).map((command) => h("tr", {},
        h("td", {}, h("code", {}, command.name)), h("td", {}, count(command.calls)),
        h("td", {}, count(command.failed)), h("td", {}, microseconds(command.mean_us)),
        h("td", {}, microseconds(command.p99_us)))));
}
