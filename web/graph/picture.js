// What the picture holds: nodes, the links between them, what is hidden, found, selected.

/** More nodes than this would not move calmly. */
export const MOST_NODES = 3000;

/** A note that mentions more entities than this would tangle the picture. */
const MOST_TOGETHER = 8;
/** With more notes than this, entities that share one are linked instead. */
const MANY_NOTES = 60;
/** With fewer entities than this, their notes are shown too. */
const FEW = 8;
const SMALLEST = 4;
const LARGEST = 15;

export class Picture {
  /** @type {Map<string, Object>} Nodes by id. Beside the fields of the API they have `x`, `y`, `fx`, `fy` (where they
   *  are, where they are pinned), `radius`, `links`, and `near`: those of the links that are shown. */
  nodes = new Map();
  /** @type {Map<string, {source: Object, target: Object, edges: Object[], there: boolean, back: boolean}>} By the ids
   *  of two nodes, all edges between them. */
  links = new Map();
  /** Types that are not shown. */
  hidden = new Set();
  /** As `arrange` found it. */
  shown = { nodes: [], links: [] };
  found = null;
  selected = null;
  hovered = null;

  /**
   * Adds nodes and the edges whose ends are shown; new nodes appear beside `near`.
   *
   * @returns {{added: Object[], refused: number}} The new nodes, and how many did not fit.
   */
  add({ nodes, edges }, near = null) {
    const added = [];
    let refused = 0;
    for (const node of nodes) {
      const known = this.nodes.get(node.id);
      if (known) {
        Object.assign(known, node, { label: known.label, degree: node.degree ?? known.degree });
      } else if (this.nodes.size >= MOST_NODES) {
        refused += 1;
      } else {
        const made = { ...node, label: node.label || node.id, links: [], ...placed(near, added.length) };
        this.nodes.set(node.id, made);
        added.push(made);
      }
    }
    for (const edge of edges) this.#connect(edge);
    for (const node of this.nodes.values()) {
      node.radius = Math.min(LARGEST, SMALLEST + 1.3 * Math.sqrt(connections(node)));
    }
    return { added, refused };
  }

