// The nodes of the picture as a table, for those who don't see it.

import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { button, table } from "../lib/parts.js";
import { emptiness } from "../lib/shell.js";
import { sign, typeName } from "./types.js";

const PAGE = 50;

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

  /** @param {{select: (node: Object) => void, find: (node: Object) => void}} acts `find` shows it in the picture. */
  constructor(picture, acts) {
    this.#picture = picture;
    this.#acts = acts;
  }

  /** Shows what the picture shows; from the first page on. */
  show(page = 0) {
    if (!this.root.isConnected) return;
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
    return el("button.link", { type: "button", "aria-pressed": String(this.#picture.selected === node),
      onclick: () => this.#acts.select(node) }, node.label);
  }

  #linked(node) {
    const names = this.#picture.neighbours(node).slice(0, 3).map(({ label }) => label);
    const rest = node.near.length - names.length;
    return `${names.join(", ")}${rest > 0 ? ` and ${number(rest)} more` : ""}`;
  }

  #pages(first, shown, all, last) {
    if (last === 0) return null;
    return el("div.row.graph-pages", {},
      button("Previous", () => this.show(this.#page - 1), { disabled: this.#page === 0 }),
      el("span.muted", {}, `${number(first + 1)}–${number(first + shown)} of ${count(all, "node")}`),
      button("Next", () => this.show(this.#page + 1), { disabled: this.#page === last }));
  }
}
