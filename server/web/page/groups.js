// Which group of a board's members is shown: a selector for each tag. Counts are of what one would see with another
// value of that tag.
import { h, replace } from "./dom.js";
import { nameOf, nameText, plainName } from "./names.js";
import { t } from "./text.js";

const SHOWN_MAX = 40;
const ANY = "";
const SEVERAL = "several"; // of one tag, which only an address can ask for
const OTHER = "other"; // a value that is not in the list, to be typed
const optionOf = (value) => `=${value.key}`;

const isOf = (choice, tag) => choice.tag.text.toLowerCase() === tag.name.toLowerCase();
const valueText = (value) => (value.text === "" ? t("noValue") : plainName(value, SHOWN_MAX));

// What is chosen, behind the name of the board.
export function groupText(group) {
    return group.map(({ value }) => [" · ", value === null || value.text === "" ? t("noValue")
        : nameText(value, SHOWN_MAX)]);
}

// {element, draw()}: draw is called when the board's tags or the state are others. choose: told the group; everybody():
// the address without one.
export function groupChoice(board, state, choose, everybody) {
    const element = h("div.groups", { role: "group", "aria-label": t("group") });
    const all = h("a.button", { "data-keep": true, "data-key": "everybody" }, t("everybody"));
    const selectors = new Map(); // by the tag's name
    let shown = null;

    const others = (tag) => state().group.filter((choice) => !isOf(choice, tag));
    const chosen = (tag) => state().group.filter((choice) => isOf(choice, tag) && choice.value !== null)
        .map(({ value }) => value);

    // [value, text] of each option.
    function optionsOf(tag) {
        const values = chosen(tag);
        const listed = new Map(tag.top.map(({ value, members }) => [optionOf(value),
            tag.isPart ? valueText(value) : t("valueCount", valueText(value), members)]));
        if (tag.without > 0 && !tag.isPart) {
            listed.set(optionOf(nameOf("")), t("valueCount", t("noValue"), tag.without));
        }
        if (values.length === 1 && !listed.has(optionOf(values[0]))) {
            listed.set(optionOf(values[0]), valueText(values[0]));
        }
        return [[ANY, t("anyValue")], ...values.length > 1 ? [[SEVERAL, values.map(valueText).join(", ")]] : [],
            ...listed, ...tag.values > tag.top.length ? [[OTHER, t("otherValue")]] : []];
    }

    function make(tag) {
        const show = (isTyped) => {
            form.hidden = !isTyped;
            (isTyped ? input : select).focus();
        };
        const input = h("input", { name: "value", required: true, maxlength: 64, size: 10, autocomplete: "off",
            spellcheck: "false", autocapitalize: "none", "aria-label": t("valueOf", tag.name),
            onkeydown: (event) => event.key === "Escape" && show(false) });
        const form = h("form", { hidden: true, onsubmit: (event) => {
            event.preventDefault();
            choose([...others(tag), { tag: nameOf(tag.name), value: nameOf(input.value) }]);
            input.value = "";
            show(false);
        } }, input, h("button", {}, t("apply")));
        const select = h("select", { "data-key": `tag ${tag.name}`, onchange: () => {
            const { value } = select;
            if (value === OTHER) {
                select.value = entry.now;
                show(true);
            } else if (value !== SEVERAL) {
                const option = entry.values.get(value);
                choose([...others(tag), ...option ? [{ tag: nameOf(tag.name), value: option }] : []]);
            }
        } });
        const entry = { select, options: "", now: ANY, values: new Map(), isOpen: () => document.activeElement === select,
            element: h("div.group", {}, h("label", {}, h("bdi", {}, tag.name), select), form) };
        return entry;
    }

    function write(tag) {
        const entry = selectors.get(tag.name);
        const values = chosen(tag);
        const options = optionsOf(tag);
        const now = values.length === 0 ? ANY : values.length > 1 ? SEVERAL : optionOf(values[0]);
        // A list that may be open stays as it is, unless something was chosen.
        if (JSON.stringify(options) !== entry.options && !(entry.isOpen() && entry.now === now)) {
            entry.options = JSON.stringify(options);
            entry.select.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
        }
        entry.values = new Map([...tag.top.map(({ value }) => value), nameOf(""), ...values]
            .map((value) => [optionOf(value), value]));
        entry.now = now;
        entry.select.value = now;
    }

    function draw() {
        const names = board.tags.map((tag) => tag.name).join();
        if (names !== shown) {
            shown = names;
            board.tags.forEach((tag) => selectors.has(tag.name) || selectors.set(tag.name, make(tag)));
            replace(element, board.tags.map((tag) => selectors.get(tag.name).element), all);
        }
        board.tags.forEach(write);
        all.href = everybody();
        all.hidden = state().group.length === 0;
        element.hidden = board.tags.length === 0 && all.hidden;
    }

    draw();
    return { element, draw };
}
