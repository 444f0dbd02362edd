// Scores are text, from the server to the screen: a JavaScript number would round them beyond 2^53.
import { language } from "./text.js";

let signs = null;
let signsOf = null;

// The signs that separate thousands and decimals in the page's language.
function separators() {
    if (signsOf !== language()) {
        signsOf = language();
        const parts = new Intl.NumberFormat(signsOf).formatToParts(-1234567.5);
        const sign = (type) => parts.find((part) => part.type === type)?.value ?? "";
        signs = { group: sign("group"), decimal: sign("decimal"), minus: "\u2212" };
    }
    return signs;
}

// "-1234567.5" as "−1,234,567.50" if scale, the decimals of its field, is 2; what is no decimal stays as it
// is. Digits are never changed: only zeros are added.
export function exact(text, scale = 0) {
    const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(String(text));
    if (match === null) {
        return String(text);
    }
    const { group, decimal, minus } = separators();
    const whole = match[2].replace(/\B(?=(\d{3})+$)/g, group);
    const decimals = (match[3] ?? "").padEnd(scale, "0");
    return (match[1] ? minus : "") + whole + (decimals === "" ? "" : decimal + decimals);
}

// Compare two decimals: less than 0, 0, or more than 0. Exactly: as integers of one scale.
export function compare(a, b) {
    const [x, y] = [a, b].map((text) => /^(-?\d+)(?:\.(\d+))?$/.exec(String(text)));
    const scale = Math.max((x[2] ?? "").length, (y[2] ?? "").length);
    const [p, q] = [x, y].map((parts) => BigInt(parts[1] + (parts[2] ?? "").padEnd(scale, "0")));
    return p < q ? -1 : p > q ? 1 : 0;
}
