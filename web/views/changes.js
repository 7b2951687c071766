// What happened to notes and entities on a day.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { count, moment } from "../lib/format.js";
import { badge, button, choice, field, table } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";

const LIMIT = 200;
const KINDS = ["created", "changed", "superseded", "merged", "unmerged", "deleted"];
const COLORS = { created: "good", deleted: "bad", superseded: "warn", merged: "accent", unmerged: "accent" };

export const changes = (api) => ({
  id: "changes",
  title: "Changes",
  style: "history.css",
  show(root, at) {
    const page = new ChangesPage(api, at);
    fill(root, page.toolbar, page.summary, page.results);
    return page.load();
  },
});

const today = () => new Date().toISOString().slice(0, 10);
const isDay = (text) => /^\d{4}-\d\d-\d\d$/.test(text ?? "");

class ChangesPage {
  #api;
  #at;
  #day;
  #kind;
  #found = [];
  #next = "";

  constructor(api, at) {
    this.#api = api;
    this.#at = at;
    const asked = at.params.get("day");
    this.#day = el("input", { type: "date", required: true, value: isDay(asked) ? asked : today(),
      onchange: () => this.load() });
    this.#kind = choice([["", "All"], ...KINDS], at.params.get("kind") ?? "", { onchange: () => this.load() });
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
      const page = await this.#api.changes(query, { signal: this.#at.signal });
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
    fill(this.summary, `${next ? "The first " : ""}${count(this.#found.length, "change")}.`);
    fill(this.results, tableOf(this.#found), next);
  }
}

function tableOf(found) {
  return table("Changes", [
    { key: "at", title: "When", cell: ({ at }) => el("time", { datetime: at }, moment(at)) },
    { key: "kind", title: "Kind", cell: ({ kind }) => badge(kind, COLORS[kind] ?? "") },
    { key: "what", title: "What", cell: whatOf },
    { key: "source", title: "Made by", cell: ({ source }) => source },
    { key: "detail", title: "Before and since", cell: detailOf },
  ], found);
}

function whatOf({ kind, note, entity }) {
  if (note) return kind === "deleted" ? ["Note ", el("code", {}, note)]
    : el("a", { href: linkTo("note", { id: note }) }, "Note ", el("code", {}, note));
  if (!entity) return el("span.muted", {}, "erased entity");
  return kind === "deleted" ? el("bdi", {}, entity) : el("a", { href: linkTo("graph", { around: entity }) }, entity);
}

function detailOf({ before, after }) {
  const said = (values) => Object.entries(values ?? {}).map(([name, value]) =>
    `${name.replaceAll("_", " ")}: ${value === null ? "none" : [value].flat().join(", ")}`).join("; ");
  const [was, is] = [said(before), said(after)];
  if (!was && !is) return el("span.muted", {}, "–");
  return [was && el("del", {}, was), was && is && " → ", is && el("ins", {}, is)];
}
