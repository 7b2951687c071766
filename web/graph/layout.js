// Moves the nodes apart until they rest.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "../vendor/d3.js";

const BUDGET_MS = 7;
const MOST_TICKS = 3;
const RESTING = .02;
/** Room between what is linked and what is not. */
const RIM = 40;

/** A picture with more nodes than this is laid out with coarser forces, so that a step fits into a frame. */
const MANY = 700;

/** The forces between the nodes of a picture. Nothing moves unless `tick` is called. */
export class Layout {
  #room = 1;
  #links = forceLink().distance(({ source, target }) => 34 * this.#room + source.radius + target.radius)
    .strength(({ source, target }) => .7 / Math.sqrt(Math.max(1, Math.min(source.near.length, target.near.length))));
  #push = forceManyBody();
  #apart = forceCollide(({ radius }) => radius + 3).iterations(1);
  #x = forceX();
  #y = forceY();
  #loose = [];
  #linked = [];
  #simulation = forceSimulation().stop().alpha(0).alphaMin(RESTING).velocityDecay(.45)
    .force("links", this.#links).force("push", this.#push).force("x", this.#x).force("y", this.#y)
    .force("rim", (alpha) => this.#toTheRim(alpha));

  /** Lays out these nodes and links in a frame of this shape; `heat` (to 1) is how far things may move. */
  hold({ nodes, links }, heat, aspect) {
    const many = nodes.length > MANY;
    sow(nodes);
    // Few nodes get more room, so that their names fit.
    this.#room = Math.min(2.2, Math.max(1, Math.sqrt(200 / Math.max(1, nodes.length))));
    this.#push.strength(many ? -70 : -150 * this.#room ** 2).theta(many ? 1.6 : 1).distanceMax(900);
    this.#loose = nodes.filter(({ near }) => near.length === 0);
    this.#linked = nodes.filter(({ near }) => near.length > 0);
    const rest = this.#linked.length > 0 ? .03 : .1;
    const pull = (across) => ({ near }) => (near.length === 0 ? rest : .05 * across);
    this.#x.strength(pull(1 / aspect));
    this.#y.strength(pull(aspect));
    this.#simulation.force("apart", many ? null : this.#apart).nodes(nodes);
    this.#links.links(links);
    this.heat(heat);
    this.#simulation.alphaDecay(1 - Math.pow(RESTING, 1 / (many ? 150 : 220)));
  }

  /** Moves what is linked with nothing out of the middle, which belongs to what is linked, and keeps it close by. */
  #toTheRim(alpha) {
    if (this.#loose.length === 0 || this.#linked.length === 0) return;
    const reach = Math.max(...this.#linked.map(({ x, y }) => Math.hypot(x, y))) + RIM;
    for (const node of this.#loose) {
      const away = Math.hypot(node.x, node.y) || 1;
      const push = (reach - away) / away * (away < reach ? Math.min(1, 2 * alpha) : .2 * alpha);
      node.vx += node.x * push;
      node.vy += node.y * push;
    }
  }

  heat(heat) {
    this.#simulation.alpha(Math.max(heat, this.#simulation.alpha() > RESTING ? this.#simulation.alpha() : 0));
  }

  /** Keeps things moving, as while a node is dragged. */
  keepWarm(warm) {
    this.#simulation.alphaTarget(warm ? .12 : 0);
    if (warm) this.heat(.12);
  }

  get resting() {
    return this.#simulation.alpha() < RESTING && this.#simulation.alphaTarget() === 0;
  }

  /** As many steps as fit into one frame. Tells how long they took, in milliseconds. */
  tick(most = MOST_TICKS) {
    const start = performance.now();
    let spent = 0;
    for (let count = 1; count <= most && !this.resting; count += 1) {
      this.#simulation.tick();
      spent = performance.now() - start;
      if (spent + spent / count > BUDGET_MS) break;
    }
    return spent;
  }
}

/** Gives nodes without a place one beside the best connected node that they are linked with. */
function sow(nodes) {
  let free = 0;
  // What is linked with nothing begins outside.
  const outside = 24 * Math.sqrt(nodes.filter(({ near }) => near.length > 0).length);
  for (const node of nodes) {
    if (node.x !== undefined) continue;
    const placed = node.near.map(({ source, target }) => (source === node ? target : source))
      .filter(({ x }) => x !== undefined);
    const beside = placed.reduce((best, end) => (best?.near.length > end.near.length ? best : end), null);
    const turn = free * 2.4;
    const away = beside ? 40 + 3 * Math.sqrt(free) : (node.near.length === 0 ? outside : 0) + 24 * Math.sqrt(free);
    node.x = (beside?.x ?? 0) + away * Math.cos(turn);
    node.y = (beside?.y ?? 0) + away * Math.sin(turn);
    free += 1;
  }
}
