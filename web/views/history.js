// The questions that were asked: filtered, asked again, exported.

import { isAbort } from "../lib/client.js";
import { debounced, el, fill } from "../lib/dom.js";
import { ago, count, moment, number } from "../lib/format.js";
import { button, choice, download, field, table } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";

const LIMIT = 500;
const STEP = 100;
const TYPING_MS = 250;
const DAYS = [[1, "Today (UTC)"], [2, "2 days"], [5, "5 days"], [7, "7 days"], [14, "14 days"], [30, "30 days"]];
const DEFAULT_DAYS = 5;
const EVENTS = [["", "All"], ["recall", "Recall"], ["synthesis", "Synthesis"]];
const INTENTS = ["factual", "temporal", "relational", "causal", "exploratory"];
const ORDERS = {
  time: (entry) => entry.timestamp,
  results: (entry) => entry.result_count,
  latency: (entry) => entry.duration_ms,
};

export const history = (api) => ({
  id: "history",
  title: "History",
  style: "history.css",
  show(root, at) {
    const page = new HistoryPage(api, at);
    fill(root, page.toolbar, page.line, page.results);
    return page.load();
  },
});

class HistoryPage {
  #api;
  #at;
  #chosen;
  #controls;
  #entries = [];
  #rows = STEP;
  #summary = el("p.muted", { role: "status" });
  #export = button("Export as JSON", () => this.#exported(), { disabled: true });

