// The graph of the local service, as the graph view wants it.

import { el } from "../lib/dom.js";
import { count, number, percent } from "../lib/format.js";
import { badge, when } from "../lib/parts.js";
import { linkTo } from "../lib/shell.js";

const MOST = 2000;
const FOUND = 25;
const STEP = 60;
/** More nodes around one the service does not give. */
const MOST_AROUND = 5000;
const PAGE = 50;

/** @returns {import("../views/graph.js").Source} */
export const graphSource = (api) => ({
  whole: true,
  depths: [1, 2, 3],
  empty: "The graph is empty.",
  next: () => ["It grows out of notes. ", el("a", { href: linkTo("ingest") }, "Ingest the first ones"), "."],

  start: async ({ around, depth }, options) =>
    part(await api.graphView({ limit: MOST, around, depth: around && depth }, options)),

  find: async (q, notes, options) => part(await api.graphView({ q, notes, limit: FOUND }, options)),

  // Where notes are hidden, the entities of one note are two edges apart.
  expand: async (around, step, notes, options) => {
    const limit = Math.min(MOST_AROUND, STEP * 3 ** step);
    const found = part(await api.graphView({ around, depth: notes ? 1 : 2, limit }, options));
    return { ...found, last: limit === MOST_AROUND };
  },

  details: async (id, offset, options) => {
    const found = await api.graphNode({ id, offset, limit: PAGE }, options);
    const { node, notes, neighbours, total_notes, total_neighbours } = found;
    const end = offset + PAGE;
    return {
      node,
      badges: node.tier
        ? [badge(`Tier ${node.tier.toUpperCase()}`, `tier-${node.tier}`, "Trust of its best note")]
        : [],
      facts: facts(node, found),
      records: notes.map((note) => ({
        id: note.id, text: note.context, href: linkTo("note", { id: note.id }),
        more: [`Tier ${note.tier.toUpperCase()} · ${note.domain} · `, when(note.created_at)],
      })),
      recordsTitle: "Notes behind it",
      totals: { records: total_notes, neighbours: total_neighbours },
      neighbours: neighbours.map(({ edge_id, relationship, outgoing, node: other }) => ({
        node: other, outgoing, edge: edge(edge_id, relationship, node.id, other.id, outgoing),
      })),
      next: total_notes > end || total_neighbours > end ? end : null,
      open: node.type === "note" ? { href: linkTo("note", { id: node.id }), text: "Open the note" } : undefined,
    };
  },
});

function part({ nodes, edges, total_nodes, truncated }) {
  return { nodes, edges, total: total_nodes, truncated };
}

function edge(id, relationship, one, other, outgoing) {
  return { id, relationship, source: outgoing ? one : other, target: outgoing ? other : one };
}

function facts(node, { total_notes, total_neighbours }) {
  const isNote = node.type === "note";
  return [
    ["Also known as", node.aliases.join(", ")],
    ["Confidence", percent(node.confidence)],
    ["Connections", isNote ? number(total_neighbours)
      : `${number(node.degree)} (${count(total_notes, "note")}, ${count(total_neighbours, "relationship")})`],
    [isNote ? "Remembered" : "First seen", when(node.created_at)],
  ];
}
