// Everything that the notes mention, as a table.

import { isAbort } from "../lib/client.js";
import { debounced, el, fill } from "../lib/dom.js";
import { count, number, percent } from "../lib/format.js";
import { badge, button, choice, field, table } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { merged, merging } from "../local/merging.js";

const SIZES = [25, 50, 100, 200];
const SORTS = ["name", "type", "tier", "notes", "connections"];
const TYPING_MS = 400;
const ALIASES = 3;
const START = { q: "", type: "", tier: "", sort: "notes", order: "desc", offset: 0, limit: 50 };

export const entities = (api) => ({
  id: "entities",
  title: "Entities",
  style: "entities.css",
  async show(root, at) {
    const page = new EntitiesPage(api, at);
    fill(root, page.toolbar, page.summary, page.results);
    await Promise.all([page.load(), page.loadTypes()]);
  },
});

class EntitiesPage {
  #api;
  #at;
  #chosen;
  #controls;
  #turn = 0;
  #problem = el("div");

  constructor(api, at) {
    this.#api = api;
    this.#at = at;
    this.#chosen = chosenBy(at.params);
    this.#controls = filters(this.#chosen, (changes) => this.#change(changes));
    this.toolbar = el("div.toolbar", {}, this.#controls.fields);
    this.summary = el("p.muted", { role: "status" }, "Loading …");
    this.results = el("div.stack");
  }

  async load() {
    this.#turn += 1;
    const turn = this.#turn;
    keep(this.#at, this.#chosen);
    this.results.setAttribute("aria-busy", "true");
    try {
      const page = await this.#api.entities(this.#chosen, { signal: this.#at.signal });
      if (turn === this.#turn) await this.#draw(page);
    } catch (error) {
      if (isAbort(error) || turn !== this.#turn) return;
      fill(this.summary);
      fill(this.results, failure(error, () => this.load()));
    }
    if (turn === this.#turn) this.results.removeAttribute("aria-busy");
  }

  /** Offers the types that there are. Without them the table still works. */
  async loadTypes() {
    const stats = await this.#api.stats({ signal: this.#at.signal }).catch(() => null);
    if (stats) this.#controls.offerTypes(stats.entity_index);
  }

  async #draw(page) {
    if (page.entities.length === 0 && page.total > 0) {
      this.#chosen.offset = lastOffset(page.total, this.#chosen.limit);
      return this.load();
    }
    fill(this.summary, summaryOf(page));
    fill(this.results, page.total === 0 ? this.#nothing() : [
      this.#problem,
      tableOf(page, this.#chosen, (key) => this.#sort(key), this.#merges()),
      pages(page, (offset) => this.#visit(offset)),
    ]);
  }

  /** What the rows can do with their entities. */
  #merges() {
    fill(this.#problem);
    const then = { changed: () => this.load(), failed: (error) => {
      if (!isAbort(error)) fill(this.#problem, failure(error));
    } };
    return {
      merging: (entity) => merging(this.#api, entity, this.#at, then),
      merged: (entity) => merged(this.#api, entity, this.#at, then),
    };
  }

  #nothing() {
    const { q, type, tier } = this.#chosen;
    const clear = () => { this.#controls.clear(); return this.#change({ q: "", type: "", tier: "" }); };
    return q || type || tier
      ? emptiness("No entity fits the filters", button("Clear the filters", clear, { class: "link" }))
      : emptiness("No entities yet", "They are found in the notes: actors, malware, vulnerabilities, addresses. ",
        el("a", { href: linkTo("ingest") }, "Add notes or files"), ".");
  }

  #change(changes) {
    Object.assign(this.#chosen, changes, { offset: 0 });
    return this.load();
  }

  async #sort(key) {
    const { sort, order } = this.#chosen;
    const down = sort === key ? order === "asc" : ["notes", "connections"].includes(key);
    await this.#change({ sort: key, order: down ? "desc" : "asc" });
    this.results.querySelector("th[aria-sort$='ending'] button")?.focus();
  }

  async #visit(offset) {
    this.#chosen.offset = offset;
    await this.load();
    this.results.firstElementChild?.scrollIntoView();
    this.results.querySelector(".table-frame")?.focus({ preventScroll: true });
  }
}

function chosenBy(params) {
  const given = (name) => params.get(name) ?? START[name];
  const offset = Number.parseInt(given("offset"), 10);
  return {
    q: given("q"),
    type: given("type").toLowerCase(),
    tier: given("tier").toLowerCase(),
    sort: SORTS.includes(given("sort")) ? given("sort") : START.sort,
    order: given("order") === "asc" ? "asc" : "desc",
    offset: offset > 0 ? offset : 0,
    limit: SIZES.find((size) => String(size) === params.get("limit")) ?? START.limit,
  };
}

/** Keeps in the URL what differs from the start. */
function keep(at, chosen) {
  at.keep(Object.fromEntries(Object.entries(chosen).filter(([name, value]) => value !== START[name])));
}

const lastOffset = (total, limit) => Math.max(0, Math.floor((total - 1) / limit) * limit);
const worded = (type) => type.replaceAll("_", " ");

function filters(chosen, change) {
  const type = choice([["", "All"], ...(chosen.type ? [[chosen.type, worded(chosen.type)]] : [])], chosen.type,
    { onchange: () => change({ type: type.value }) });
  const tier = choice([["", "All"], ["a", "A (best)"], ["b", "B"], ["c", "C"]], chosen.tier,
    { onchange: () => change({ tier: tier.value }) });
  const changeSoon = debounced(TYPING_MS, () => { if (text.isConnected) change({ q: text.value.trim() }); });
  const text = el("input", { type: "search", value: chosen.q, autocomplete: "off", spellcheck: "false",
    oninput: changeSoon });
  const size = choice(SIZES, chosen.limit, { onchange: () => change({ limit: Number(size.value) }) });
  return {
    fields: [
      el("div.grow", {}, field("Name contains", text)),
      field("Type", type), field("Best tier", tier), field("Per page", size),
    ],
    clear() {
      for (const control of [text, type, tier]) control.value = "";
      text.focus();
    },
    offerTypes(index) {
      const known = Object.entries(index).filter(([name, of]) => of.unique_entities > 0 || name === chosen.type);
      const options = known.map(([name, of]) => [name, `${worded(name)} (${number(of.unique_entities)})`]);
      if (chosen.type && !(chosen.type in index)) options.push([chosen.type, worded(chosen.type)]);
      fill(type, [...choice([["", "All"], ...options], "").children]);
      type.value = chosen.type;
    },
  };
}

function summaryOf({ total, offset, limit, entities }) {
  if (total === 0) return "No entities.";
  const [page, all] = [Math.floor(offset / limit) + 1, Math.ceil(total / limit)];
  const which = all > 1 ? `${number(offset + 1)}–${number(offset + entities.length)} of ` : "";
  return `${which}${count(total, "entity", "entities")}${all > 1 ? `, page ${number(page)} of ${number(all)}` : ""}.`;
}

function tableOf({ entities }, { sort: key, order }, sort, merges) {
  const columns = [
    { key: "name", title: "Name", sortable: true, cell: nameOf },
    { key: "type", title: "Type", sortable: true, cell: (entity) => badge(worded(entity.type), `type-${entity.type}`) },
    { key: "aliases", title: "Aliases", cell: (entity) => [aliases(entity.aliases), merges.merged(entity)] },
    { key: "tier", title: "Tier", sortable: true,
      cell: ({ tier }) => (tier ? badge(tier.toUpperCase(), `tier-${tier}`) : el("span.muted", {}, "–")) },
    { key: "notes", title: "Notes", sortable: true, number: true, cell: (entity) => number(entity.note_count) },
    { key: "connections", title: "Connections", sortable: true, number: true,
      cell: (entity) => number(entity.connected_count) },
    { key: "confidence", title: "Confidence", number: true, cell: (entity) => percent(entity.confidence) },
    { key: "graph", title: "Graph", cell: (entity) => el("a",
      { href: linkTo("graph", { around: entity.id }), "aria-label": `Show ${entity.name} in the graph` }, "Show") },
    { key: "merge", title: "Merge", cell: merges.merging },
  ];
  return table("Entities", columns, entities, { sorted: { key, down: order === "desc" }, sort });
}

const nameOf = (entity) => el("a.entity-name", { href: linkTo("search", { q: entity.name }) }, entity.name);

function aliases(names) {
  if (names.length <= ALIASES) return names.join(", ") || el("span.muted", {}, "–");
  return el("details", {},
    el("summary", {}, names.slice(0, ALIASES).join(", "), el("span.muted", {}, ` and ${names.length - ALIASES} more`)),
    names.slice(ALIASES).join(", "));
}

function pages({ total, offset, limit }, visit) {
  if (total <= limit) return null;
  const last = lastOffset(total, limit);
  const to = (text, target, isPossible) => button(text, () => visit(target), { disabled: !isPossible });
  return el("nav.row.pages", { "aria-label": "Pages" },
    to("First", 0, offset > 0), to("Previous", Math.max(0, offset - limit), offset > 0),
    el("span.muted.number", { "aria-current": "page" },
      `Page ${number(Math.floor(offset / limit) + 1)} of ${number(Math.ceil(total / limit))}`),
    to("Next", offset + limit, offset < last), to("Last", last, offset < last));
}
