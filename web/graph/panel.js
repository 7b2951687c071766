// What is known about the selected node, and what can be done with it.

import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { badge, button } from "../lib/parts.js";
import { failure, linkTo } from "../lib/shell.js";
import { sign, typeName } from "./types.js";

const FIRST = 8;
const LONG = 120;
/** While one passes by nodes, nothing is asked for. */
const PASSING_MS = 500;

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
 * @property {(node: Object) => void} close
 * @property {(node: Object, details: Object) => void} learnt Called with each page of details.
 */
export class Panel {
  /** Details by id: each page is read once. */
  #source;
  #known = new Map();
  #acts;
  #signal;
  #current = null;
  /** The only read that goes on, or waits: `{id, offset, ended, done}`. */
  #reading = null;
  /** Titles of the lists of the current node that are shown in full. */
  #opened = new Set();
  root = el("aside.graph-panel", { "aria-label": "Selected node", hidden: true });

  /** @param {Acts} acts */
  constructor(source, acts, signal) {
    this.#source = source;
    this.#acts = acts;
    this.#signal = signal;
    this.root.addEventListener("keydown", ({ key }) => { if (key === "Escape") acts.close(this.#current); });
  }

  /** Shows a node of the picture, nothing for `null`. If one is `passing` by, its details are read a little later. */
  show(node, passing = false) {
    if (this.#current?.id !== node?.id) {
      this.#reading?.ended.abort();
      this.#opened.clear();
    }
    this.#current = node;
    this.root.hidden = node === null;
    if (node === null) return;
    const known = this.#known.get(node.id);
    if (known) {
      this.#render(node, known);
      return;
    }
    const links = node.degree ?? node.near?.length ?? 0;
    this.#put(this.#head(node, []), el("p.muted", {}, `${count(links, "connection")}. Loading …`));
    this.#read(node, 0, passing ? PASSING_MS : 0);
  }

  /** Shows anew what it shows, after the node was pinned or expanded. */
  again() {
    const known = this.#current && this.#known.get(this.#current.id);
    if (known) this.#render(this.#current, known);
  }

  focus() {
    this.root.querySelector("h2")?.focus();
  }

  /** Reads a page of details, once: a second call waits for the same answer, one for another node ends the first. */
  #read(node, offset, delay = 0) {
    const now = this.#reading;
    if (now?.id === node.id && now.offset === offset && now.delay <= delay) return now.done;
    now?.ended.abort();
    const ended = new AbortController();
    const reading = { id: node.id, offset, delay, ended };
    this.#reading = reading;
    reading.done = this.#learn(node, offset, delay, AbortSignal.any([this.#signal, ended.signal])).finally(() => {
      if (this.#reading === reading) this.#reading = null;
    });
    return reading.done;
  }

  async #learn(node, offset, delay, signal) {
    try {
      if (delay > 0) await new Promise((resolve) => { setTimeout(resolve, delay); });
      signal.throwIfAborted();
      const found = await this.#source.details(node.id, offset, { signal });
      const before = this.#known.get(node.id);
      signal.throwIfAborted();
      const details = before ? joined(before, found) : found;
      this.#known.set(node.id, details);
      this.#acts.learnt(node, found);
      this.#render(this.#current, details);
    } catch (error) {
      if (signal.aborted) return;
      this.#put(this.#head(node, []), failure(error, () => this.show(node)));
    }
  }

