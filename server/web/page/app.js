// The frame of the page: header, views by address, language, theme, keys, who is signed in.
//
// A view is a function (state, context) that returns {element, title, close(), update(state)}: close ends its
// streams and timers; update, if there is one, takes a state of the same view and returns whether it could.
import * as api from "./api.js";
import { parse, boardsAddress } from "./address.js";
import { h, icon, replace } from "./dom.js";
import { t, languages, chooseLanguage, language } from "./text.js";
import { showBoards } from "./boards.js";
import { showBoard } from "./board.js";
import { showServer } from "./server.js";
import { showLogin } from "./login.js";
import { showEmbed } from "./embed.js";

const THEMES = ["system", "light", "dark"];
const ICONS = {
    system: "M4 5h16v11H4zM9 20h6M12 16v4",
    light: "M12 8a4 4 0 100 8 4 4 0 000-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19"
        + "M5 19l1.4-1.4M17.6 6.4L19 5",
    dark: "M20 14.5A8.5 8.5 0 019.5 4 8.5 8.5 0 1020 14.5z",
    keys: "M3 6h18v12H3zM7 10h0M11 10h0M15 10h0M18 10h0M7 14h10",
};

// What the browser keeps; a browser that keeps nothing has the defaults.
const kept = {
    get: (name) => {
        try {
            return localStorage.getItem(`leaderboard.${name}`);
        } catch {
            return null;
        }
    },
    set: (name, value) => {
        try {
            localStorage.setItem(`leaderboard.${name}`, value);
        } catch { /* as it was */ }
    },
};

let view = null;
let liveNow = null; // whether what is shown follows the server; null: it does not mean to
let turn = 0; // counts navigations: a view that comes late is dropped
let who = { user: null, is_logged_in: false, can_login: true };
const main = h("main", { id: "main", tabindex: "-1" });

const views = { boards: showBoards, board: showBoard, server: showServer, login: showLogin };

const context = {
    go,
    refused: (error) => refused(error),
    signedIn: async () => {
        await learnWho();
        frame();
    },
    live: (isLive) => {
        liveNow = isLive;
        const sign = document.getElementById("live");
        if (sign) {
            sign.hidden = isLive === null;
            sign.classList.toggle("off", isLive === false);
            replace(sign, h("span.dot", { "aria-hidden": "true" }),
                h("span", {}, t(isLive === false ? "paused" : "live")));
            sign.title = t(isLive === false ? "pausedTitle" : "liveTitle");
        }
    },
};

async function learnWho() {
    try {
        who = await api.me();
    } catch {
        who = { user: null, is_logged_in: false, can_login: true };
    }
}

export function go(address, options = {}) {
    history[options.replace ? "replaceState" : "pushState"](null, "", address);
    return render(options.keep);
}

async function render(isInside = false) {
    const state = parse(location);
    if (view?.update?.(state)) {
        links();
        return;
    }
    const mine = ++turn;
    view?.close?.();
    view = null;
    context.live(null);
    let next;
    try {
        next = views[state.page] ? await views[state.page](state, context) : missing(t("noPage"));
    } catch (error) {
        next = failed(error);
    }
    if (mine !== turn) {
        next?.close?.();
        return;
    }
    if (next === null) {
        return; // it has gone elsewhere
    }
    view = next;
    replace(main, next.element);
    document.title = next.title ? `${next.title} · leaderboard` : "leaderboard";
    links();
    if (!isInside) {
        window.scrollTo(0, 0);
        if (started) {
            main.focus({ preventScroll: true });
        }
    }
}

// The same address, from the beginning: in another language, or for another user.
function renew(isInside) {
    view?.close?.();
    view = null;
    return render(isInside);
}

const missing = (text) => ({ title: text, element: h("section.middle", {}, h("h1", {}, text),
    h("p", {}, h("a.button", { href: boardsAddress() }, t("toBoards")))) });

// What stands in the place of a view that cannot be shown. Without rights: the login.
function failed(error) {
    if (error.status === 401) {
        toLogin();
        return null;
    }
    if (error.status === undefined) {
        throw error;
    }
    const text = { 0: t("offline"), 403: t("forbidden"), 404: t("notFound"), 503: t("busy") }[error.status]
        ?? error.message;
    const again = () => render(true);
    const timer = [0, 503].includes(error.status) ? setTimeout(again, 3000) : 0;
    return { title: text, close: () => clearTimeout(timer), element: h("section.middle", { role: "alert" },
        h("h1", {}, text), error.status === 403 ? h("p.faint", {}, error.message) : null,
        h("p.row", {}, h("button.primary", { type: "button", onclick: again }, t("again")),
            error.status === 403 && !who.is_logged_in && who.can_login
                ? h("a.button", { href: loginAddress() }, t("signIn"))
                : h("a.button", { href: boardsAddress() }, t("toBoards")))) };
}

// A request inside a view has failed: only a lost login matters to the whole page.
function refused(error) {
    if (error.status === 401) {
        toLogin();
    } else if (error.status === undefined && error.name !== "AbortError") {
        throw error;
    }
}