  #connect(edge) {
    const source = this.nodes.get(edge.source);
    const target = this.nodes.get(edge.target);
    if (!source || !target || source === target) return;
    const key = keyOf(source, target);
    let link = this.links.get(key);
    if (!link) {
      link = { source, target, edges: [], there: false, back: false };
      this.links.set(key, link);
      source.links.push(link);
      target.links.push(link);
    }
    if (link.edges.some((known) => known.id === edge.id)) return;
    link.edges.push(edge);
    if (link.source === source) link.there = true;
    else link.back = true;
  }

  /** Takes a node out of the picture. */
  remove(node) {
    for (const link of node.links) {
      const other = link.source === node ? link.target : link.source;
      other.links = other.links.filter((kept) => kept !== link);
      forget(other);
      this.links.delete(keyOf(node, other));
    }
    this.nodes.delete(node.id);
    if (this.hovered === node) this.hovered = null;
  }

  /** Shows a type if it is hidden, otherwise hides it. */
  toggle(type) {
    if (!this.hidden.delete(type)) this.hidden.add(type);
    // What is around a node depends on whether notes are shown.
    if (type === "note") for (const node of this.nodes.values()) forget(node);
  }

  /** What is hidden at first: as the URL says; and notes, where there are many. */
  hideAsAsked({ types, notes }) {
    const present = this.types();
    const unwanted = ([type]) => types && type !== "note" && !types.includes(type);
    for (const [type] of present.filter(unwanted)) this.hidden.add(type);
    const all = new Map(present);
    const notable = present.filter(([type]) => type !== "note" && !this.hidden.has(type));
    const many = (all.get("note") ?? 0) > MANY_NOTES && notable.reduce((sum, [, of]) => sum + of, 0) >= FEW;
    if (notes === "no" || (notes === null && many)) this.hidden.add("note");
    if (notes === "yes") this.hidden.delete("note");
  }

  /** Whether there may be more around a node than the picture holds. */
  isExpandable(node) {
    if (node.complete) return false;
    if (lacks(node)) return true;
    return this.hidden.has("note") && node.links.some(({ source, target }) => {
      const other = source === node ? target : source;
      return other.type === "note" && lacks(other);
    });
  }

  shows(node) {
    return !this.hidden.has(node.type);
  }

  /**
   * Which nodes and links are shown now; each of these nodes gets its links as `near`. Where notes are hidden, the
   * entities that a note mentions are linked instead.
   */
  arrange() {
    const nodes = [...this.nodes.values()].filter((node) => this.shows(node));
    const links = [...this.links.values()].filter(({ source, target }) => this.shows(source) && this.shows(target));
    if (this.hidden.has("note")) links.push(...this.#together());
    for (const node of nodes) node.near = [];
    for (const link of links) {
      link.source.near.push(link);
      link.target.near.push(link);
    }
    this.shown = { nodes: ranked(nodes), links };
    return this.shown;
  }

  #together() {
    const pairs = new Map();
    for (const note of this.nodes.values()) {
      if (note.type !== "note") continue;
      const mentioned = note.links.map(({ source, target }) => (source === note ? target : source))
        .filter((node) => node.type !== "note" && this.shows(node));
      for (const [a, b] of pairsOf(ranked(mentioned))) {
        const key = keyOf(a, b);
        if (this.links.has(key)) continue;
        const pair = pairs.get(key) ?? { source: a, target: b, edges: [], notes: 0, together: true };
        pair.notes += 1;
        pairs.set(key, pair);
      }
    }
    return [...pairs.values()];
  }

  /** The types of all nodes with their numbers, most first. */
  types() {
    const counts = new Map();
    for (const { type } of this.nodes.values()) counts.set(type, (counts.get(type) ?? 0) + 1);
    return [...counts].sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
  }

  /** Marks the shown nodes whose name or alias has this text, and returns them, best connected first. */
  find(text) {
    const part = text.trim().toLowerCase();
    if (part === "") {
      this.found = null;
      return [];
    }
    const fits = ({ id, label, aliases }) => [id, label, ...aliases].some((name) => name.toLowerCase().includes(part));
    const nodes = this.shown.nodes.filter(fits);
    this.found = new Set(nodes);
    return nodes;
  }

  /** Nodes at the other ends of a node's shown links. */
  neighbours(node) {
    return node.near.map(({ source, target }) => (source === node ? target : source));
  }
}

function connections({ degree = 0, links }) {
  return Math.max(degree, links.length);
}

/** What a link means, in words. */
export function meaning({ edges, together, notes }) {
  if (together) return notes === 1 ? "in one note" : `in ${notes} notes`;
  return [...new Set(edges.map(({ relationship }) => relationship))].join(", ");
}

/** Best connected first. */
export function ranked(nodes) {
  return nodes.sort((a, b) => connections(b) - connections(a) || a.label.localeCompare(b.label));
}

/** Whether a node has edges that are not in the picture, as far as that is known. */
function lacks({ degree, links }) {
  return degree === undefined || links.reduce((sum, { edges }) => sum + edges.length, 0) < degree;
}

function forget(node) {
  node.complete = false;
  node.steps = 0;
}

function keyOf(a, b) {
  return a.id < b.id ? `${a.id}\n${b.id}` : `${b.id}\n${a.id}`;
}

/** Every two of these nodes; of many, each with the first. */
function pairsOf(nodes) {
  if (nodes.length > MOST_TOGETHER) return nodes.slice(1).map((node) => [nodes[0], node]);
  return nodes.flatMap((node, at) => nodes.slice(at + 1).map((other) => [node, other]));
}

/** A spiral around a node that is already placed; otherwise the layout decides. */
function placed(near, count) {
  if (!near || near.x === undefined) return {};
  const angle = count * 2.4;
  const distance = 24 + 5 * Math.sqrt(count);
  return { x: near.x + distance * Math.cos(angle), y: near.y + distance * Math.sin(angle) };
}
