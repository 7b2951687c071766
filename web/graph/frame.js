// The canvas with its buttons and what its keys do.

import { el } from "../lib/dom.js";

/** @param {{bigger: () => void, smaller: () => void, fit: () => void}} acts */
export function frame(canvas, { bigger, smaller, fit }, more) {
  const tool = (text, label, action) =>
    el("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
  return el("div.graph-frame", {},
    canvas,
    el("div.graph-tools", {},
      tool("+", "Zoom in", bigger), tool("−", "Zoom out", smaller), tool("Fit", "Fit everything", fit), more),
    el("p.hint.graph-keys", { id: "graph-keys" },
      "Scroll or pinch to zoom, drag to move, click for details. ",
      el("span.graph-keyboard", {},
        "Keys: arrows, + − 0, N and P for the next and the previous node, Enter for details, Escape to close.")));
}
