// Search in the local service: recall, and answers written from the notes.

import { el, fill } from "../lib/dom.js";
import { count, percent } from "../lib/format.js";
import { badge, choice, table } from "../lib/parts.js";
import { tierBadge } from "../lib/result.js";
import { emptiness, linkTo } from "../lib/shell.js";
import { understood } from "../lib/why.js";
import { periodFilters } from "../views/filters.js";
import { likeness } from "../views/search.js";
import { conflicts } from "./corrections.js";
import { domainsOf, rememberForm } from "./remember.js";

const FORMATS = [
  ["direct_answer", "Direct answer"],
  ["synthesized_brief", "Brief"],
  ["timeline_analysis", "Timeline"],
  ["relationship_map", "Relationships"],
];
/** Where a recall cuts a text, in characters. */
const SHOWN = 500;
/** Where a title is cut that is not a sentence of at most 180 characters. */
const TITLE = 110;
const DEFAULT_K = "10";

/** @returns {import("../views/search.js").Source} */
export const localSource = (api) => {
  const draft = {};
  return {
    label: "Question",
    placeholder: "Which tools does APT28 use?",
    modes: [
      ["recall", "Recall", "Finds the notes that answer a question, by words, meaning and the entities that it names."],
      ["synthesize", "Synthesize", "Writes an answer from the notes with a language model, and cites them."],
    ],
    controls: (at) => controls(api, at),
    filters: ({ params }) => periodFilters([["since", "Remembered since"], ["until", "Remembered until"]], params),
    filtered: ["recall"],
    search: (asked, signal) => (asked.mode === "synthesize" ? synthesized : recalled)(api, asked, signal),
    welcome: () => welcome(api),
    aside: (at, changed) => rememberPanel(api, at, draft, changed),
  };
};

function controls(api, at) {
  const format = choice(FORMATS, at.params.get("format") ?? FORMATS[0][0]);
  const domain = choice([], "");
  const refresh = () => offerDomains(api, domain);
  offerDomains(api, domain, at.params.get("domain") ?? "");
  const wanted = at.params.get("k") || DEFAULT_K;
  const k = el("input.few", { type: "number", min: 1, max: 50, required: true, value: wanted });
  return [
    { name: "format", label: "Format", input: format, modes: ["synthesize"], initial: FORMATS[0][0] },
    { name: "domain", label: "Domain", input: domain, modes: ["recall"], initial: "", refresh },
    { name: "k", label: "Notes", input: k, initial: DEFAULT_K },
    likeness(at, ["recall"]),
  ];
}

function offerDomains(api, select, chosen = select.value) {
  const any = ["", "Any domain"];
  fill(select, [...choice(chosen ? [any, chosen] : [any], chosen).children]);
  domainsOf(api).then((list) => {
    const value = select.value;
    const names = list.map(({ name, notes }) => [name, `${name} (${notes})`]);
    const missing = value && !list.some(({ name }) => name === value) ? [value] : [];
    fill(select, [...choice([any, ...missing, ...names], value).children]);
    select.value = value;
  }, () => {});
}

async function recalled(api, { q, k, domain, since, until, min_score: least }, signal) {
  const filters = Object.entries({ domain, since, until, min_score: least && Number(least) })
    .filter(([, value]) => value || value === 0);
  const asked = { query: q, k: Number(k), explain: true, ...Object.fromEntries(filters) };
  const { results, latency_ms: latency, question } = await api.recall(asked, { signal });
  return {
    summary: `${count(results.length, "note")} in ${count(latency, "millisecond")}`,
    head: [understood(question, (id) => linkTo("graph", { around: id }))],
    results: results.map((note) => resultOf(note, q)),
    facets: FACETS,
    none: results.length === 0 ? await nothing(api, q, domain) : null,
  };
}

const FACETS = [
  { id: "domain", title: "Domain", of: (result) => result.domain },
  { id: "tier", title: "Tier", of: (result) => result.tier, label: (tier) => tier.toUpperCase() },
];

/** @returns {import("../lib/result.js").Result} */
function resultOf(note, q) {
  const [title, rest] = split(note.content);
  return {
    id: note.id,
    title,
    text: note.content.length >= SHOWN ? `${rest} …` : rest,
    domain: note.domain,
    tier: note.tier,
    badges: [tierBadge(note.tier)],
    confidence: note.confidence,
    score: note.score,
    createdAt: note.created_at,
    entities: note.entities,
    facts: [note.domain, note.source_type, note.source_ref, ...conflicts(note.conflicts_with ?? [], q)].filter(Boolean),
    why: note.why,
    links: {
      open: linkTo("note", { id: note.id, q }),
      entity: (entity) => linkTo("search", { q: entity }),
      step: ({ id }) => linkTo("graph", { around: id }),
    },
  };
}

/** The beginning of a text as its title, and the rest. */
function split(content) {
  const text = content.trim();
  const sentence = /^[^\n]{1,180}?(?:[.!?](?=\s)|(?=\n)|$)/u.exec(text)?.[0];
  if (sentence) return [sentence, text.slice(sentence.length).trim()];
  const space = text.lastIndexOf(" ", TITLE);
  const end = space > TITLE / 2 ? space : TITLE;
  return [`${text.slice(0, end)} …`, `… ${text.slice(end).trim()}`];
}

