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
 * @property {(wish: {around: string, depth: number}, options: {signal: AbortSignal}) => Promise<Part>} start What
 *   it starts with.
 * @property {(text: string, notes: boolean, options: {signal: AbortSignal}) => Promise<Part>} find Nodes with this
 *   text; `notes` says whether notes are shown.
 * @property {(id: string, step: number, notes: boolean, options: {signal: AbortSignal}) => Promise<Part>} expand What
 *   is around a node; `step` counts from 0.
 * @property {(id: string, offset: number, options: {signal: AbortSignal}) => Promise<Details>} details
 *
 * @typedef {{nodes: Object[], edges: Object[], total?: number, truncated?: boolean}} Part `truncated`: there is more.
 *
 * @typedef {Object} Details A node with a page of what is behind it and around it.
 * @property {Object} node
 * @property {Node[]} badges
 * @property {[string, any][]} facts
 * @property {string} [text]
 * @property {{text: string, href: string, more: any[]}[]} records
 * @property {string} recordsTitle
 * @property {{edge: Object, node: Object, outgoing: boolean}[]} neighbours
 * @property {number|null} next Offset of the next page, if there is one.
 * @property {{href: string, text: string}} [open] The node's own page.
 */

/** @param {Source} source */
export const graph = (source) => ({
  id: "graph",
  title: "Graph",
  style: "graph.css",
  show: (root, at) => new GraphView(source, root, at).start(),
});
