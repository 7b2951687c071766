// What the memory holds and how it is doing, kept up to date by the telemetry stream.

import { bars, columns, sparkline } from "../lib/charts.js";
import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { ago, count, duration, moment, number } from "../lib/format.js";
import { liveness, throttled } from "../lib/live.js";
import { badge, button } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { Tally, timeOf } from "../lib/tally.js";

const REFRESH_MS = 15_000;
const DRAW_MS = 200;
const TYPES = 14;
const HOUR_MS = 3_600_000;

export const overview = (api) => ({
  id: "overview",
  title: "Overview",
  style: "overview.css",
  async show(root, at) {
    const page = new OverviewPage(api, at);
    fill(root, el("p.muted", {}, "Loading …"));
    await page.load();
    fill(root, page.element);
    page.follow();
  },
});

class OverviewPage {
  #api;
  #at;
  #tally = new Tally();
  #totals;
  #live = liveness();
  #time = el("span.muted");
  #problem = el("div");
  #notices = el("div.stack");
  #counts = el("div");
  #today = el("div");
  #latest = el("div");
  #types = el("div");
  #service = el("div");
  #known = null;
  #isLive = true;

  constructor(api, at) {
    this.#api = api;
    this.#at = at;
    const card = (title, content) => el("section.card", {}, el("h2", {}, title), content);
    this.element = el("div.stack", {},
      el("div.spread", {}, this.#live.element,
        el("div.row", {}, this.#time, button("Refresh", () => this.#refresh()))),
      this.#problem, this.#notices, this.#counts,
      el("div.overview-columns", {},
        card("Questions today", this.#today),
        card("Latest questions", this.#latest),
        card("Entities by type", this.#types),
        card("Service", this.#service)));
  }

  async load() {
    const counted = this.#tally.count;
    const reads = [this.#api.health, this.#api.stats, this.#api.telemetry];
    const [health, stats, totals] = await Promise.all(reads.map((read) => read({ signal: this.#at.signal })));
    // Fewer than were counted here: a new day has begun.
    if (totals.total_queries < counted) this.#tally.reset();
    this.#totals = totals;
    fill(this.#time, `Updated ${moment(new Date()).slice(11)}`);
    fill(this.#notices, notices(health, stats));
    redrawn(this.#counts, counts(health, stats));
    redrawn(this.#types, types(stats));
    this.#known = { health, stats, at: Date.now() };
    this.#drawService();
    this.#drawToday();
  }

  async #refresh() {
    try {
      await this.load();
      fill(this.#problem);
    } catch (error) {
      if (!isAbort(error)) fill(this.#problem, failure(error, () => this.#refresh(), { signal: this.#at.signal }));
    }
  }

  #drawService() {
    if (this.#known) redrawn(this.#service, service(this.#known, this.#isLive));
  }

  #drawToday() {
    // The stream begins with today's entries, or with the last thousands of them; then the service knows more.
    const tally = this.#tally;
    const totals = tally.count >= this.#totals.total_queries ? tally.totals() : this.#totals;
    redrawn(this.#today, today(tally, totals));
    redrawn(this.#latest, latest(tally));
  }

  follow() {
    const { signal } = this.#at;
    let isStale = false;
    // Nobody looks at a hidden page, and each refresh counts against the rate limit.
    const refreshIfSeen = () => {
      isStale = document.hidden;
      if (!isStale) this.#refresh();
    };
    const refreshSoon = throttled(REFRESH_MS, signal, refreshIfSeen);
    const drawSoon = throttled(DRAW_MS, signal, () => this.#drawToday());
    document.addEventListener("visibilitychange", () => { if (isStale) refreshIfSeen(); }, { signal });
    const event = (text) => {
      const entry = parsed(text);
      if (!entry) return;
      this.#tally.add(entry);
      drawSoon();
      refreshSoon();
    };
    let wasBroken = false;
    const follow = () => this.#api.followTelemetry({ event, state, signal });
    const state = (name, error) => {
      this.#live.state(name, error);
      if (name === "ended") fill(this.#problem, failure(error, follow));
      this.#isLive = name === "open";
      this.#drawService();
      // What was counted while the service was away, and what failed then.
      if (name === "open" && wasBroken) refreshIfSeen();
      wasBroken = name !== "open";
    };
    follow();
  }
}

function parsed(text) {
  try {
    const entry = JSON.parse(text);
    return Number.isFinite(entry?.timestamp) ? entry : null;
  } catch {
    return null;
  }
}

/** Fills an element anew; a link in it keeps the focus. */
function redrawn(element, ...children) {
  const focused = element.contains(document.activeElement) && document.activeElement.getAttribute("href");
  fill(element, ...children);
  if (focused) [...element.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
}

function notices(health, stats) {
  const isDegraded = health.status !== "ok";
  return [
    isDegraded && el("div.notice.bad", { role: "alert" },
      el("p", {}, el("strong", {}, `The service is ${health.status}: its storage refuses to write. `),
        "Questions are still answered, but nothing new is kept. Look for a full or failing disk",
        health.data_dir && [" at ", el("code", {}, health.data_dir)], ", then restart the service.")),
    queueNotice(health),
    stats.total_notes === 0 && emptiness("The memory is empty",
      el("a", { href: linkTo("ingest") }, "Add notes or files"),
      ". Their entities and relationships appear here, in the graph and in the search."),
  ];
}

function queueNotice({ queue_status: status, enrichment_queue_depth: depth }) {
  if (status !== "backing_off" && status !== "paused") return null;
  const waiting = `${count(depth, "note waits", "notes wait")} for it and can be found meanwhile. `;
  return el("div.notice.warn", {}, status === "paused"
    ? ["No language model is configured. ", waiting, configuration("Choose one"), "."]
    : ["The language model does not answer. ", waiting,
      el("a", { href: linkTo("logs", { level: "warn" }) }, "Look at the log"), "."]);
}

const configuration = (text) => el("a", { href: linkTo("config") }, text);

function counts(health, stats) {
  const entities = Object.values(stats.entity_index).reduce((sum, type) => sum + type.unique_entities, 0);
  const waiting = health.enrichment_queue_depth;
  const tile = (title, value, note, href) => el("div.tile", {},
    el("dt", {}, href ? el("a", { href }, title) : title),
    el("dd.tile-value.number", {}, number(value)),
    el("dd.muted", {}, note));
  return el("dl.tiles", {},
    tile("Notes", stats.total_notes, `${number(stats.notes_created)} since the start`, linkTo("search")),
    tile("Entities", entities, "distinct", linkTo("entities")),
    tile("Graph nodes", health.graph_node_count, "notes and entities", linkTo("graph")),
    tile("Graph edges", health.graph_edge_count, "mentions and links", linkTo("graph")),
    tile("Enrichment queue", waiting, worded(health.queue_status)));
}

function today(tally, totals) {
  if (totals.total_queries === 0) {
    return el("p.muted", {}, "Nothing was asked today (UTC). ",
      el("a", { href: linkTo("search") }, "Ask a question"), ".");
  }
  const intents = Object.entries(totals.top_intents).sort((a, b) => b[1] - a[1]);
  return [
    figures([
      ["Asked", number(totals.total_queries)],
      ["Recalls", number(totals.total_queries - totals.synthesis_count)],
      ["Syntheses", number(totals.synthesis_count)],
    ]),
    tally.count > 0 && [el("h3", {}, "By hour"), hours(tally)],
    intents.length > 0 && [
      el("h3", {}, "By intent"),
      bars("Questions by intent", intents.map(([label, value]) => ({ label: worded(label), value })))],
    el("h3", {}, "Time to answer"),
    figures([["Median", ms(totals.p50_ms)], ["95 % within", ms(totals.p95_ms)], ["Average", ms(totals.avg_latency_ms)]]),
    tally.count > 0 && latencies(tally.latencies),
  ];
}

function figures(pairs) {
  return el("dl.figures", {}, pairs.map(([title, value]) =>
    el("div", {}, el("dt", {}, title), el("dd.number", {}, value))));
}

const ms = (value) => `${number(value)} ms`;
const worded = (name) => name.replaceAll("_", " ");

function latencies(values) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const text = `Latency of the last ${count(values.length, "question")}: ${least} to ${ms(most)}, `
    + `the newest ${ms(values.at(-1))}.`;
  return el("div", {},
    el("div.chart-frame", {}, sparkline(text, values),
      el("div.chart-axis", { "aria-hidden": "true" }, el("span", {}, ms(most)), el("span", {}, "0"))),
    el("p.hint", {}, values.length === 1 ? "One question." : `The last ${values.length}, the newest on the right.`));
}

/** The hours of the day up to the current one, labelled in the browser's time zone. */
function hours({ hours: values, day }) {
  const midnight = Date.parse(`${day}T00:00:00Z`);
  const nameOf = (hour) => moment(midnight + hour * HOUR_MS).slice(11, 16);
  const items = values.map((value, hour) => ({ value, title: `${nameOf(hour)}: ${count(value, "question")}` }));
  const busy = items.filter((item) => item.value > 0).map((item) => item.title).join("; ");
  return el("div", {}, columns(`Questions by hour. ${busy}.`, items),
    el("div.chart-hours", { "aria-hidden": "true" }, [0, 6, 12, 18, 24].map((hour) => el("span", {}, nameOf(hour)))));
}

function latest({ latest: entries, count: asked }) {
  if (entries.length === 0) {
    return el("p.muted", {}, asked > 0
      ? "The texts of questions are not recorded (telemetry.record_queries)."
      : "The questions of today appear here as they are asked.");
  }
  return el("ol.latest", {}, entries.map((entry) => {
    const isSynthesis = entry.event_type === "synthesis";
    const time = timeOf(entry);
    return el("li", {},
      el("a", { href: linkTo("search", { q: entry.query, mode: isSynthesis && "synthesize" || null }) }, entry.query),
      el("span.muted", {},
        `${worded(entry.event_type)} · ${worded(entry.intent ?? "")} · ${count(entry.result_count, "result")} · `,
        `${ms(entry.duration_ms)} · `,
        el("time", { datetime: new Date(time).toISOString(), title: ago(time) }, moment(time).slice(11))));
  }));
}

function types(stats) {
  const found = Object.entries(stats.entity_index)
    .filter(([, type]) => type.unique_entities > 0)
    .sort((a, b) => b[1].unique_entities - a[1].unique_entities);
  if (found.length === 0) {
    return el("p.muted", {}, "No entities yet. They are found in the notes: actors, malware, addresses …");
  }
  const items = found.slice(0, TYPES).map(([type, of]) =>
    ({ label: worded(type), value: of.unique_entities, href: linkTo("entities", { type }) }));
  const more = found.length - items.length;
  return [bars("Entities by type", items),
    more > 0 && el("p.muted", {}, el("a", { href: linkTo("entities") }, `${count(more, "more type")}`))];
}

function service({ health, stats, at }, isLive) {
  const state = health.status === "ok" ? badge("ok", "good") : badge(health.status, "bad");
  const fact = (title, ...value) => [el("dt", {}, title), el("dd", {}, value)];
  const soft = (text) => el("span.muted", {}, text);
  const onOff = (is) => badge(is ? "on" : "off", is ? "good" : "");
  const llm = [health.llm_model, health.llm_local_backend].filter(Boolean).join(", ");
  const started = at - health.uptime_seconds * 1000;
  return el("dl.facts", {},
    fact("State", isLive ? state : badge("unknown: no connection", "warn")),
    fact("Version", `${health.version}, ${health.edition_name}`),
    fact("Running for", duration(health.uptime_seconds), soft(` since ${moment(started).slice(0, 16)}`)),
    fact("Asked since then", count(stats.retrievals, "question")),
    fact("Storage", health.storage_backend),
    fact("Data folder", health.data_dir ? el("code", {}, health.data_dir) : soft("none: kept in memory only")),
    fact("Embedding", health.embedding_provider, health.embedding_model && soft(` ${health.embedding_model}`)),
    fact("Language model", health.llm_provider === "none"
      ? ["none. ", soft("Without one, a synthesis has sources but no answer: "), configuration("choose one"), "."]
      : [health.llm_provider, llm && soft(` ${llm}`)]),
    fact("Governance", onOff(health.governance_enabled)),
    fact("Search for personal data", onOff(health.pii_enabled)));
}
