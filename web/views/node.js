// One node of the knowledge graph: what is known about it, its relationships and the evidence behind it.

import { may } from "../console/session.js";
import { el, fill } from "../lib/dom.js";
import { count, moment, number, percent } from "../lib/format.js";
import { plain } from "../lib/markdown.js";
import { marked } from "../lib/marks.js";
import { propertyName, sourceName, typeName } from "../lib/nouns.js";
import { badge, button, facts, joined, tlp, when } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { corrections, rejection } from "./corrections.js";
import { merges } from "./merges.js";

/** Relationships per request. */
const PAGE = 100;
/** The part of a long text that is shown at first, in characters. */
const LONG = 8000;
/** Entries of a list that are shown at first. */
const FEW = 30;

export const node = (api) => ({
  id: "node",
  title: "Node",
  style: "node.css",
  hidden: true,
  async show(root, at) {
    const id = at.params.get("id");
    if (!id) {
      const search = el("a", { href: linkTo("search") }, "Search for one.");
      return void fill(root, emptiness("No node is chosen.", search));
    }
    fill(root, el("p.muted", {}, "Loading …"));
    const query = { limit: PAGE, include_rejected: at.params.get("include_rejected") === "true" || undefined };
    try {
      const found = await api.node(id, query, { signal: at.signal });
      at.name(found.node.name);
      const reload = () => this.show(root, at);
      const parts = [
        head(found.node, at), relationships(api, found, query, at, reload),
        evidence(api, found, query, at, reload), corrections(api, found, at, reload), merges(api, found, at, reload),
      ];
      fill(root, el("div.stack", {}, parts));
      root.querySelector("details[open]")?.scrollIntoView();
    } catch (error) {
      if (error.status !== 404) throw error;
      fill(root, missing(id, query.include_rejected));
    }
  },
});

function missing(id, withRejected) {
  const search = el("a", { href: linkTo("search") }, "Search for another");
  const rejected = may("recall:write") && !withRejected
    && [", or ", el("a", { href: linkTo("node", { id, include_rejected: true }) }, "look among the rejected ones")];
  return emptiness("There is no such node, or its marking hides it from this workspace.", search, rejected, ".");
}

function head(node, at) {
  // Whose aliases they are stands beside each.
  const { aliases, aliases_from: from = {}, fields, ...others } = node.properties;
  const names = texts(aliases);
  const { confidence, ...ofStix } = fields ?? {};
  const ofObject = others.stix_type ? ofStix : { fields };
  const shown = { ...(names.length === 0 && { aliases }), ...others, ...ofObject };
  const copy = button("Copy id", async () => {
    await navigator.clipboard.writeText(node.id).then(
      () => at.notify("The id is in the clipboard."),
      () => at.notify("The browser does not allow copying: mark the id and copy it.", "bad"),
    );
  });
  return el("section.card.node-head", {},
    el("div.row", {}, badge(typeName(node.node_type), `type-${node.node_type}`),
      node.node_type === "osint" && others.stix_type && badge(others.stix_type.replace(/^x-/, "").replaceAll("-", " ")),
      tlp(node.tlp), node.status !== "active" && badge(node.status, "bad")),
    el("h2", {}, node.name),
    names.length > 0 && cut(names, el("p.muted.pre"), (shown) => ["Also known as ", joined(shown)]),
    Object.keys(from).length > 0 && el("details", {}, el("summary", {}, "Who says so"), el("ul.values", {},
      Object.entries(from).map(([alias, sources]) => el("li", {}, el("bdi", {}, alias), ": ", joined(sources))))),
    node.description && el("div", {}, long(plain(node.description))),
    facts([
      ["Confidence", percent(node.confidence)],
      ["Source", [el("bdi", {}, node.source), ` (${sourceName(node.source_type)})`]],
      ["Ingested", when(node.ingested_at)],
      ["Id", el("code", {}, node.id)],
      ...Object.entries(shown).filter(isTelling)
        .map(([name, value]) => [propertyName(name), valueOf(value)]),
    ]),
    el("div.row", {},
      el("a.button", { href: linkTo("graph", { around: node.id }) }, "Show in the graph"),
      el("a.button", { href: linkTo("search", { q: node.name }) }, "Search for it"),
      // Without TLS the browser offers no clipboard.
      navigator.clipboard && copy));
}

