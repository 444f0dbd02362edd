// Small plots of the last hour, and the bars of a distribution, as SVG. What they show is in words too.
import { h, svg } from "./dom.js";
import { t, moment } from "./text.js";

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

// Bars: heights: numbers; marks: [{index, kind, label}] above the bar that they are in.
export function bars(heights, marks, label, tip) {
    const [width, height, top] = [heights.length * 20, 200, 34];
    const most = Math.max(1, ...heights);
    const bar = (value, index) => {
        const tall = value === 0 ? 0 : Math.max(2, value / most * (height - top));
        const isMarked = marks.some((mark) => mark.kind === "you" && mark.index === index);
        return svg("g", {}, svg("title", {}, tip(index)),
            svg("rect.hit", { x: index * 20, y: top, width: 20, height: height - top }),
            svg(isMarked ? "rect.bar.you" : "rect.bar", { x: index * 20 + 1.5, y: height - tall, width: 17,
                height: tall, rx: 2 }));
    };
    const line = ({ index, kind }) => svg(`line.mark.${kind}`, { x1: index * 20 + 10, x2: index * 20 + 10,
        y1: kind === "you" ? 8 : 22, y2: height });
    return svg("svg.bars", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
        "aria-label": label }, heights.map(bar), marks.map(line));
}

