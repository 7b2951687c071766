// The canvas with its picture: frames, zoom, drag, hover, keys.
//
// For measurements the canvas carries `data-state` (`moving` or `still`), `data-frames` (number of frames),
// `data-slowest-frame` and, while still, `data-frame95`: the longest work of one frame (layout and drawing) and the
// 95th percentile, in milliseconds. Remove `data-frames` and `data-slowest-frame` to begin anew.

import { drag, quadtree, select, zoom, zoomIdentity } from "../vendor/d3.js";
import { Layout } from "./layout.js";
import { Painter } from "./painter.js";

const REACH_PX = 8;
const MARGIN_PX = 44;
const GLIDE_MS = 260;
const SCALES = [.05, 6];
const STEP = 1.4;
const PAN_PX = 60;
const LONG_STEP_MS = 10;
const MOST_COSTS = 2000;

export class Stage {
  #canvas;
  #picture;
  #told;
  #painter;
  #layout = new Layout();
  #tree = null;
  #zoom;
  #frame = 0;
  #late = false;
  #costs = [];
  #following = true;
  #glide = null;
  #calm = matchMedia("(prefers-reduced-motion: reduce)");
  #dark = matchMedia("(prefers-color-scheme: dark)");

  /**
   * @param {HTMLCanvasElement} canvas On the page.
   * @param {import("./picture.js").Picture} picture
   * @param {{select: (node: Object|null) => void, walk: (steps: number) => void, open: () => void, pinned: () => void,
   *   signal: AbortSignal}} told `walk` selects the next or previous node, `open` goes to the details.
   */
  constructor(canvas, picture, told) {
    this.#canvas = canvas;
    this.#picture = picture;
    this.#told = told;
    this.#painter = new Painter(canvas, picture);
    this.#painter.dress();
    this.#painter.fit();
    const sizes = new ResizeObserver(() => this.#resized());
    sizes.observe(canvas);
    const { signal } = told;
    this.#dark.addEventListener("change", () => { this.#painter.dress(); this.redraw(); }, { signal });
    signal.addEventListener("abort", () => { sizes.disconnect(); cancelAnimationFrame(this.#frame); });
    this.#listen(signal);
  }

  /** Takes over what the picture shows now. `heat` is how far nodes may move: 1 for a new picture. */
  changed(heat) {
    const shown = this.#picture.arrange();
    this.#layout.hold(shown, heat, this.#painter.width / this.#painter.height || 1);
    this.#painter.hold(shown);
    this.#tree = null;
    this.redraw();
  }

  redraw() {
    if (this.#frame === 0 && !this.#told.signal.aborted) {
      this.#canvas.dataset.state = "moving";
      this.#frame = requestAnimationFrame((time) => this.#next(time));
    }
  }

  /** Shows everything, and goes on doing so while the nodes move. */
  fit() {
    this.#following = true;
    this.#goTo(this.#whole());
  }

  enlarge(factor) {
    this.#following = false;
    const { x, y, k } = this.#at;
    const to = Math.min(SCALES[1], Math.max(SCALES[0], k * factor));
    const [middle, centre] = [this.#painter.width / 2, this.#painter.height / 2];
    const [left, top] = [middle - (middle - x) * to / k, centre - (centre - y) * to / k];
    this.#goTo(zoomIdentity.translate(left, top).scale(to));
  }

  bigger() {
    this.enlarge(STEP);
  }

  smaller() {
    this.enlarge(1 / STEP);
  }

  /** Brings a node into the middle. */
  centre(node) {
    if (node.x === undefined) return;
    this.#following = false;
    const k = Math.max(this.#at.k, .9);
    const [x, y] = [this.#painter.width / 2 - node.x * k, this.#painter.height / 2 - node.y * k];
    this.#goTo(zoomIdentity.translate(x, y).scale(k));
  }

  /** Lets a node move again; all nodes without one. */
  release(node) {
    for (const pinned of node ? [node] : this.#picture.nodes.values()) pinned.fx = pinned.fy = null;
    this.#layout.heat(.15);
    this.#told.pinned();
    this.redraw();
  }

  /** Where it looks, for `resume`. */
  get place() {
    return { at: this.#at, following: this.#following, moving: !this.#layout.resting };
  }

  resume({ at, following }) {
    this.#following = following;
    this.#put(at);
    this.redraw();
  }

  get #at() {
    return this.#canvas.__zoom ?? zoomIdentity;
  }

  #next(time) {
    const start = performance.now();
    this.#frame = 0;
    const moving = !this.#layout.resting;
    const spent = moving ? this.#move() : 0;
    if (this.#glide) this.#put(this.#glided(time));
    // A long step of the layout and the drawing share two frames.
    this.#late = spent > LONG_STEP_MS && !this.#late;
    // Who asked for less motion sees the picture when it rests.
    const shown = !this.#late && (!moving || !this.#calm.matches || this.#layout.resting);
    if (shown) this.#painter.draw(this.#at, !this.#layout.resting);
    if (!shown || !this.#layout.resting || this.#glide) this.redraw();
    this.#record(performance.now() - start);
  }

  #move() {
    const spent = this.#layout.tick(this.#calm.matches ? Infinity : undefined);
    this.#tree = null;
    if (this.#following && !this.#glide) this.#put(this.#whole());
    return spent;
  }

  #record(spent) {
    const { dataset } = this.#canvas;
    if (dataset.frames === undefined) this.#costs = [];
    this.#costs.push(spent);
    dataset.frames = this.#costs.length;
    if (!(spent <= Number(dataset.slowestFrame))) dataset.slowestFrame = spent.toFixed(1);
    if (this.#frame !== 0) return;
    dataset.state = "still";
    const sorted = this.#costs.toSorted((a, b) => a - b);
    dataset.frame95 = sorted[Math.floor(sorted.length * .95)].toFixed(1);
    if (sorted.length > MOST_COSTS) this.#costs = this.#costs.slice(-MOST_COSTS);
  }

  #resized() {
    const { width, height } = this.#painter;
    if (this.#canvas.clientWidth === 0) return;
    this.#painter.fit();
    // What was in the middle stays there.
    const [x, y] = width > 0 ? [(this.#painter.width - width) / 2, (this.#painter.height - height) / 2] : [0, 0];
    const kept = (at) => zoomIdentity.translate(at.x + x, at.y + y).scale(at.k);
    if (this.#glide) this.#glide = { ...this.#glide, from: kept(this.#glide.from), to: kept(this.#glide.to) };
    this.#put(this.#following ? this.#whole() : kept(this.#at));
    this.redraw();
  }

  /** The transformation that shows all nodes. */
  #whole() {
    const { width, height } = this.#painter;
    const nodes = this.#picture.shown.nodes.filter(({ x }) => x !== undefined);
    if (nodes.length === 0 || width === 0) return zoomIdentity.translate(width / 2, height / 2);
    const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
    for (const { x, y } of nodes) {
      box.left = Math.min(box.left, x);
      box.right = Math.max(box.right, x);
      box.top = Math.min(box.top, y);
      box.bottom = Math.max(box.bottom, y);
    }
    // Names are wide.
    const sides = Math.min(2 * MARGIN_PX, width / 6);
    const room = [Math.max(40, width - 2 * sides), Math.max(40, height - 2 * MARGIN_PX)];
    const fitting = Math.min(room[0] / (box.right - box.left || 1), room[1] / (box.bottom - box.top || 1));
    const k = Math.min(1.4, Math.max(SCALES[0], fitting));
    return zoomIdentity
      .translate(width / 2 - k * (box.left + box.right) / 2, height / 2 - k * (box.top + box.bottom) / 2).scale(k);
  }

  #put(at) {
    this.#zoom.transform(select(this.#canvas), at);
  }

  #goTo(to) {
    if (this.#calm.matches) {
      this.#put(to);
    } else {
      this.#glide = { from: this.#at, to, start: performance.now() };
    }
    this.redraw();
  }

  #glided(time) {
    const { from, to, start } = this.#glide;
    const part = Math.min(1, Math.max(0, (time - start) / GLIDE_MS));
    const eased = 1 - Math.pow(1 - part, 3);
    const between = (name) => from[name] + (to[name] - from[name]) * eased;
    if (part === 1) this.#glide = null;
    return zoomIdentity.translate(between("x"), between("y")).scale(between("k"));
  }

  /** The node at a place of the canvas. */
  #nodeAt(x, y) {
    this.#tree ??= quadtree(this.#picture.shown.nodes, (node) => node.x, (node) => node.y);
    const { k } = this.#at;
    const [px, py] = this.#at.invert([x, y]);
    const near = this.#tree.find(px, py, (REACH_PX + 27) / k);
    if (!near) return null;
    return Math.hypot(near.x - px, near.y - py) * k <= Painter.radius(near, k) + REACH_PX ? near : null;
  }

  #listen(signal) {
    const selection = select(this.#canvas);
    const moved = (event) => {
      if (event.sourceEvent) { this.#following = false; this.#glide = null; }
      this.redraw();
    };
    this.#zoom = zoom().scaleExtent(SCALES).extent(() => [[0, 0], [this.#painter.width, this.#painter.height]])
      .clickDistance(4).on("zoom", moved);
    selection.call(this.#dragging()).call(this.#zoom).on("dblclick.zoom", null);
    const listen = (type, action) => this.#canvas.addEventListener(type, action, { signal });
    listen("pointermove", (event) => { if (event.buttons === 0) this.#hover(this.#nodeAt(...place(event))); });
    listen("pointerleave", () => this.#hover(null));
    listen("click", (event) => this.#told.select(this.#nodeAt(...place(event))));
    listen("dblclick", (event) => {
      const node = this.#nodeAt(...place(event));
      if (node) this.release(node);
      else this.enlarge(STEP);
    });
    listen("keydown", (event) => this.#key(event));
  }

  #dragging() {
    const at = (event) => this.#at.invert([event.x, event.y]);
    let started = null;
    return drag()
      .container(this.#canvas)
      .clickDistance(4)
      .subject((event) => {
        const node = this.#nodeAt(event.x, event.y);
        // A finger that comes down on a node by chance is to move or zoom the picture.
        if (event.identifier !== "mouse" && node !== this.#picture.selected) return null;
        return node && { node, x: event.x, y: event.y };
      })
      .on("start", (event) => { started = [event.x, event.y]; })
      .on("drag", (event) => {
        const { node } = event.subject;
        if (Math.hypot(event.x - started[0], event.y - started[1]) < 4 && !node.held) return;
        if (!node.held) this.#layout.keepWarm(true);
        node.held = true;
        this.#following = false;
        [node.fx, node.fy] = at(event);
        this.redraw();
      })
      .on("end", ({ subject: { node } }) => {
        if (!node.held) return;
        node.held = false;
        this.#layout.keepWarm(false);
        this.#told.pinned();
      });
  }

  #hover(node) {
    if (this.#picture.hovered === node) return;
    this.#picture.hovered = node;
    this.#canvas.classList.toggle("on-node", node !== null);
    this.redraw();
  }

  #pan(x, y) {
    this.#following = false;
    this.#goTo(zoomIdentity.translate(this.#at.x + x, this.#at.y + y).scale(this.#at.k));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      ArrowLeft: () => this.#pan(PAN_PX, 0),
      ArrowRight: () => this.#pan(-PAN_PX, 0),
      ArrowUp: () => this.#pan(0, PAN_PX),
      ArrowDown: () => this.#pan(0, -PAN_PX),
      "+": () => this.bigger(),
      "=": () => this.bigger(),
      "-": () => this.smaller(),
      0: () => this.fit(),
      n: () => this.#told.walk(1),
      p: () => this.#told.walk(-1),
      Enter: () => this.#told.open(),
      Escape: () => this.#told.select(null),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  }
}

function place(event) {
  return [event.offsetX, event.offsetY];
}
