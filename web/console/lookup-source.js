// Look-up in the knowledge graph of the workspace.

import { el } from "../lib/dom.js";
import { moment } from "../lib/format.js";
import { typeName } from "../lib/nouns.js";
import { badge, tlp } from "../lib/parts.js";
import { linkTo } from "../lib/shell.js";
import { matchText } from "../views/lookup.js";
import { exportParts } from "./source.js";

const MARKINGS = ["WHITE", "GREEN", "AMBER", "AMBER+PK", "RED"];
/** Hits of a value that its row shows. */
const FEW = 3;

/** @returns {import("../views/lookup.js").Source} */
export const lookupSource = (api) => ({
  look: (body, signal) => api.lookup(body, { signal }),
  columns: [
    { key: "found", title: "Found", cell: found },
    { key: "indicates", title: "Indicates", cell: ({ hits }) => list(indicated(hits).map(link)) },
    { key: "marking", title: "Marking", cell: ({ hits }) => list(unique(hits.map((hit) => hit.tlp)).map(tlp)) },
    { key: "sources", title: "Sources", cell: ({ hits }) => list(unique(hits.flatMap((hit) => hit.sources))
      .slice(0, FEW).map((source) => el("bdi", {}, source))) },
    { key: "seen", title: "Last seen", cell: ({ hits }) => seen(hits) },
  ],
  fields: [
    ["match", (hit) => hit.match], ["name", (hit) => hit.name], ["node_type", (hit) => hit.node_type],
    ["tlp", (hit) => hit.tlp], ["status", (hit) => hit.status], ["confidence", (hit) => hit.confidence],
    ["first_seen", (hit) => hit.first_seen], ["last_seen", (hit) => hit.last_seen],
    ["sources", (hit) => hit.sources.join("; ")],
    ["indicates", (hit) => hit.indicates.map(({ name }) => name).join("; ")], ["id", (hit) => hit.id],
  ],
  actions({ results, recall_id: session }) {
    const hits = results.flatMap((result) => result.hits);
    if (hits.length === 0) return null;
    const highest = MARKINGS.findLast((name) => hits.some((hit) => hit.tlp === `TLP:${name}`));
    return exportParts(api, session, `TLP:${highest}`, new Set(hits.map(({ id }) => id)).size);
  },
});

const unique = (values) => [...new Set(values)];
const list = (entries) => (entries.length === 0 ? el("span.muted", {}, "–")
  : el("ul", {}, entries.map((entry) => el("li", {}, entry))));
const link = ({ id, name }) => el("a", { href: linkTo("node", { id }) }, name);

function found({ hits, more_hits: more }) {
  const shown = hits.slice(0, FEW).map((hit) => [link(hit), " ", badge(typeName(hit.node_type), `type-${hit.node_type}`), " ",
    el("span.muted", {}, matchText(hit.match)), " ",
    el("a", { href: linkTo("graph", { around: hit.id }), "aria-label": `Show ${hit.name} in the graph` }, "graph")]);
  const rest = hits.length - shown.length;
  return list(rest > 0 || more ? [...shown, el("span.muted", {}, `and ${rest}${more ? " or more" : ""} others`)] : shown);
}

function indicated(hits) {
  const all = hits.flatMap(({ indicates }) => indicates);
  return [...new Map(all.map((one) => [one.id, one])).values()].slice(0, FEW);
}

function seen(hits) {
  const times = hits.map((hit) => hit.last_seen ?? hit.first_seen).filter((time) => !Number.isNaN(Date.parse(time)));
  const newest = times.sort((a, b) => Date.parse(b) - Date.parse(a))[0];
  return newest ? moment(newest) : el("span.muted", {}, "–");
}