/** A list of texts without the empty ones, or nothing. */
function texts(value) {
  const isTexts = Array.isArray(value) && value.every((entry) => typeof entry === "string");
  return isTexts ? value.filter((entry) => entry.trim() !== "") : [];
}

/** A list that is cut until somebody wants all of it. `drawn` makes what the place holds. */
function cut(entries, place, drawn) {
  fill(place, drawn(entries.slice(0, FEW)));
  if (entries.length <= FEW) return place;
  return [place, moreOf(`Show all ${number(entries.length)}`, place, () => fill(place, drawn(entries)))];
}

/** A button that shows the rest of a place once. The focus then goes there, as the button is gone. */
function moreOf(text, place, draw) {
  const more = button(text, () => {
    draw();
    more.remove();
    place.tabIndex = -1;
    place.focus();
  });
  return more;
}

/** Whether a property says something: a flag of MITRE or STIX does so only if it is set. */
const isTelling = ([name, value]) => value !== undefined && (value !== false || !/^(?:x_.*|revoked|defanged)$/.test(name));

/** A property as one reads it. Nothing but a web address becomes a link. */
function valueOf(value) {
  if (value === null || value === "") return el("span.muted", {}, "none");
  if (typeof value === "string") {
    if (/^https?:\/\//i.test(value)) {
      return el("a", { href: value, rel: "noopener noreferrer", target: "_blank" }, value);
    }
    if (/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) && !Number.isNaN(Date.parse(value))) return moment(value);
    return long(value);
  }
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return String(value);
  const isFlat = Array.isArray(value) && value.every((entry) => entry === null || typeof entry !== "object");
  if (!isFlat) return json(value);
  if (value.length === 0) return el("span.muted", {}, "none");
  return cut(value, el("ul.values"), (shown) => shown.map((entry) => el("li", {}, valueOf(entry))));
}

/** A text that is cut until somebody wants all of it. */
function long(text, words = []) {
  const shown = el("div.pre", {}, marked(text.slice(0, LONG), words));
  if (text.length <= LONG) return shown;
  const all = `Show all ${number(text.length)} characters`;
  return [shown, moreOf(all, shown, () => fill(shown, marked(text, words)))];
}

const json = (value) => el("div.source.mono", { tabindex: 0, role: "group", "aria-label": "JSON" },
  long(JSON.stringify(value, null, 2)));

function relationships(api, found, query, at, reload) {
  const loaded = [...found.relationships];
  const list = el("div.stack", { tabindex: -1 });
  const total = el("span.muted", { "aria-live": "polite" });
  const problem = el("div");
  const reject = ({ id, node, status }) => rejection(`the relationship with ${node.name}`,
    (body) => api.correctEdge(id, body, { signal: at.signal }), at, problem, reload, status === "rejected");
  let more = found.more_relationships;
  const next = button("Show more", () => load());
  const load = async () => {
    fill(problem);
    try {
      const page = await api.node(found.node.id, { ...query, offset: loaded.length }, { signal: at.signal });
      loaded.push(...page.relationships);
      more = page.more_relationships;
      draw();
      if (!more) list.focus({ preventScroll: true });
    } catch (error) {
      if (!at.signal.aborted) fill(problem, failure(error));
    }
  };
  const draw = () => {
    fill(total, more ? `the first ${number(loaded.length)}` : loaded.length > 0 && number(loaded.length));
    fill(list, groupsOf(loaded).map((of) => group(of, reject)));
    next.hidden = !more;
  };
  draw();
  return el("section.card", {}, el("h2", {}, "Relationships ", total),
    loaded.length === 0
      ? el("p.muted", {}, "No source that this workspace may see relates it to another node.") : list,
    problem, next);
}

