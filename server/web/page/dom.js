// Elements from JavaScript. Text becomes text nodes, never HTML: what a board or member is called
// cannot become part of the page. Nothing here or elsewhere sets innerHTML.

const SVG = "http://www.w3.org/2000/svg";

// Properties that are no attributes, or whose attribute is only their first value.
const properties = new Set(["value", "checked", "disabled", "hidden", "selected", "open"]);

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (value === undefined || value === null || value === false && !properties.has(name)) {
            continue;
        }
        if (name.startsWith("on")) {
            element.addEventListener(name.slice(2), value);
        } else if (properties.has(name)) {
            element[name] = value;
        } else {
            element.setAttribute(name, value === true ? "" : value);
        }
    }
    element.append(...children.flat(Infinity).filter((child) => child !== null
        && child !== undefined && child !== false));
    return element;
}

// h("p.note", {id: "x", onclick: f}, "text", element, [more]): <p class="note" id="x">...
export function h(tag, attributes, ...children) {
    const [name, ...classes] = tag.split(".");
    const element = document.createElement(name);
    if (classes.length > 0) {
        element.className = classes.join(" ");
    }
    return fill(element, attributes, children);
}

export function svg(tag, attributes, ...children) {
    const [name, ...classes] = tag.split(".");
    const element = document.createElementNS(SVG, name);
    if (classes.length > 0) {
        element.setAttribute("class", classes.join(" "));
    }
    return fill(element, attributes, children);
}

// A drawing of 24 by 24 that says nothing to a screen reader.
export function icon(path) {
    return svg("svg.icon", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: path }));
}

// What has the focus inside the parent, so that it can be found again in what takes its place; else null.
export function focusIn(parent) {
    const element = document.activeElement;
    return element !== parent && parent.contains(element) ? signOf(element) : null;
}

const signOf = (element) => element.dataset.key ?? `${element.tagName} ${element.textContent}`;

// Focus what has this sign, if it is there.
export function focusOn(parent, sign) {
    const found = sign !== null && Array.from(parent.querySelectorAll("a, button, input, select, summary"))
        .find((element) => signOf(element) === sign);
    found?.focus?.({ preventScroll: true });
    return Boolean(found);
}

// Other children for a parent; the focus stays where it was.
export function replace(parent, ...children) {
    const focused = focusIn(parent);
    parent.replaceChildren(...children.flat(Infinity).filter((child) => child));
    focusOn(parent, focused);
}

// Say something to a screen reader, at most once in five seconds: the newest, if there was more.
let spoken = 0;
let waiting = null;

export function say(text) {
    const place = document.getElementById("spoken");
    const speak = () => {
        waiting = null;
        spoken = Date.now();
        place.textContent = place.dataset.next;
    };
    place.dataset.next = text;
    if (waiting === null) {
        waiting = setTimeout(speak, Math.max(50, spoken + 5000 - Date.now()));
    }
}
