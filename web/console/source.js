// Search in the hosted service, and the export of what it found.

import { el, fill, uniqueId } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { plain } from "../lib/markdown.js";
import { typeName } from "../lib/nouns.js";
import { badge, button, choice, download, joined, tlp } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { understood } from "../lib/why.js";
import { choicesFilter, leastFilter, periodFilters, textFilter } from "../views/filters.js";
import { likeness } from "../views/search.js";
import { who } from "./session.js";

/** Most characters of a description that a card shows. */
const SHOWN = 500;
const DEFAULT_LIMIT = "20";
/** Roles that may see rejected nodes. */
const REVIEWERS = new Set(["admin", "analyst"]);

/** Types of nodes, as the filter names them. */
const TYPES = [
  ["actor", "Actors and campaigns"], ["tool", "Malware and tools"], ["attck", "ATT&CK"], ["cve", "CVEs"],
  ["vulnerability", "Other vulnerabilities"], ["ioc", "Indicators"], ["osint", "OSINT"],
];

/** @returns {import("../views/search.js").Source} */
export function hostedSource(api) {
  /** Sources of what was found, as suggestions. */
  const sources = el("datalist", { id: uniqueId("sources") });
  const seen = new Set();
  const learn = (results) => {
    for (const { source } of results) if (source) seen.add(source);
    fill(sources, [...seen].sort().map((value) => el("option", { value })));
  };
  return {
    label: "Question",
    placeholder: "ransomware that exploited MOVEit",
    modes: [
      ["blended", "Blended", "By words and by meaning. What the question names exactly comes first. Can be exported."],
      ["structured", "Structured", "By names, identifiers and types only. Can be exported."],
      ["semantic", "Semantic", "By meaning only, with no regard to the words. Can't be exported."],
    ],
    controls,
    filters: ({ params }) => [
      choicesFilter("node_type", "Types", TYPES, params),
      textFilter("source", "Source", sources, params),
      ...periodFilters([["since", "Entered since"], ["until", "Entered until"]], params),
      leastFilter("min_confidence", "Lowest confidence (%)", params),
    ],
    search: async (asked, signal) => {
      const answer = await found(api, asked, signal);
      learn(answer.results);
      return answer;
    },
    welcome: () => emptiness("Search the knowledge graph of your workspace.",
      "Names, aliases and identifiers such as APT28, CVE-2023-34362, T1190 or 203.0.113.7; or a question."),
  };
}

function controls(at) {
  const { params } = at;
  const limit = el("input.few", {
    type: "number", min: 1, max: 100, required: true, value: params.get("limit") || DEFAULT_LIMIT,
  });
  const rejected = choice([["", "Active"], ["true", "Active and rejected"]], params.get("include_rejected") ?? "");
  return [
    { name: "limit", label: "Nodes", input: limit, initial: DEFAULT_LIMIT },
    likeness(at, ["blended", "structured"]),
    ...(REVIEWERS.has(who()?.user?.role)
      ? [{ name: "include_rejected", label: "Status", input: rejected, initial: "" }] : []),
  ];
}

async function found(api, { mode, ...rest }, signal) {
  const query = { ...rest, explain: true };
  const answer = mode === "semantic"
    ? await api.semantic(query, { signal }) : await api.search({ ...query, mode }, { signal });
  const { results, max_tlp: highest, recall_id: session, question } = answer;
  return {
    summary: count(results.length, "node"),
    actions: session && results.length > 0 ? exportParts(api, session, highest, results.length) : [],
    head: [understood(question, (id) => linkTo("node", { id }))],
    results: results.map(resultOf),
    facets: FACETS,
    none: emptiness("No node fits.", mode === "structured"
      ? "Structured search needs a name, an identifier or a type. Try the blended search."
      : "Try other words. What lies above the clearance of your workspace is not searched."),
  };
}

const FACETS = [
  { id: "type", title: "Type", of: (result) => result.type, label: typeName },
  { id: "tlp", title: "TLP", of: (result) => result.tlp, label: (level) => level.replace("TLP:", "") },
];

/** @returns {import("../lib/result.js").Result} */
function resultOf(node) {
  const { properties, linked_evidence_ids: evidence } = node;
  const description = plain(node.description ?? "");
  const known = properties?.aliases;
  const aliases = (Array.isArray(known) ? known : []).filter((name) => typeof name === "string" && name.trim());
  return {
    id: node.id,
    title: node.name,
    text: description.length > SHOWN ? `${description.slice(0, SHOWN).trimEnd()} …` : description,
    type: node.node_type,
    tlp: node.tlp,
    source: node.source,
    badges: [
      badge(typeName(node.node_type), `type-${node.node_type}`), tlp(node.tlp),
      node.status !== "active" && badge(node.status, "warn"),
    ].filter(Boolean),
    confidence: node.confidence,
    score: node.score,
    createdAt: node.ingested_at,
    entities: [],
    names: [node.name, ...aliases],
    facts: [
      node.source, count(evidence.length, "evidence record"),
      aliases.length > 0 && el("span", {}, "also ", joined(aliases.slice(0, 6)), aliases.length > 6 && " …"),
    ].filter(Boolean),
    why: node.why && plainly(node.why),
    links: {
      open: linkTo("node", { id: node.id }),
      step: ({ id }) => linkTo("node", { id }),
    },
  };
}

/** Reasons without the Markdown of their passages. */
const plainly = ({ passages = [], ...why }) =>
  ({ ...why, passages: passages.map((passage) => ({ ...passage, text: plain(passage.text) })) });

/** The button that exports a session, and what came of it. */
export function exportParts(api, session, highest, nodes) {
  const outcome = el("div.outcome", { role: "status" });
  const save = button(`Export ${count(nodes, "node")} as STIX 2.1`, async () => {
    fill(outcome);
    try {
      const { text, heldBack } = await api.exportSession(session);
      download(`recall-${session}.stix.json`, text, "application/stix+json");
      fill(outcome, heldBack > 0
        ? el("p.notice.warn", {}, `The bundle was saved without ${count(heldBack, "object")}: `,
          "the definition of a marking is missing, or the terms of a feed forbid it.")
        : el("p.muted", {}, "The bundle was saved."));
    } catch (error) {
      const why = error.body?.details;
      fill(outcome, failure(typeof why === "string" ? `${error.message} ${why}` : error));
    }
  });
  return [save, el("span.muted", {}, "Highest marking: "), tlp(highest), outcome];
}