  /** Replaces what is shown. The focus stays on the same button, or goes to the heading. */
  #put(...content) {
    const { activeElement } = document;
    const held = this.root.contains(activeElement) ? activeElement.dataset.focus ?? "" : null;
    fill(this.root, content);
    if (held !== null) (this.root.querySelector(`[data-focus="${held}"]`) ?? this.root.querySelector("h2")).focus();
  }

  #head(node, badges) {
    return [
      el("div.graph-panel-head", {},
        el("h2", { tabindex: -1 }, sign(node.type), el("span", {}, node.label)),
        el("button.plain.graph-close", { type: "button", "aria-label": "Close the details",
          onclick: () => this.#acts.close(node) }, "✕")),
      el("div.row.graph-badges", {}, badge(typeName(node.type)), badges),
    ];
  }

  #render(node, details) {
    const facts = details.facts.filter(([, value]) => value !== "" && value !== undefined);
    this.#put(
      this.#head(node, details.badges.map((made) => made?.cloneNode(true))),
      this.#actions(node, details),
      el("dl.facts", {}, facts.map(([name, value]) => [
        el("dt", {}, name), el("dd", {}, typeof value === "string" ? folded(value) : copied(value))])),
      details.text && el("div.pre", {}, folded(details.text)),
      this.#records(details),
      this.#neighbours(node, details),
      this.#more(node, details));
  }

  #more(node, { next, isPaged }) {
    if (next !== null) return button("Load more", () => this.#read(node, next), { "data-focus": "more" });
    return isPaged && el("p.muted", { tabindex: -1, "data-focus": "more" }, "Everything is loaded.");
  }

  #actions(node, { open }) {
    const pinned = typeof node.fx === "number";
    const expand = node.steps ? "Expand more" : "Expand neighbours";
    return el("div.row.graph-acts", {},
      this.#acts.isExpandable(node) && button(expand, () => this.#acts.expand(node), { "data-focus": "expand" }),
      el("a.button", { href: linkTo("search", { q: node.label }) }, "Search for it"),
      open && el("a.button", { href: open.href }, open.text),
      !this.#acts.isCentre(node) && button("Only this neighbourhood", () => this.#acts.only(node)),
      pinned && button("Release", () => this.#acts.release(node), { title: "Let it move again" }),
      button("Remove", () => this.#acts.remove(node), { title: "Take it out of the picture; nothing is deleted" }));
  }

  #records({ records, recordsTitle, totals, next }) {
    if (records.length === 0) return null;
    const entries = records.map(({ text, href, more }) => el("li", {},
      el("a", { href }, text), el("div.hint", {}, copied(more))));
    return [
      el("h3", {}, recordsTitle, el("span.muted", {}, ` ${loaded(entries.length, next, totals?.records)}`)),
      this.#cut("ul.graph-list", recordsTitle, entries),
    ];
  }

  #neighbours(node, { neighbours, totals, next }) {
    const groups = new Map();
    for (const neighbour of neighbours) {
      const title = neighbour.outgoing ? `${neighbour.edge.relationship} →` : `← ${neighbour.edge.relationship}`;
      groups.set(title, [...(groups.get(title) ?? []), neighbour]);
    }
    // How many there are of one relationship is not known before all are loaded; a note only mentions.
    const total = groups.size === 1 && node.type === "note" ? totals?.neighbours : undefined;
    const titled = [...groups].map(([title, members]) => [title, members, loaded(members.length, next, total)]);
    const together = (node.near ?? []).filter((link) => link.together).sort((a, b) => b.notes - a.notes);
    if (together.length > 0) {
      const others = together.map(({ source, target }) => ({ node: source === node ? target : source }));
      titled.push(["in the same notes", others, number(others.length)]);
    }
    return titled.map(([title, members, many]) => [
      el("h3", {}, title, el("span.muted", {}, ` ${many}`)),
      this.#cut("ul.graph-list.flat", title, members.map(({ node: other, edge }) => el("li", {},
        el("button.chip", { type: "button", title: typeName(other.type),
          onclick: () => this.#acts.visit(other, edge, node) },
        sign(other.type), el("span", {}, other.label || other.id))))),
    ]);
  }

  /** A list of which the first few are shown until one asks for all. */
  #cut(tag, title, entries) {
    const rest = this.#opened.has(title) ? [] : entries.slice(FIRST);
    const list = el(tag, {}, entries.slice(0, entries.length - rest.length));
    if (rest.length === 0) return list;
    const all = el("button.link", { type: "button" }, `${number(rest.length)} more …`);
    all.addEventListener("click", () => {
      this.#opened.add(title);
      list.append(...rest);
      rest[0].querySelector("a, button")?.focus();
      all.remove();
    });
    return [list, all];
  }
}

/** Details with the next page of them. */
function joined(before, found) {
  return {
    ...before, records: [...before.records, ...found.records], neighbours: [...before.neighbours, ...found.neighbours],
    next: found.next, isPaged: true,
  };
}

/** How many of a list are loaded, and of how many, as far as that is known. */
function loaded(many, next, total) {
  if (next === null || total === many) return number(many);
  return total === undefined ? `${number(many)} so far` : `${number(many)} of ${number(total)}`;
}

/** Elements of details are shown again and again. */
function copied(value) {
  return [value].flat().map((entry) => (entry instanceof Node ? entry.cloneNode(true) : entry));
}

/** A long text, of which the beginning is shown until one asks for all. */
function folded(text) {
  if (text.length <= LONG) return text;
  return el("details.graph-fold", {}, el("summary", {}, text.slice(0, LONG).replace(/\S*$/, "…")), text);
}
