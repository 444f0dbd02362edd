// The address says everything: the board, the page of it, the member, the view. What is no view's own
// (language, theme) is kept by the browser.
//
//     /                              the boards          ?match= text &place=61
//     /boards/NAME                   one board           ?place=101&count=25&member=ann&view=spread|periods|members|held
//                                    &hash=player:*&data=name,country&where=country:DE
//     /server                        the server
//     /login                         ?to= address
//     /embed/NAME                    for streams and wikis
//
// with ?db=N for the boards of another database. NAME and member are percent-encoded bytes.
import { nameOfKey } from "./names.js";

// The query as encoded text: URLSearchParams would turn bytes that are no UTF-8 into U+FFFD.
export function queryOf(search) {
    const query = new Map();
    for (const part of search.replace(/^\?/, "").split("&")) {
        const at = part.indexOf("=");
        if (at > 0) {
            query.set(part.slice(0, at), part.slice(at + 1));
        }
    }
    return query;
}

// Of where=TAG:VALUE {tag, value} as names; value: of empty text for members without one, null: there is no colon.
function choiceOf(encoded) {
    const { key } = nameOfKey(encoded);
    const at = key.indexOf("%3A");
    return at < 0 ? { tag: nameOfKey(key), value: null }
        : { tag: nameOfKey(key.slice(0, at)), value: nameOfKey(key.slice(at + 3)) };
}

const choicesOf = (search) => search.replace(/^\?/, "").split("&").filter((part) => part.startsWith("where="))
    .map((part) => choiceOf(part.slice(6)));

// A group of a board's members, [{tag, value}], as the values of where in an address.
export const groupWords = (group = []) => group.map(({ tag, value }) => (value ? `${tag.key}:${value.key}` : tag.key));

const plain = (query, name) => (query.has(name) ? nameOfKey(query.get(name)).text : "");

const whole = (query, name, least, most, otherwise) => {
    const text = query.get(name) ?? "";
    return /^\d{1,15}$/.test(text) ? Math.min(Math.max(Number(text), least), most) : otherwise;
};

export function parse(place) {
    const query = queryOf(place.search);
    const [, first, ...rest] = place.pathname.split("/");
    const db = whole(query, "db", 0, 1e6, 0);
    const name = rest.join("/");
    if (first === "" && rest.length === 0) {
        return { page: "boards", db, match: plain(query, "match"),
            place: whole(query, "place", 1, Number.MAX_SAFE_INTEGER, 1) };
    }
    if ((first === "boards" || first === "embed") && name !== "") {
        return {
            page: first === "boards" ? "board" : "embed",
            db,
            board: nameOfKey(name.replace(/\+/g, "%2B")),
            place: whole(query, "place", 1, Number.MAX_SAFE_INTEGER, 1),
            count: whole(query, "count", 1, 100, first === "embed" ? 10 : 25),
            member: query.has("member") ? nameOfKey(query.get("member")) : null,
            view: ["spread", "periods", "members", "held"].includes(query.get("view")) ? query.get("view") : "places",
            group: choicesOf(place.search),
            hash: plain(query, "hash"),
            data: plain(query, "data"),
            title: plain(query, "title"),
            theme: ["light", "dark", "clear"].includes(query.get("theme")) ? query.get("theme") : "",
            lang: query.get("lang") ?? "",
        };
    }
    if (first === "server" && rest.length === 0) {
        return { page: "server", db };
    }
    if (first === "login" && rest.length === 0) {
        const to = plain(query, "to");
        return { page: "login", db, to: /^\/(?![/\\])[^\u0000-\u001f]*$/.test(to) ? to : "/" };
    }
    return { page: "none", db };
}

export function boardsAddress(db, match, place = 1) {
    return address("/", { match: match && encodeURIComponent(match), place: place > 1 ? place : "", db });
}

// state: {db, place, count, member, view, group}; what is as usual is left out.
export function boardAddress(board, state = {}) {
    return address(`/boards/${board.key}`, {
        view: state.view === "places" ? "" : state.view,
        place: state.place > 1 ? state.place : "",
        count: state.count && state.count !== 25 ? state.count : "",
        member: state.member?.key,
        hash: state.hash && encodeURIComponent(state.hash),
        data: state.hash && encodeURIComponent(state.data),
        where: groupWords(state.group),
        db: state.db,
    });
}

function address(path, query) {
    const parts = Object.entries(query).flatMap(([name, value]) => [value].flat().filter(Boolean)
        .map((one) => `${name}=${one}`));
    return parts.length > 0 ? `${path}?${parts.join("&")}` : path;
}
