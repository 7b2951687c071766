// Small charts that say in words what they show. Their styles are in overview.css.

import { el, svg } from "./dom.js";
import { number } from "./format.js";

/**
 * Horizontal bars, as a list whose texts hold all that the bars show.
 *
 * @param {string} label
 * @param {{label: string, value: number, text?: string, href?: string}[]} items
 */
export function bars(label, items) {
  const most = Math.max(1, ...items.map((item) => item.value));
  return el("ul.bars", { "aria-label": label }, items.map((item) =>
    el("li", {},
      item.href ? el("a", { href: item.href }, item.label) : el("span", {}, item.label),
      el("span.bar-track", { "aria-hidden": "true" },
        el("span.bar-fill", { vars: { "--part": `${(100 * item.value) / most}%` } })),
      el("span.number", {}, item.text ?? number(item.value)))));
}

/**
 * Columns, one for each value.
 *
 * @param {string} text What they show, in words.
 * @param {{value: number, title: string}[]} items
 */
export function columns(text, items) {
  const most = Math.max(1, ...items.map((item) => item.value));
  const heightOf = (value) => (value === 0 ? 0 : Math.max(3, (96 * value) / most));
  return picture("chart-columns", text, items.length, items.map((item, at) =>
    svg("rect", { x: at + 0.1, y: 100 - heightOf(item.value), width: 0.8, height: heightOf(item.value) },
      svg("title", {}, item.title))));
}

/**
 * A line through values, from the oldest to the newest.
 *
 * @param {string} text What it shows, in words.
 * @param {number[]} values
 */
export function sparkline(text, values) {
  const most = Math.max(1, ...values);
  const known = values.length === 1 ? [values[0], values[0]] : values;
  const points = known.map((value, at) => `${at},${(98 - (92 * value) / most).toFixed(2)}`).join(" ");
  const end = known.length - 1;
  return picture("chart-line", text, end,
    svg("polygon", { points: `0,100 ${points} ${end},100` }),
    svg("polyline", { points, "vector-effect": "non-scaling-stroke" }));
}

function picture(name, text, width, ...shapes) {
  const view = { viewBox: `0 0 ${Math.max(1, width)} 100`, preserveAspectRatio: "none" };
  return svg("svg.chart", { class: name, role: "img", "aria-label": text, ...view }, shapes);
}