const loginAddress = () => `/login?to=${encodeURIComponent(location.pathname + location.search)}`;

function toLogin() {
    if (parse(location).page !== "login") {
        go(loginAddress(), { replace: true });
    }
}

function links() {
    const { page } = parse(location);
    for (const link of document.querySelectorAll("nav.views a")) {
        const here = link.dataset.page === page || link.dataset.page === "boards" && page === "board";
        link.toggleAttribute("aria-current", here);
        if (here) {
            link.setAttribute("aria-current", link.dataset.page === page ? "page" : "true");
        }
    }
}

async function signOut() {
    await api.logout().catch(refused);
    await learnWho();
    frame();
    renew();
}

function setTheme(theme) {
    document.documentElement.dataset.theme = THEMES.includes(theme) ? theme : "system";
}

function frame() {
    const themeNow = document.documentElement.dataset.theme;
    const themeTitle = t({ system: "themeSystem", light: "themeLight", dark: "themeDark" }[themeNow]);
    const other = Object.keys(languages).find((code) => !language().startsWith(code));
    const tools = h("div.tools", {},
        h("span.live", { id: "live", role: "status", hidden: true }),
        h("button.quiet", { type: "button", lang: other, onclick: () => {
            kept.set("language", other);
            chooseLanguage(other);
            frame();
            renew(true);
        } }, languages[other].name),
        h("button.quiet", { type: "button", title: `${t("theme")}: ${themeTitle}`,
            "aria-label": `${t("theme")}: ${themeTitle}`, onclick: () => {
                const next = THEMES[(THEMES.indexOf(themeNow) + 1) % THEMES.length];
                kept.set("theme", next);
                setTheme(next);
                const before = tools.querySelectorAll("button")[1];
                const hadFocus = document.activeElement === before;
                frame();
                if (hadFocus) {
                    document.querySelectorAll(".tools button")[1].focus();
                }
            } }, icon(ICONS[themeNow])),
        h("button.quiet.keys", { type: "button", title: t("keys"), "aria-label": t("keys"),
            onclick: showKeys }, icon(ICONS.keys)),
        who.is_logged_in ? h("button.quiet", { type: "button", title: t("signedInAs", who.user),
            onclick: signOut }, t("signOut")) : who.can_login ? h("a.quiet.button", { href: loginAddress() }, t("signIn")) : null);
    const header = h("header.top", {}, h("a.skip", { href: "#main" }, t("skip")),
        h("a.brand", { href: "/", "aria-label": "leaderboard" }, h("img", { src: "/icon.svg", alt: "", width: 28, height: 28 }),
            h("span", {}, "leaderboard")),
        h("nav.views", { "aria-label": "leaderboard" },
            h("a", { href: "/", "data-page": "boards" }, t("boards")),
            h("a", { href: "/server", "data-page": "server" }, t("server"))), tools);
    const footer = h("footer.bottom", {}, t("builtIn"));
    const spoken = document.getElementById("spoken") ?? h("div.sr", { id: "spoken", "aria-live": "polite" });
    document.body.replaceChildren(header, main, footer, spoken);
    context.live(liveNow);
    links();
}

function showKeys() {
    const row = (key, text) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)];
    const dialog = h("dialog", { "aria-labelledby": "keys-title", onclose: () => dialog.remove() },
        h("h2", { id: "keys-title" }, t("keys")),
        h("dl.keys", {}, row("/", t("keySearch")), row("n", t("keyNext")), row("p", t("keyPrevious")),
            row("?", t("keyHelp"))),
        h("label.row", {}, h("input", { type: "checkbox", checked: kept.get("keys") !== "off",
            onchange: (event) => kept.set("keys", event.target.checked ? "on" : "off") }), t("keysOn")),
        h("form.row", { method: "dialog" }, h("button.primary", {}, t("close"))));
    document.body.append(dialog);
    dialog.showModal();
}

function onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || kept.get("keys") === "off"
        || event.target.closest("input, textarea, select, dialog")) {
        return;
    }
    const act = { "/": () => document.querySelector("[data-key=search]")?.focus(), "?": showKeys,
        n: () => document.querySelector("[data-key=next]")?.click(),
        p: () => document.querySelector("[data-key=previous]")?.click() }[event.key];
    if (act) {
        event.preventDefault();
        act();
    }
}

// Links inside the page change the view, not the document.
function onClick(event) {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey
        || event.shiftKey || event.altKey || link.target || link.origin !== location.origin
        || ["none", "embed"].includes(parse(link).page)
        || link.hash !== "" && link.pathname === location.pathname) {
        return;
    }
    event.preventDefault();
    go(link.href, { keep: link.dataset.keep !== undefined });
}

let started = false;

async function start() {
    const state = parse(location);
    chooseLanguage(state.lang || kept.get("language"));
    if (state.page === "embed") {
        view = await showEmbed(state);
        document.body.replaceChildren(view.element);
        return;
    }
    setTheme(kept.get("theme"));
    window.addEventListener("popstate", () => render(true));
    document.addEventListener("keydown", onKey);
    document.addEventListener("click", onClick);
    await learnWho();
    frame();
    await render();
    started = true;
}

start();
