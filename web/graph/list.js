// The nodes of the picture as a table, for those who don't see it.

import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { button, table } from "../lib/parts.js";
import { emptiness } from "../lib/shell.js";
import { sign, typeName } from "./types.js";

const PAGE = 50;
const NAMED = 3;
const LONGEST = 40;

const ORDERS = {
  label: (a, b) => a.label.localeCompare(b.label),
  type: (a, b) => typeName(a.type).localeCompare(typeName(b.type)) || a.label.localeCompare(b.label),
  links: (a, b) => a.near.length - b.near.length || a.label.localeCompare(b.label),
};

export class List {
  #picture;
  #acts;
  #sorted = { key: "links", down: true };
  #page = 0;
  root = el("div");

  /**
   * @param {{select: (node: Object) => void, find: (node: Object) => void, close: (node: Object) => void}} acts `find`
   *   shows it in the picture, `close` closes the details of the selected node.
   */
  constructor(picture, acts) {
    this.#picture = picture;
    this.#acts = acts;
    this.root.addEventListener("keydown", ({ key }) => {
      if (key === "Escape" && picture.selected) acts.close(picture.selected);
    });
  }

  /** Shows what the picture shows; from the first page on. */
  show(page = 0) {
    if (!this.root.isConnected) return;
    const { activeElement } = document;
    const held = this.root.contains(activeElement) ? activeElement.dataset.node : undefined;
    const { found, shown } = this.#picture;
    const nodes = shown.nodes.filter((node) => found === null || found.has(node));
    nodes.sort(ORDERS[this.#sorted.key]);
    if (this.#sorted.down) nodes.reverse();
    const last = Math.max(0, Math.ceil(nodes.length / PAGE) - 1);
    this.#page = Math.min(page, last);
    const first = this.#page * PAGE;
    const rows = nodes.slice(first, first + PAGE);
    fill(this.root, nodes.length === 0
      ? emptiness("No node is shown.", "Change the text or the types above.")
      : [this.#table(rows), this.#pages(first, rows.length, nodes.length, last)]);
    if (held !== undefined) this.focus({ id: held });
  }

  /** Puts the focus on a node. Returns whether it is on the page that is shown. */
  focus({ id }) {
    const button = this.root.querySelector(`[data-node="${CSS.escape(id)}"]`);
    button?.focus();
    return Boolean(button);
  }

  /** Shows the same page after a change. */
  again() {
    this.show(this.#page);
  }

  #table(rows) {
    const columns = [
      { key: "label", title: "Node", sortable: true, cell: (node) => this.#name(node) },
      { key: "type", title: "Type", sortable: true,
        cell: ({ type }) => el("span.graph-type", {}, sign(type), " ", typeName(type)) },
      { key: "links", title: "Links shown", sortable: true, number: true, cell: ({ near }) => number(near.length) },
      { key: "neighbours", title: "Linked with", cell: (node) => this.#linked(node) },
      { key: "acts", title: "Picture", cell: (node) => el("button.link", { type: "button",
        "aria-label": `Show ${node.label} in the picture`, onclick: () => this.#acts.find(node) }, "Show") },
    ];
    const sort = (key) => {
      this.#sorted = { key, down: this.#sorted.key === key ? !this.#sorted.down : key === "links" };
      this.show();
      this.root.querySelector("[aria-sort=ascending] button, [aria-sort=descending] button")?.focus();
    };
    return table("Nodes of the picture", columns, rows, { sorted: this.#sorted, sort });
  }

  #name(node) {
    return el("button.link", { type: "button", "data-node": node.id,
      "aria-pressed": String(this.#picture.selected === node), onclick: () => this.#acts.select(node) }, node.label);
  }

  #linked(node) {
    const names = this.#picture.neighbours(node).slice(0, NAMED).map(({ label }) => cut(label));
    const rest = node.near.length - names.length;
    return [names.map((name, at) => [at > 0 && ", ", el("bdi", {}, name)]), rest > 0 && ` and ${number(rest)} more`];
  }

  #pages(first, shown, all, last) {
    if (last === 0) return null;
    return el("div.row.graph-pages", {},
      this.#turn("Previous", -1, this.#page === 0),
      el("span.muted", {}, `${number(first + 1)}–${number(first + shown)} of ${count(all, "node")}`),
      this.#turn("Next", 1, this.#page === last));
  }

  #turn(text, by, disabled) {
    const turn = () => {
      this.show(this.#page + by);
      const [previous, next] = this.root.querySelectorAll(".graph-pages button");
      const [pressed, other] = by < 0 ? [previous, next] : [next, previous];
      (pressed.disabled ? other : pressed).focus();
    };
    return button(text, turn, { disabled });
  }
}

function cut(label) {
  const letters = [...label];
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("").trimEnd()}…` : label;
}
