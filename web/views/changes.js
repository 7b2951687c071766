// What happened on a day: what was created, changed, merged, rejected or deleted, with the counts of each.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { count, moment, number } from "../lib/format.js";
import { badge, button, choice, field, table } from "../lib/parts.js";
import { emptiness, failure } from "../lib/shell.js";

const LIMIT = 200;
const COLORS = { created: "good", restored: "good", deleted: "bad", erased: "bad", rejected: "bad", superseded: "warn",
  merged: "accent", unmerged: "accent" };

/**
 * Where changes are read.
 *
 * @typedef {Object} Source
 * @property {string[]} kinds
 * @property {(query: Object, options: {signal: AbortSignal}) => Promise<{changes: Object[], next: string}>} read
 * @property {(change: Object) => any} what What a change is of.
 * @property {(change: Object) => any} by Who made it, or from which source it is.
 *
 * @param {Source} source
 */
export const changes = (source) => ({
  id: "changes",
  title: "Changes",
  style: "history.css",
  show(root, at) {
    const page = new ChangesPage(source, at);
    fill(root, page.toolbar, page.summary, page.results);
    return page.load();
  },
});

const today = () => new Date().toISOString().slice(0, 10);
const isDay = (text) => /^\d{4}-\d\d-\d\d$/.test(text ?? "");

class ChangesPage {
  #source;
  #at;
  #day;
  #kind;
  #found = [];
  #next = "";

  constructor(source, at) {
    this.#source = source;
    this.#at = at;
    const asked = at.params.get("day");
    this.#day = el("input", { type: "date", required: true, value: isDay(asked) ? asked : today(),
      onchange: () => this.load() });
    this.#kind = choice([["", "All"], ...source.kinds], at.params.get("kind") ?? "", { onchange: () => this.load() });
    this.toolbar = el("div.toolbar", {}, field("Day (UTC)", this.#day), field("Kind", this.#kind),
      button("Refresh", () => this.load()));
    this.summary = el("p.muted", { role: "status" });
    this.results = el("div.stack");
  }

  async load() {
    const day = isDay(this.#day.value) ? this.#day.value : today();
    this.#at.keep({ day: day === today() ? "" : day, kind: this.#kind.value });
    this.#found = [];
    this.#next = day;
    fill(this.summary, "Loading …");
    await this.#more(day);
  }

  async #more(day) {
    const query = { since: this.#next, until: day, kind: this.#kind.value, limit: LIMIT };
    try {
      const page = await this.#source.read(query, { signal: this.#at.signal });
      this.#found.push(...page.changes);
      this.#next = page.next;
      this.#draw(page.changes.length === LIMIT ? button("Show more", () => this.#more(day)) : null);
    } catch (error) {
      if (isAbort(error)) return;
      fill(this.summary);
      fill(this.results, failure(error, () => this.load()));
    }
  }

  #draw(next) {
    if (this.#found.length === 0) {
      fill(this.summary);
      fill(this.results, emptiness("Nothing changed on this day"));
      return;
    }
    const kinds = new Map();
    this.#found.forEach(({ kind }) => kinds.set(kind, (kinds.get(kind) ?? 0) + 1));
    const counts = [...kinds].map(([kind, of]) => `${number(of)} ${kind}`).join(", ");
    fill(this.summary, `${next ? "The first " : ""}${count(this.#found.length, "change")}: ${counts}.`);
    fill(this.results, this.#table(), next);
  }

  #table() {
    return table("Changes", [
      { key: "at", title: "When", cell: ({ at }) => el("time", { datetime: at }, moment(at)) },
      { key: "kind", title: "Kind", cell: ({ kind }) => badge(kind, COLORS[kind] ?? "") },
      { key: "what", title: "What", cell: this.#source.what },
      { key: "source", title: "Made by", cell: this.#source.by },
      { key: "detail", title: "Before and since", cell: detailOf },
    ], this.#found);
  }
}

function detailOf({ before, after }) {
  const said = (values) => Object.entries(values ?? {}).flatMap(([name, value]) => name === "properties"
    ? said(value) : `${name.replaceAll("_", " ")}: ${text(value)}`).filter(Boolean).join("; ");
  const [was, is] = [said(before), said(after)];
  if (!was && !is) return el("span.muted", {}, "–");
  return [was && el("del", {}, was), was && is && " → ", is && el("ins", {}, is)];
}

/** A value in a line. */
function text(value) {
  if (value === null) return "none";
  if (typeof value !== "object") return String(value);
  return Array.isArray(value) ? value.map(text).join(", ") : JSON.stringify(value);
}
