// Small plots of the last hour, and the bars of a distribution, as SVG. What they show is in words too.
import { h, svg } from "./dom.js";
import { t, moment, short } from "./text.js";

const WIDTH = 300;
const HEIGHT = 64;

// points: [[unix ms, number or null], ...] in order; show(number): text of a value
export function plot(title, points, show) {
    const known = points.filter(([, value]) => value !== null && value !== undefined);
    const now = known.length > 0 ? known[known.length - 1][1] : null;
    const figure = (...content) => h("figure.plot", {}, h("figcaption", {}, h("span", {}, title),
        h("b", {}, now === null ? "–" : show(now))), content);
    if (known.length < 2) {
        return figure(h("p.faint.small", {}, t("noHistory")));
    }
    const values = known.map(([, value]) => value);
    const most = Math.max(...values);
    const top = most > 0 ? most * 1.08 : 1;
    const [begin, end] = [points[0][0], points[points.length - 1][0]];
    const x = (time) => (time - begin) / Math.max(1, end - begin) * WIDTH;
    const y = (value) => HEIGHT - 2 - value / top * (HEIGHT - 6);
    const line = known.map(([time, value], index) => `${index === 0 ? "M" : "L"}${x(time).toFixed(1)} ${
        y(value).toFixed(1)}`).join("");
    const area = `${line}L${x(known[known.length - 1][0]).toFixed(1)} ${HEIGHT}L${x(known[0][0]).toFixed(1)} ${
        HEIGHT}Z`;
    const words = `${title}: ${t("newest", show(now))}, ${t("most", show(most))}, ${
        t("least", show(Math.min(...values)))}`;
    const readout = h("span.readout", { "aria-hidden": "true" });
    const cursor = svg("line.cursor", { y1: 0, y2: HEIGHT, x1: -9, x2: -9 });
    const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
        "aria-label": words }, svg("path.area", { d: area }), svg("path.line", { d: line }), cursor);
    drawing.addEventListener("pointermove", (event) => {
        const box = drawing.getBoundingClientRect();
        const time = begin + (event.clientX - box.left) / box.width * (end - begin);
        const near = known.reduce((best, point) => (Math.abs(point[0] - time) < Math.abs(best[0] - time)
            ? point : best));
        cursor.setAttribute("x1", x(near[0]));
        cursor.setAttribute("x2", x(near[0]));
        readout.textContent = `${moment(new Date(near[0]), "M")} · ${show(near[1])}`;
    });
    drawing.addEventListener("pointerleave", () => {
        cursor.setAttribute("x1", -9);
        cursor.setAttribute("x2", -9);
        readout.textContent = "";
    });
    return figure(drawing, h("div.range", {}, h("span", {}, moment(new Date(begin), "M")), readout,
        h("span", {}, t("most", show(most)))));
}

// Round numbers up to the most: 0, 20, 40, 60.
function rounds(most) {
    const size = 10 ** Math.floor(Math.log10(Math.max(1, most / 4)));
    const step = [1, 2, 5, 10].map((times) => times * size).find((each) => most / each <= 4);
    return Array.from({ length: Math.floor(most / step) + 1 }, (_, index) => index * step);
}

// Labels of marks, above the bars: those that would touch are above each other. width: of one, as a share of all.
function markLabels(marks, bins, width) {
    const ends = []; // of each line of labels, from below
    const spans = marks.toSorted((a, b) => a.index - b.index).map(({ index, kind, label }) => {
        const at = (index + 0.5) / bins;
        const align = at < width / 2 ? "start" : at > 1 - width / 2 ? "end" : "center";
        const begin = { start: index / bins, center: at - width / 2, end: (index + 1) / bins - width }[align];
        const free = ends.findIndex((end) => end <= begin);
        const line = free < 0 ? ends.length : free;
        ends[line] = begin + width;
        const span = h(`span.mark-label.${kind}`, {}, h("bdi", {}, label));
        span.style.insetInlineStart = `${begin * 100}%`;
        span.style.inlineSize = `${width * 100}%`;
        span.style.bottom = `${line * 1.3}em`;
        span.style.textAlign = align;
        return span;
    });
    const element = h("div.mark-labels", { "aria-hidden": "true" }, spans);
    element.style.height = `${ends.length * 1.3}em`;
    return element;
}

// Bars over an axis of round numbers, with labelled marks: heights: numbers; marks: [{index, kind, label}] above the bar
// that they are in; title: of the axis; labelWidth: of a mark's, as a share of the width.
export function bars(heights, marks, { label, title, tip, labelWidth }) {
    const [width, height, top] = [heights.length * 20, 200, 14];
    const most = Math.max(1, ...heights);
    const ticks = rounds(most).map((value) => ({ value, y: height - value / most * (height - top) }));
    const bar = (value, index) => {
        const tall = value === 0 ? 0 : Math.max(2, value / most * (height - top));
        const isMarked = marks.some((mark) => mark.kind === "you" && mark.index === index);
        return svg("g", {}, svg("title", {}, tip(index)),
            svg("rect.hit", { x: index * 20, y: top, width: 20, height: height - top }),
            svg(isMarked ? "rect.bar.you" : "rect.bar", { x: index * 20 + 1.5, y: height - tall, width: 17,
                height: tall, rx: 2 }));
    };
    const line = ({ index, kind }) => svg(`line.mark.${kind}`, { x1: index * 20 + 10, x2: index * 20 + 10,
        y1: 0, y2: height });
    const rule = ({ y }) => svg("line.rule", { x1: 0, x2: width, y1: y, y2: y });
    const tickLabel = ({ value, y }) => {
        const element = h("span", {}, short(value));
        element.style.top = `${y / height * 100}%`;
        return element;
    };
    return h("div.plotted", {}, h("span.axis-title", {}, title), markLabels(marks, heights.length, labelWidth),
        h("div.over-axis", {}, h("div.y-axis", { "aria-hidden": "true" }, ticks.map(tickLabel)),
            svg("svg.bars", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
                "aria-label": label }, ticks.map(rule), heights.map(bar), marks.map(line))));
}

