// What is known about the selected node, and what can be done with it.

import { el, fill } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { badge, button } from "../lib/parts.js";
import { failure, linkTo } from "../lib/shell.js";
import { sign, typeName } from "./types.js";

const FIRST = 8;
const LONG = 120;

/**
 * What the panel can ask for.
 *
 * @typedef {Object} Acts
 * @property {(node: Object, edge: Object|undefined, from: Object) => void} visit Selects a neighbour, which may not be
 *   in the picture yet.
 * @property {(node: Object) => Promise<void>} expand Adds what is around it.
 * @property {(node: Object) => boolean} isExpandable
 * @property {(node: Object) => void} only Shows its neighbourhood only.
 * @property {(node: Object) => boolean} isCentre Whether the picture is its neighbourhood.
 * @property {(node: Object) => void} release
 * @property {(node: Object) => void} remove
 * @property {() => void} close
 * @property {(node: Object, details: Object) => void} learnt Called with each page of details.
 */
export class Panel {
  /** Details by id: each page is read once. */
  #source;
  #known = new Map();
  #acts;
  #signal;
  #current = null;
  root = el("aside.graph-panel", { "aria-label": "Selected node", hidden: true });

  /** @param {Acts} acts */
  constructor(source, acts, signal) {
    this.#source = source;
    this.#acts = acts;
    this.#signal = signal;
  }

  /** Shows a node of the picture; nothing for `null`. */
  async show(node) {
    this.#current = node;
    this.root.hidden = node === null;
    if (node === null) return;
    const known = this.#known.get(node.id);
    if (known) {
      this.#render(node, known);
      return;
    }
    fill(this.root, this.#head(node, []), el("p.muted", {}, "Loading …"));
    await this.#read(node, 0);
  }

  /** Shows anew what it shows, after the node was pinned or expanded. */
  again() {
    const known = this.#current && this.#known.get(this.#current.id);
    if (known) this.#render(this.#current, known);
  }

  focus() {
    this.root.querySelector("h2")?.focus();
  }

  async #read(node, offset) {
    try {
      const found = await this.#source.details(node.id, offset, { signal: this.#signal });
      const before = this.#known.get(node.id);
      const details = before
        ? { ...before, records: [...before.records, ...found.records],
          neighbours: [...before.neighbours, ...found.neighbours], next: found.next }
        : found;
      this.#known.set(node.id, details);
      this.#acts.learnt(node, found);
      if (this.#current === node) this.#render(node, details);
    } catch (error) {
      if (this.#signal.aborted) return;
      if (this.#current === node) fill(this.root, this.#head(node, []), failure(error, () => this.show(node)));
    }
  }

  #head(node, badges) {
    return [
      el("div.graph-panel-head", {},
        el("h2", { tabindex: -1 }, sign(node.type), el("span", {}, node.label)),
        el("button.plain.graph-close", { type: "button", "aria-label": "Close the details", onclick: this.#acts.close },
          "✕")),
      el("div.row.graph-badges", {}, badge(typeName(node.type)), badges),
    ];
  }

  #render(node, details) {
    const facts = details.facts.filter(([, value]) => value !== "" && value !== undefined);
    fill(this.root,
      this.#head(node, details.badges.map((made) => made?.cloneNode(true))),
      this.#actions(node, details),
      el("dl.facts", {}, facts.map(([name, value]) => [
        el("dt", {}, name), el("dd", {}, typeof value === "string" ? folded(value) : copied(value))])),
      details.text && el("div.pre", {}, folded(details.text)),
      this.#records(details),
      this.#neighbours(node, details),
      details.next !== null && button("Load more", () => this.#read(node, details.next)));
  }

  #actions(node, { open }) {
    const pinned = typeof node.fx === "number";
    const expand = node.steps ? "Expand more" : "Expand neighbours";
    return el("div.row.graph-acts", {},
      this.#acts.isExpandable(node) && button(expand, () => this.#acts.expand(node)),
      el("a.button", { href: linkTo("search", { q: node.label }) }, "Search for it"),
      open && el("a.button", { href: open.href }, open.text),
      !this.#acts.isCentre(node) && button("Only this neighbourhood", () => this.#acts.only(node)),
      pinned && button("Release", () => this.#acts.release(node), { title: "Let it move again" }),
      button("Remove", () => this.#acts.remove(node), { title: "Take it out of the picture; nothing is deleted" }));
  }

  #records({ records, recordsTitle }) {
    if (records.length === 0) return null;
    const entries = records.map(({ text, href, more }) => el("li", {},
      el("a", { href }, text), el("div.hint", {}, copied(more))));
    return [el("h3", {}, recordsTitle), cut("ul.graph-list", entries)];
  }

  #neighbours(node, { neighbours }) {
    const groups = new Map();
    for (const neighbour of neighbours) {
      const title = neighbour.outgoing ? `${neighbour.edge.relationship} →` : `← ${neighbour.edge.relationship}`;
      groups.set(title, [...(groups.get(title) ?? []), neighbour]);
    }
    const together = (node.near ?? []).filter((link) => link.together).sort((a, b) => b.notes - a.notes);
    if (together.length > 0) {
      const others = together.map(({ source, target }) => ({ node: source === node ? target : source }));
      groups.set("in the same notes", others);
    }
    return [...groups].map(([title, members]) => [
      el("h3", {}, title, el("span.muted", {}, ` ${members.length}`)),
      cut("ul.graph-list.flat", members.map(({ node: other, edge }) => el("li", {},
        el("button.chip", { type: "button", title: typeName(other.type),
          onclick: () => this.#acts.visit(other, edge, node) },
        sign(other.type), el("span", {}, other.label || other.id))))),
    ]);
  }
}

/** Elements of details are shown again and again. */
function copied(value) {
  return [value].flat().map((entry) => (entry instanceof Node ? entry.cloneNode(true) : entry));
}

/** A list of which the first few are shown until one asks for all. */
function cut(tag, entries) {
  const rest = entries.slice(FIRST);
  const list = el(tag, {}, entries.slice(0, FIRST));
  if (rest.length === 0) return list;
  const all = el("button.link", { type: "button" }, `${number(rest.length)} more …`);
  all.addEventListener("click", () => {
    list.append(...rest);
    rest[0].querySelector("a, button")?.focus();
    all.remove();
  });
  return [list, all];
}

/** A long text, of which the beginning is shown until one asks for all. */
function folded(text) {
  if (text.length <= LONG) return text;
  return el("details.graph-fold", {}, el("summary", {}, text.slice(0, LONG).replace(/\S*$/, "…")), text);
}
