// The graph of a workspace, as the graph view wants it: it grows from a search or a node, at first from
// the last one or the best connected.

import { ApiError } from "../lib/client.js";
import { percent } from "../lib/format.js";
import { plain } from "../lib/markdown.js";
import { badge, tlp, when } from "../lib/parts.js";
import { linkTo } from "../lib/shell.js";

/** Of the hits, those at least half as good as the best begin a picture that one can read. */
const FOUND = 8;
const PAGE = 100;

/** @returns {import("../views/graph.js").Source} */
export const graphSource = (api) => {
  /** Pages of nodes that were read during this visit: what the picture and the details need is the same. */
  const pages = new Map();

  async function read(id, offset, options) {
    const key = `${id} ${offset}`;
    if (!pages.has(key)) pages.set(key, await api.node(id, { limit: PAGE, offset }, options));
    return pages.get(key);
  }

  /** What is around the node that was opened or found last, or else the best connected nodes. */
  async function begun(options) {
    const id = await api.lastNode(options);
    try {
      if (id !== null) {
        const found = await read(id, 0, options);
        return { ...part(found), begun: `Around ${found.node.name}, which you opened or found last` };
      }
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
    }
    const { nodes, relationships } = await api.graph(options);
    const edges = relationships.map(({ relationship_type: relationship, ...edge }) => ({ ...edge, relationship }));
    return nodes.length > 0 && { nodes: nodes.map(nodeOf), edges, begun: "The best connected nodes" };
  }

  return {
    whole: false,
    depths: [1],
    empty: "Begin with a search.",
    next: () => ["The nodes found begin the picture; expand them to see what they are related to."],

    start: async ({ around, fresh }, options) => {
      pages.clear();
      if (around) return part(await read(around, 0, options));
      return (!fresh && await begun(options)) || { nodes: [], edges: [] };
    },

    find: async (q, _notes, options) => {
      const { results } = await api.search({ q, limit: FOUND }, options);
      if (results.length === 0) return { nodes: [], edges: [] };
      const good = results.filter(({ score }) => !(score < results[0].score / 2));
      const around = part(await read(good[0].id, 0, options));
      const found = good.map(nodeOf);
      return { nodes: [...found, ...around.nodes], edges: around.edges, found: found.length, around };
    },

    expand: async (id, step, _notes, options) => part(await read(id, step * PAGE, options)),

    details: async (id, offset, options) => {
      const found = await read(id, offset, options);
      const { node } = found;
      return {
        node: nodeOf(node),
        badges: [tlp(node.tlp), node.status === "active" ? null : badge(node.status, "warn")],
        facts: facts(node),
        text: plain(node.description ?? ""),
        records: offset > 0 ? [] : found.evidence.map((record) => ({
          id: record.id, text: record.title || record.kind, href: linkTo("node", { id: node.id, evidence: record.id }),
          more: [`${record.source} · `, when(record.created_at)],
        })),
        recordsTitle: "Evidence",
        totals: found.more_evidence ? undefined : { records: found.evidence.length },
        neighbours: found.relationships.map((relationship) => ({
          node: nodeOf(relationship.node),
          outgoing: relationship.direction === "outgoing",
          edge: edgeOf(node, relationship),
        })),
        next: found.more_relationships ? offset + PAGE : null,
        open: { href: linkTo("node", { id: node.id }), text: "Open the node" },
      };
    },
  };
};

function nodeOf({ id, name, node_type, properties }) {
  const aliases = Array.isArray(properties?.aliases) ? properties.aliases : [];
  return { id, label: name, type: node_type, aliases: aliases.filter((alias) => typeof alias === "string") };
}

function edgeOf(node, { id, relationship_type, direction, node: other }) {
  const [source, target] = direction === "outgoing" ? [node.id, other.id] : [other.id, node.id];
  return { id, relationship: relationship_type, source, target };
}

function part({ node, relationships, more_relationships }) {
  return {
    nodes: [nodeOf(node), ...relationships.map((relationship) => nodeOf(relationship.node))],
    edges: relationships.map((relationship) => edgeOf(node, relationship)),
    truncated: more_relationships,
  };
}

function facts(node) {
  const aliases = nodeOf(node).aliases;
  return [
    ["Also known as", aliases.join(", ")],
    ["Source", node.source],
    ["Confidence", percent(node.confidence)],
    ["Ingested", when(node.ingested_at)],
  ];
}