  constructor(api, at) {
    this.#api = api;
    this.#at = at;
    this.#chosen = chosenBy(at.params);
    this.#controls = filters(this.#chosen, { filter: () => this.#draw(), load: () => this.load() });
    this.toolbar = el("div.toolbar", {}, this.#controls.fields);
    this.line = el("div.spread.history-line", {}, this.#summary,
      el("div.row", {}, button("Refresh", () => this.load()), this.#export));
    this.results = el("div.stack");
  }

  async load() {
    fill(this.#summary, "Loading …");
    try {
      const query = { days: this.#chosen.days, limit: LIMIT };
      this.#entries = await this.#api.history(query, { signal: this.#at.signal });
      this.#draw();
    } catch (error) {
      if (isAbort(error)) return;
      fill(this.#summary);
      fill(this.results, failure(error, () => this.load()));
    }
  }

  #draw(rows = STEP) {
    const found = this.#shown();
    this.#rows = rows;
    keep(this.#at, this.#chosen);
    this.#export.disabled = found.length === 0;
    fill(this.#summary, summaryOf(found.length, this.#entries.length));
    if (this.#entries.length === 0) return void fill(this.results, nothing(this.#chosen.days));
    if (found.length === 0) return void fill(this.results, this.#nothingFits());
    fill(this.results, tableOf(found.slice(0, rows), this.#chosen, (key) => this.#sort(key)), this.#more(found.length));
  }

  #shown() {
    return sorted(this.#entries.filter(filterOf(this.#chosen)), this.#chosen);
  }

  #sort(key) {
    this.#chosen.down = this.#chosen.sort !== key || !this.#chosen.down;
    this.#chosen.sort = key;
    this.#draw();
    this.results.querySelector("th[aria-sort$='ending'] button").focus();
  }

  #more(all) {
    const next = this.#rows;
    if (all <= next) return null;
    return button(`Show ${number(Math.min(STEP, all - next))} more`, () => {
      this.#draw(next + STEP);
      [...this.results.querySelectorAll("tbody tr")].slice(next).find((row) => row.querySelector("a"))
        ?.querySelector("a").focus();
    }, { class: "history-more" });
  }

  #nothingFits() {
    const clear = () => { this.#controls.clear(); this.#draw(); };
    return emptiness("No question fits the filters", button("Clear the filters", clear, { class: "link" }));
  }

  #exported() {
    const found = this.#shown();
    download(`history-${moment(new Date()).slice(0, 10)}.json`, `${JSON.stringify(found, null, 2)}\n`);
    this.#at.notify(`Exported ${count(found.length, "question")}.`);
  }
}

function chosenBy(params) {
  const days = DAYS.find(([days]) => String(days) === params.get("days"));
  return {
    days: days ? days[0] : DEFAULT_DAYS,
    event: params.get("event") ?? "",
    intent: params.get("intent") ?? "",
    text: params.get("text") ?? "",
    sort: Object.hasOwn(ORDERS, params.get("sort")) ? params.get("sort") : "time",
    down: params.get("order") !== "asc",
  };
}

function keep(at, { days, event, intent, text, sort, down }) {
  at.keep({ days, event, intent, text, ...((sort !== "time" || !down) && { sort, order: down ? "desc" : "asc" }) });
}

function filters(chosen, { filter, load }) {
  const changing = (name, then) => ({ onchange: ({ target }) => { chosen[name] = target.value; then(); } });
  const event = choice(EVENTS, chosen.event, changing("event", filter));
  const intent = choice([["", "All"], ...INTENTS], chosen.intent, changing("intent", filter));
  const filterSoon = debounced(TYPING_MS, filter);
  const text = el("input", { type: "search", value: chosen.text, autocomplete: "off",
    oninput: () => { chosen.text = text.value; filterSoon(); } });
  return {
    clear() {
      for (const control of [event, intent, text]) control.value = "";
      Object.assign(chosen, { event: "", intent: "", text: "" });
      text.focus();
    },
    fields: [
      field("Period", choice(DAYS, chosen.days, changing("days", load))),
      field("Kind", event),
      field("Intent", intent),
      el("div.grow", {}, field("Text of the question", text)),
    ],
  };
}

function filterOf({ event, intent, text }) {
  const part = text.trim().toLowerCase();
  return (entry) => (event === "" || entry.event_type === event)
    && (intent === "" || entry.intent === intent)
    && (part === "" || String(entry.query ?? "").toLowerCase().includes(part));
}

function sorted(entries, { sort, down }) {
  const of = ORDERS[sort];
  return entries.sort((a, b) => (down ? of(b) - of(a) : of(a) - of(b)));
}

function summaryOf(found, all) {
  if (all === 0) return "No questions.";
  const newest = all === LIMIT ? ` Only the newest ${number(LIMIT)} of this period are looked at.` : "";
  return (found === all ? `${count(all, "question")}.` : `${number(found)} of ${count(all, "question")}.`) + newest;
}

function nothing(days) {
  return emptiness(Number(days) === 1 ? "Nothing was asked today" : `Nothing was asked in the last ${days} days`,
    el("a", { href: linkTo("search") }, "Ask a question"),
    ", or choose a longer period. Questions are kept only while ", el("code", {}, "telemetry.enabled"), " is on.");
}

function tableOf(entries, { sort, down }, onSort) {
  const columns = [
    { key: "time", title: "When", sortable: true, cell: timeOf },
    { key: "query", title: "Question", cell: (entry) => entry.query || el("span.muted", {}, "text not recorded") },
    { key: "event", title: "Kind", cell: (entry) => entry.event_type },
    { key: "intent", title: "Intent", cell: (entry) => entry.intent },
    { key: "results", title: "Results", sortable: true, number: true, cell: (entry) => number(entry.result_count) },
    { key: "latency", title: "Latency", sortable: true, number: true,
      cell: (entry) => `${number(entry.duration_ms)} ms` },
    { key: "again", title: "Ask again", cell: again },
  ];
  return table("Questions", columns, entries, { sorted: { key: sort, down }, sort: onSort });
}

function timeOf({ timestamp }) {
  const at = new Date(timestamp * 1000);
  return el("time", { datetime: at.toISOString(), title: ago(at) }, moment(at));
}

function again(entry) {
  if (!entry.query) return el("span.muted", {}, "–");
  const isSynthesis = entry.event_type === "synthesis";
  const href = linkTo("search", { q: entry.query, mode: isSynthesis ? "synthesize" : null });
  return el("a", { href, "aria-label": `${isSynthesis ? "Synthesize" : "Recall"} again: ${entry.query}` },
    isSynthesis ? "Synthesize" : "Recall");
}