/** Relationships by direction and type, in the order in which they came. */
function groupsOf(relationships) {
  const groups = new Map();
  for (const one of relationships) {
    const key = `${one.direction} ${one.relationship_type}`;
    if (!groups.has(key)) groups.set(key, { direction: one.direction, type: one.relationship_type, entries: [] });
    groups.get(key).entries.push(one);
  }
  return [...groups.values()].sort((a, b) => b.direction.localeCompare(a.direction));
}

function group({ direction, type, entries }, reject) {
  const verb = el("strong", {}, type.replaceAll("-", " "));
  const title = direction === "outgoing" ? ["this node ", verb] : [verb, " this node"];
  return el("div", {}, el("h3", {}, title, el("span.muted", {}, ` ${number(entries.length)}`)),
    el("ul.ends", {}, entries.map((one) => el("li", {},
      el("a", { href: linkTo("node", { id: one.node.id }) }, one.node.name),
      el("span.row", {}, badge(typeName(one.node.node_type), `type-${one.node.node_type}`), tlp(one.node.tlp),
        el("span.muted", { title: "Confidence of the relationship" }, percent(one.confidence)),
        one.status === "rejected" && badge("rejected", "bad"), reject(one))))));
}

function evidence(api, found, query, at, reload) {
  const words = [found.node.name, ...texts(found.node.properties.aliases)];
  const shown = el("span.muted", {}, found.more_evidence && "the newest ",
    found.evidence.length > 0 && number(found.evidence.length));
  const withRejected = query.include_rejected === true;
  const other = may("recall:write") && el("a", { href: linkTo("node", { id: found.node.id, include_rejected: !withRejected || undefined }) },
    withRejected ? "Hide what was rejected" : "Show what was rejected, too");
  return el("section.card", {},
    el("div.row", {}, el("h2", {}, "Evidence ", shown), other),
    found.evidence.length === 0
      ? el("p.muted", {}, "There is no evidence that this workspace may see.")
      : el("div.records", {}, found.evidence.map((record) => recordOf(api, record, words, query, at, reload))));
}

/** A record that is read when it is first opened. */
function recordOf(api, record, words, query, at, reload) {
  const content = el("div.record", { "aria-live": "polite" });
  let wanted = true;
  const load = async () => {
    wanted = false;
    fill(content, el("p.muted", {}, "Loading …"));
    try {
      const full = await api.evidence(record.id, { include_rejected: query.include_rejected }, { signal: at.signal });
      const problem = el("div");
      // The original of a STIX object stands and falls with its node.
      const reject = record.kind !== "stix" && rejection("the record",
        (body) => api.correctEvidence(record.id, body, { signal: at.signal }), at, problem, reload,
        record.status === "rejected");
      fill(content, contentOf(full, words), problem, reject && el("div.row", {}, reject));
    } catch (error) {
      if (!at.signal.aborted) fill(content, failure(error, load));
    }
  };
  const isChosen = record.id === at.params.get("evidence");
  return el("details", { open: isChosen, ontoggle: (event) => { if (event.target.open && wanted) load(); } },
    el("summary", {}, el("span.row", {}, badge(sourceName(record.kind)), el("strong", {}, record.title), tlp(record.tlp),
      record.status === "rejected" && badge("rejected", "bad"),
      el("span.muted", {}, el("bdi", {}, record.source), " · ", when(record.created_at)))),
    content);
}

function contentOf(record, words) {
  const original = record.original;
  return [
    record.text
      ? [el("h3", {}, "Text"), long(record.text, words)] : el("p.muted", {}, "The original has no readable text."),
    el("h3", {}, "Original ", el("span.muted", {}, count(Object.keys(original).length, "field"))),
    json(original),
    el("p.hint", {}, "Record ", el("code", {}, record.id)),
  ];
}