async function nothing(api, q, domain) {
  const domains = await domainsOf(api).catch(() => null);
  if (domains?.length === 0) return emptyMemory();
  return emptiness("No note fits.", domain
    ? ["Nothing in this domain. ", el("a", { href: linkTo("search", { q }) }, "Search in all domains")]
    : ["Try other words, or ", el("a", { href: linkTo("ingest") }, "ingest"), " what you know about it."]);
}

const emptyMemory = () => emptiness("The memory is empty.",
  el("a", { href: linkTo("ingest") }, "Ingest notes or files"), ", or remember a first note above.");

function welcome(api) {
  const place = el("div", {}, emptiness("Ask a question, or look for a name.",
    "Actors, tools, CVE numbers, techniques, addresses and hashes are known by name, alias and identifier."));
  domainsOf(api).then((list) => { if (list.length === 0) fill(place, emptyMemory()); }, () => {});
  return place;
}

function rememberPanel(api, at, draft, changed) {
  const place = el("div.disclosed");
  const show = () => { if (!place.firstChild) fill(place, rememberForm(api, at, draft, changed)); };
  return el("details.remember", {
    open: Boolean(draft.content), ontoggle: (event) => { if (event.target.open) show(); },
  }, el("summary", {}, "Remember a note"), place);
}

async function synthesized(api, { q, k, format }, signal) {
  // The synthesis would find notes and have nobody to write of them, but be recorded as one.
  if (!(await hasModel(api, signal))) {
    const found = await recalled(api, { q, k }, signal);
    return { ...found, head: [noModel(found.results.length > 0)] };
  }
  const { synthesis, sources_count: sought, latency_ms: latency } =
    await api.synthesize({ query: q, format, k: Number(k) }, { signal });
  const answered = synthesis.sources.length > 0;
  return {
    summary: `${answered ? "Answered from" : "No answer from"} ${count(sought, "note")} in ${count(latency, "millisecond")}`,
    head: [answered ? answerCard(synthesis, q) : sought > 0 && unanswered(q, k)],
    results: [],
    none: sought > 0 ? null : await nothing(api, q, ""),
  };
}

async function hasModel(api, signal) {
  const { llm_provider: provider } = await api.health({ signal });
  return provider !== "none";
}

const noModel = (withNotes) => el("div.notice.warn", {}, el("p", {},
  el("strong", {}, "No language model is configured"), ", so no answer can be written. ",
  el("a", { href: linkTo("config", { q: "llm" }) }, "Set one in the configuration"), ".",
  withNotes && " These are the notes found."));

/** Leads to the notes that an answer would be made of. They are not asked for unbidden, as each recall is recorded. */
const unanswered = (q, k) => el("div.notice", {}, el("p", {},
  el("strong", {}, "The notes give no answer that can be cited"), ", or the language model failed (see the ",
  el("a", { href: linkTo("logs", { level: "warn" }) }, "warnings in the logs"), "). ",
  el("a", { href: linkTo("search", { q, k: k === DEFAULT_K ? "" : k }) }, "Show the notes found"), "."));

function answerCard({ answer, confidence, sources, ...lists }, q) {
  const numbers = new Map();
  for (const { note_id: id } of sources) if (!numbers.has(id)) numbers.set(id, numbers.size + 1);
  const quotes = new Map(sources.map(({ note_id: id, quote }) => [id, quote]));
  const cite = (id) => el("a.cite", { href: linkTo("note", { id, quote: quotes.get(id), q }), title: "Open the note" },
    `[${numbers.get(id) ?? "note"}]`);
  return el("section.card.answer", { "aria-label": "Answer" },
    el("div.spread", {},
      el("h2", {}, "Answer"), badge(`confidence ${percent(confidence)}`, confidence >= 0.5 ? "good" : "warn")),
    el("p.answer-text", {}, answer),
    pointList(lists.key_points, cite), timeline(lists.timeline, cite), relationMap(lists.relationships, cite),
    el("h3", {}, "Sources"),
    el("ol.plain-list.sources", {}, sources.map(({ note_id: id, quote }) => el("li", {},
      el("span.cite", {}, `[${numbers.get(id)}]`),
      el("a", { href: linkTo("note", { id, quote, q }) }, el("q", {}, quote))))));
}

function pointList(points = [], cite) {
  return points.length > 0 && [el("h3", {}, "Key points"),
    el("ul", {}, points.map(({ point, note_id: id }) => el("li", {}, el("bdi", {}, point), " ", cite(id))))];
}

function timeline(events = [], cite) {
  return events.length > 0 && [el("h3", {}, "Timeline"),
    el("ol.plain-list.timeline", {}, events.map(({ date, event, note_id: id }) =>
      el("li", {}, el("span.date", {}, date), el("span", {}, el("bdi", {}, event), " ", cite(id)))))];
}

function relationMap(relations = [], cite) {
  const key = ({ source, relationship, target }) => JSON.stringify([source, relationship, target]);
  const groups = [...Map.groupBy(relations, key).values()];
  const name = (entity) => el("a", { href: linkTo("search", { q: entity }) }, entity);
  return relations.length > 0 && [el("h3", {}, "Relationships"), table("Relationships", [
    { key: "source", title: "From", cell: ([{ source }]) => name(source) },
    { key: "relationship", title: "Relationship", cell: ([{ relationship }]) => relationship },
    { key: "target", title: "To", cell: ([{ target }]) => name(target) },
    { key: "note", title: "Notes", cell: (group) => group.map(({ note_id: id }) => [cite(id), " "]) },
  ], groups)];
}
