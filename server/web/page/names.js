// Names of boards and members: any bytes, up to 64 KiB.
//
// Here a name is {key, text, bytes}
//     key     its bytes percent-encoded, as addresses have them; what names are told apart by
//     text    for people; of what is no UTF-8 the bytes are \xNN
//     bytes   whether it is no UTF-8
import { h } from "./dom.js";
import { t, count } from "./text.js";

const SHOWN_MAX = 80; // what a name shows of itself, in characters as people count them
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

// Characters that show nothing get a picture: a name of spaces would be invisible.
function visible(text) {
    const shown = text.replace(/[\u0000-\u001f]/g, (sign) => String.fromCharCode(0x2400 + sign.charCodeAt(0)))
        .replace(/\u007f/g, "\u2421");
    return shown.trim() === "" ? shown.replace(/\s/gu, "\u2423") : shown;
}

// <bdi>: the direction of a name stays inside it.
export function nameText(name, length = SHOWN_MAX) {
    if (name.text === "") {
        return h("i.empty", {}, t("emptyName"));
    }
    const shown = cut(name.text, length);
    const isCut = shown.length < name.text.length;
    return h(name.bytes ? "bdi.bytes" : "bdi", { title: name.bytes ? t("notUtf8") : null },
        visible(shown), isCut ? "…" : "");
}

// The same as a text, where elements cannot be. Only what runs from right to left is isolated: browsers choose an
// option by its first letter.
export function plainName(name, length = SHOWN_MAX) {
    const shown = cut(name.text, length);
    const text = `${visible(shown).replace(/[\u202a-\u202e\u2066-\u2069]/g, "")}${
        shown.length < name.text.length ? "…" : ""}`;
    return /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(text)
        ? `\u2068${text}\u2069` : text;
}

// How a member is called: by the first of its data, or by its name.
export const called = (row, length) => (row.data[0] ? h("bdi", {}, String(row.data[0]).slice(0, 120))
    : nameText(row.name, length));

// A member's picture over the first letter of what it is called; null where no pictures are shown.
export function face(row) {
    if (row.picture === undefined) {
        return null;
    }
    const image = row.picture && h("img", { src: row.picture, alt: "", loading: "lazy", decoding: "async",
        onerror: () => image.remove() });
    return h("span.face", { "aria-hidden": "true" }, cut(visible(String(row.data[0] || row.name.text)).trim(), 1),
        image);
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

function copy(text) {
    text.select();
    if (navigator.clipboard) {
        navigator.clipboard.writeText(text.value).catch(() => {});
    } else {
        document.execCommand("copy");
    }
}
