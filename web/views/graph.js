// The knowledge graph as a picture. Its parts are in graph/.

import { GraphView } from "../graph/view.js";

/**
 * Where the picture comes from.
 *
 * @typedef {Object} Source
 * @property {boolean} whole Whether it starts with the whole graph; otherwise with a search or a node.
 * @property {number[]} depths How far a picture may reach around a node.
 * @property {string} empty What the picture says while it is empty; `next` gives what to do then.
 * @property {() => any[]} next
 * @property {(wish: {around: string, depth: number, fresh: boolean}, options: {signal: AbortSignal}) => Promise<Part>}
 *   start What it starts with: if `fresh`, with nothing that was not asked for.
 * @property {(text: string, notes: boolean, options: {signal: AbortSignal}) => Promise<Part>} find Nodes with this
 *   text; `notes` says whether notes are shown.
 * @property {(id: string, step: number, notes: boolean, options: {signal: AbortSignal}) => Promise<Part>} expand What
 *   is around a node; `step` counts from 0.
 * @property {(id: string, offset: number, options: {signal: AbortSignal}) => Promise<Details>} details
 *
 * @typedef {{nodes: Object[], edges: Object[], total?: number, truncated?: boolean, last?: boolean, found?: number,
 *   around?: Part, begun?: string}} Part `begun` says what it began with by itself; `truncated`: there is more; `last`: but it cannot be asked for. Of a search, `found` says how
 *   many of the nodes, which come first, were found, and `around` is what is around the first.
 *
 * @typedef {Object} Details A node with a page of what is behind it and around it.
 * @property {Object} node
 * @property {Node[]} badges
 * @property {[string, any][]} facts
 * @property {string} [text]
 * @property {{text: string, href: string, more: any[]}[]} records
 * @property {string} recordsTitle
 * @property {{records?: number, neighbours?: number}} [totals] Of all pages, as far as that is known.
 * @property {{edge: Object, node: Object, outgoing: boolean}[]} neighbours
 * @property {number|null} next Offset of the next page, if there is one.
 * @property {{href: string, text: string}} [open] The node's own page.
 */

/** Pictures of this many visits are kept. */
const MOST_VISITS = 8;

/** The entry of the browser's history; undefined where the browser doesn't tell, and then nothing is kept. */
const entry = () => window.navigation?.currentEntry?.key;

/** @param {Source} source */
export const graph = (source) => {
  /** What the visits left behind, by entry of the history, so that Back leads to the picture as it was. */
  const visits = new Map();

  function keep(key, left) {
    visits.delete(key);
    if (key !== undefined && left) visits.set(key, left);
    if (visits.size > MOST_VISITS) visits.delete(visits.keys().next().value);
  }

  return {
    id: "graph",
    title: "Graph",
    style: "graph.css",
    show: (root, at) => {
      const key = entry();
      const view = new GraphView(source, root, at, visits.get(key) ?? null);
      at.signal.addEventListener("abort", () => keep(key, view.leave()), { once: true });
      return view.start();
    },
  };
};
