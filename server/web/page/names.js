// Names of boards and members: any bytes, up to 64 KiB.
//
// Here a name is {key, text, bytes}
//     key     its bytes percent-encoded, as addresses have them; what names are told apart by
//     text    for people; of what is no UTF-8 the bytes are \xNN
//     bytes   whether it is no UTF-8
import { h } from "./dom.js";
import { t, count } from "./text.js";

const SHOWN_MAX = 80; // what a name shows of itself, in characters as people count them
const TITLE_MIN = 16; // longer ones may be cut by a narrow screen: hovering shows all
const TITLE_MAX = 1000;
const ADDRESS_MAX = 6000; // longer keys are in no link: servers and proxies refuse such addresses

const encodeByte = (byte) => (/[A-Za-z0-9_.~-]/.test(String.fromCharCode(byte))
    ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`);

const encodeText = (text) => encodeURIComponent(text)
    .replace(/[!'()*]/g, (sign) => encodeByte(sign.charCodeAt(0)));

// As the API has names: a text and, if the bytes are no UTF-8, these in base64.
export function nameOf(text, base64) {
    if (base64 === undefined) {
        return { key: encodeText(text), text, bytes: false };
    }
    const bytes = Uint8Array.from(atob(base64), (sign) => sign.charCodeAt(0));
    return { key: Array.from(bytes, encodeByte).join(""), text: readable(bytes), bytes: true };
}

// A name from a part of an address.
export function nameOfKey(encoded) {
    const bytes = [];
    const source = encoded.replace(/\+/g, "%20");
    for (let i = 0; i < source.length; i++) {
        const hex = source.slice(i + 1, i + 3);
        if (source[i] === "%" && /^[0-9A-Fa-f]{2}$/.test(hex)) {
            bytes.push(parseInt(hex, 16));
            i += 2;
        } else {
            bytes.push(...new TextEncoder().encode(source[i]));
        }
    }
    const array = Uint8Array.from(bytes);
    const key = Array.from(array, encodeByte).join("");
    try {
        return { key, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(array),
            bytes: false };
    } catch {
        return { key, text: readable(array), bytes: true };
    }
}

// Printable ASCII as it is, other bytes as \xNN.
function readable(bytes) {
    return Array.from(bytes, (byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte)
        : `\\x${byte.toString(16).padStart(2, "0")}`)).join("");
}

export const hasAddress = (name) => name.key.length <= ADDRESS_MAX;

// Browsers take these out of a path, however they are written: no board of this name has an address.
export const isDots = (name) => name.key === "." || name.key === "..";

// The first characters of a text: emoji of several parts and letters with marks stay whole.
function cut(text, length) {
    if (text.length <= length) {
        return text;
    }
    const window = text.slice(0, length * 8);
    const parts = typeof Intl.Segmenter === "function"
        ? Array.from(new Intl.Segmenter().segment(window), (part) => part.segment)
        : Array.from(window);
    const shown = parts.slice(0, length).join("");
    return shown.length < text.length ? shown.slice(0, length * 4) : text;
}

// What shows nothing, or turns what is beside it: controls, formats, blanks at an end or beside each other, all blanks
// but the usual one. Emoji of several parts stay whole, and so do joiners where Arabic and Indic letters need them.
const SIGNS = new RegExp([
    String.raw`(?<kept>\p{RGI_Emoji}|(?<=\p{Script=Arabic})\u200c(?=\p{Script=Arabic})`,
    String.raw`|(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d])`,
    String.raw`|[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]`,
    String.raw`|^\p{Zs}+|\p{Zs}+$|\p{Zs}{2,}|[\p{Zs}--\u0020]`].join(""), "gv");
const BLANK = "\u2423";

const codeOf = (sign) => `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// [[text, whether it is a sign that stands for what shows nothing], ...]
function visible(text) {
    const parts = [];
    let at = 0;
    for (const match of text.matchAll(SIGNS)) {
        if (match.groups.kept === undefined) {
            parts.push([text.slice(at, match.index), false],
                ...Array.from(match[0], (sign) => [sign === " " ? BLANK : codeOf(sign), true]));
            at = match.index + match[0].length;
        }
    }
    return [...parts, [text.slice(at), false]].filter(([part]) => part !== "");
}

// Alphabets with letters that look like Latin ones, and those letters.
const ALPHABETS = [
    ["Cyrillic", /\p{Script=Cyrillic}/u, /^[АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝӏьѵ]*$/u],
    ["Greek", /\p{Script=Greek}/u, /^[ΑΒΕΖΗΙΚΜΝΟΡΤΥΧανοικρυ]*$/u],
    ["Armenian", /\p{Script=Armenian}/u, /^[ՍՏՕօհոսցքս]*$/u],
    ["Cherokee", /\p{Script=Cherokee}/u, /^\p{Script=Cherokee}*$/u],
];

// What a name may be taken for another one by: letters of several alphabets, or of another one that all look Latin;
// letters and marks that are usually one character.
function doubts(text) {
    const letters = text.replace(/[^\p{L}]/gu, "");
    const isLatin = /\p{Script=Latin}/u.test(letters);
    const found = ALPHABETS.filter(([, script]) => script.test(letters));
    const isMixed = found.length + isLatin > 1;
    return [...found.filter(([, , alike]) => isMixed || alike.test(letters)).map(([name]) => t("lettersOf")[name]),
        ...text.normalize("NFC") === text ? [] : [t("notUsual")]];
}

// <bdi>: the direction of a name stays inside it.
export function nameText(name, length = SHOWN_MAX) {
    if (name.text === "") {
        return h("i.empty", {}, t("emptyName"));
    }
    const shown = cut(name.text, length);
    const isCut = shown.length < name.text.length;
    return h(name.bytes ? "bdi.bytes" : "bdi", { title: name.bytes ? t("notUtf8")
        : name.text.length > TITLE_MIN ? plainName(name, TITLE_MAX) : null },
    visible(shown).map(([part, isSign]) => (isSign ? h("span.sign", { title: t("signTitle") }, part) : part)),
    isCut ? "…" : "", doubts(shown).map((text) => h("span.doubt", { title: t("doubtTitle") }, text)));
}

// The same as a text, where elements cannot be. Only what runs from right to left is isolated: browsers choose an
// option by its first letter.
export function plainName(name, length = SHOWN_MAX) {
    const shown = cut(name.text, length);
    const text = [visible(shown).map(([part, isSign]) => (isSign && part !== BLANK ? `‹${part}›` : part)).join(""),
        shown.length < name.text.length ? "…" : "", ...doubts(shown).map((doubt) => ` (${doubt})`)].join("");
    return /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(text)
        ? `\u2068${text}\u2069` : text;
}

// A text of somebody's that is no name: a field of a hash.
export const strangersText = (text, length) => nameText(nameOf(String(text)), length);

// How a member is called: by the first of its data, or by its name.
export const called = (row, length) => (row.data[0] ? strangersText(row.data[0]) : nameText(row.name, length));

// The same as a text.
export const plainlyCalled = (row, length) => plainName(row.data[0] ? nameOf(String(row.data[0])) : row.name, length);

// A member's picture over the first letter of what it is called; null where no pictures are shown.
export function face(row) {
    if (row.picture === undefined) {
        return null;
    }
    const image = row.picture && h("img", { src: row.picture, alt: "", loading: "lazy", decoding: "async",
        onerror: () => image.remove() });
    const [first] = visible(String(row.data[0] || row.name.text)).filter(([, isSign]) => !isSign);
    return h("span.face", { "aria-hidden": "true" }, first ? cut(first[0].trim(), 1) : "", image);
}

// A button that shows all of a long name; nothing for a short one.
export function wholeName(name) {
    if (cut(name.text, SHOWN_MAX) === name.text) {
        return null;
    }
    return h("button.quiet.small", { type: "button", onclick: (event) => {
        event.preventDefault();
        event.stopPropagation();
        showWhole(name);
    } }, t("showAll"));
}

function showWhole(name) {
    const size = name.key.replace(/%[0-9A-F]{2}/g, "x").length;
    const text = h("textarea", { readonly: true, rows: 12, "aria-label": t("wholeName"), value: name.text,
        dir: "auto", spellcheck: "false" });
    const dialog = h("dialog", { "aria-labelledby": "whole-title", onclose: () => dialog.remove() },
        h("h2", { id: "whole-title" }, t("wholeName")),
        h("p.faint", {}, t("bytesLong", count(size))), text,
        h("form.row", { method: "dialog" },
            h("button", { type: "button", onclick: () => copy(text) }, t("copy")),
            h("button.primary", {}, t("close"))));
    document.body.append(dialog);
    dialog.showModal();
}

// What an element says, or what is in a field.
export function copy(element) {
    if (element.select) {
        element.select();
    } else {
        getSelection().selectAllChildren(element);
    }
    if (navigator.clipboard) {
        navigator.clipboard.writeText(element.value ?? element.textContent).catch(() => {});
    } else {
        document.execCommand("copy");
    }
}
