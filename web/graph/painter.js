// Draws a picture on a canvas, in the pixels of the screen.

import { directionOf, runsLeft } from "../lib/direction.js";
import { families, lookOf, trace } from "./types.js";
import { meaning } from "./picture.js";

const COLOURS = ["face", "text", "soft", "accent", "line-strong"];
const LABEL_PX = 12;
const EDGE_LABEL_PX = 11;
const MOST_LABELS = 60;
const AREA_OF_LABEL = 16_000;
/** So many nodes are tried in one frame. */
const MOST_TRIED = 250;
const MOST_EDGE_LABELS = 24;
const MANY_STRONG = 60;
const MOST_ARROWS = 800;
/** With more nodes in view than this, what moves is drawn with less detail. */
const MANY_IN_VIEW = 400;
const MOST_MEASURED = 8;
const LONGEST_LABEL = 32;
/** A single word, such as a hash, is shortened in the middle. */
const LONGEST_WORD = 24;
const WORD_END = 6;
const CELL_PX = 40;
/** Nodes of this part of a node's radius, and not more, may be under its label. */
const SMALL = .65;
const MOST_COVERED = 6;
/** A node with so many links in the picture is a hub, unless it is a note: its label may cover any nodes before a leaf has
 *  one. */
const HUB = 4;
/** How strong the rest is beside what is selected, and beside what is pointed at or found. */
const BESIDE_SELECTED = .55;
const BESIDE_POINTED = .35;

export class Painter {
  #canvas;
  #context;
  #picture;
  #colours = {};
  #widths = new Map();
  #groups = [];
  #ranked = [];
  #links = [];
  #inView = [];
  /** Nodes in view by the cells of a grid. */
  #cells = new Map();
  #boxes = [];
  #unmeasured = 0;
  #ratio = 1;
  width = 0;
  height = 0;

  constructor(canvas, picture) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.#picture = picture;
  }

  /** Takes the size of the canvas on the page. */
  fit() {
    this.width = this.#canvas.clientWidth;
    this.height = this.#canvas.clientHeight;
    this.#ratio = Math.min(devicePixelRatio || 1, 3);
    this.#canvas.width = Math.round(this.width * this.#ratio);
    this.#canvas.height = Math.round(this.height * this.#ratio);
  }

  /** Reads the colours of the style sheet anew. */
  dress() {
    const style = getComputedStyle(this.#canvas);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    this.#colours = Object.fromEntries(COLOURS.map((name) => [name, read(name)]));
    for (const family of families) this.#colours[family] = read(`kind-${family}`);
    this.#colours.font = style.fontFamily;
    this.#widths.clear();
  }

  /** Takes over which nodes, best connected first, and which links are shown. */
  hold({ nodes, links }) {
    this.#links = links;
    this.#ranked = nodes;
    const groups = grouped(nodes);
    this.#groups = [...groups].map(([type, members]) => ({ ...lookOf(type), members }));
  }

  /** The radius of a node on the screen. */
  static radius(node, scale) {
    return Math.max(1.8, node.radius * Math.min(1.8, Math.sqrt(scale)));
  }

  /** @param {{x: number, y: number, k: number}} at Place and scale of the picture. `moving` leaves out small things. */
  draw(at, moving) {
    const { selected, hovered, found } = this.#picture;
    const focus = [hovered, selected].find((node) => node && this.#picture.shows(node));
    const bright = focus ? new Set([focus, ...this.#picture.neighbours(focus)]) : found;
    // What is merely pointed at passes quickly; a selection stays, and the rest with it.
    const calm = focus === selected && found === null;
    const dim = bright === null ? 1 : calm ? BESIDE_SELECTED : BESIDE_POINTED;
    const context = this.#context;
    context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    this.#place(at, bright);
    const strong = focus ? focus.near : [];
    this.#drawLinks(dim, strong, at.k, moving);
    this.#drawNodes(dim, moving);
    this.#drawRings(selected, hovered);
    this.#boxes.length = 0;
    this.#spread();
    this.#unmeasured = moving ? MOST_MEASURED : Infinity;
    for (const node of [selected, focus]) if (node?.seen && this.#picture.shows(node)) this.#labelNode(node, true);
    if (!moving) this.#labelLinks(strong);
    this.#labelNodes(focus || found, calm, moving);
  }

  /** Where the nodes are on the screen, and which of them are in view. */
  #place({ x, y, k }, bright) {
    const { selected, hovered } = this.#picture;
    this.#inView.length = 0;
    for (const node of this.#ranked) {
      node.sx = node.x * k + x;
      node.sy = node.y * k + y;
      node.sr = Painter.radius(node, k);
      node.seen = node.sx > -20 && node.sx < this.width + 20 && node.sy > -20 && node.sy < this.height + 20;
      node.lit = bright === null || bright.has(node);
      node.ringed = node === selected || node === hovered;
      node.labelled = false;
      if (node.seen) this.#inView.push(node);
    }
  }

  #spread() {
    this.#cells.clear();
    for (const node of this.#inView) {
      const { sx, sy, sr } = node;
      for (const cell of cellsOf({ left: sx - sr, right: sx + sr, top: sy - sr, bottom: sy + sr })) {
        const others = this.#cells.get(cell);
        if (others) others.push(node);
        else this.#cells.set(cell, [node]);
      }
    }
  }

  #drawLinks(dim, strong, scale, moving) {
    const context = this.#context;
    const inView = this.#links.filter((link) => this.#crosses(link));
    context.strokeStyle = context.fillStyle = this.#colours["line-strong"];
    context.globalAlpha = .2 + .3 * dim;
    context.lineWidth = 1;
    this.#lines(inView, inView.length <= MOST_ARROWS);
    if (!moving && scale > .55 && inView.length <= MOST_ARROWS) this.#arrows(inView);
    const many = strong.length > MANY_STRONG;
    context.globalAlpha = many ? .5 : 1;
    context.strokeStyle = context.fillStyle = this.#colours.accent;
    context.lineWidth = many ? 1 : 1.6;
    this.#lines(strong, true);
    this.#arrows(strong);
    context.globalAlpha = 1;
  }

  #crosses({ source, target }) {
    return Math.max(source.sx, target.sx) > 0 && Math.min(source.sx, target.sx) < this.width
      && Math.max(source.sy, target.sy) > 0 && Math.min(source.sy, target.sy) < this.height;
  }

  /** Lines; dashed ones between entities that a note mentions together. */
  #lines(links, dashed) {
    const context = this.#context;
    for (const together of [false, true]) {
      context.beginPath();
      for (const { source, target, together: loose = false } of links) {
        if (loose !== together) continue;
        context.moveTo(source.sx, source.sy);
        context.lineTo(target.sx, target.sy);
      }
      if (together && dashed) context.setLineDash([3, 4]);
      context.stroke();
    }
    context.setLineDash([]);
  }

  #arrows(links) {
    const context = this.#context;
    context.beginPath();
    for (const { source, target, there, back } of links) {
      if (there) arrow(context, source, target);
      if (back) arrow(context, target, source);
    }
    context.fill();
  }

  #drawNodes(dim, moving) {
    const context = this.#context;
    const outlined = !moving || this.#inView.length <= MANY_IN_VIEW;
    context.strokeStyle = this.#colours.face;
    context.lineWidth = 1;
    for (const lit of [false, true]) {
      context.globalAlpha = lit ? 1 : dim;
      for (const { family, shape, members } of this.#groups) {
        context.fillStyle = this.#colours[family];
        context.beginPath();
        for (const node of members) {
          if (node.seen && node.lit === lit) trace(context, shape, node.sx, node.sy, node.sr);
        }
        context.fill();
        if (lit && outlined) context.stroke();
      }
    }
  }

  #drawRings(selected, hovered) {
    const context = this.#context;
    for (const [node, width] of [[hovered, 1.5], [selected, 2.5]]) {
      if (!node || !this.#picture.shows(node)) continue;
      context.strokeStyle = this.#colours.accent;
      context.lineWidth = width;
      context.beginPath();
      context.arc(node.sx, node.sy, node.sr + 4, 0, 2 * Math.PI);
      context.stroke();
    }
    context.fillStyle = this.#colours.face;
    for (const node of this.#inView) {
      if (typeof node.fx !== "number") continue;
      context.beginPath();
      context.arc(node.sx, node.sy, Math.max(1.5, node.sr * .3), 0, 2 * Math.PI);
      context.fill();
    }
  }

  /** Names the best connected nodes in view: first those that stand out, then the others. */
  #labelNodes(standsOut, others, moving) {
    const room = Math.min(MOST_LABELS, this.width * this.height / AREA_OF_LABEL);
    const crowded = this.#inView.length > MANY_IN_VIEW;
    const thrifty = moving && crowded;
    let left = thrifty ? room / 3 : room;
    let tries = thrifty ? MOST_TRIED / 3 : MOST_TRIED;
    for (const lit of others ? [true, false] : [true]) {
      for (const node of this.#inView) {
        if (left <= 0 || tries <= 0) return;
        const small = crowded && node.sr < 3.2 && !(lit && standsOut);
        if (node.lit !== lit || small) continue;
        tries -= 1;
        if (this.#labelNode(node, false)) left -= 1;
      }
    }
  }

  #labelNode(node, forced) {
    if (node.labelled) return false;
    const text = shortened(node.label);
    const font = `${forced ? 600 : 500} ${LABEL_PX}px ${this.#colours.font}`;
    const width = this.#width(text, font);
    if (width === null) return false;
    const isHub = node.type !== "note" && node.near.length >= HUB;
    const box = this.#free(node, width, isHub) ?? (forced ? this.#places(node, width)[0] : null);
    if (box === null) return false;
    node.labelled = true;
    this.#boxes.push(box);
    this.#write(text, font, box, this.#colours.text);
    return true;
  }

  /** A place for a label that covers no other one and, unless it is a hub's, no node but some small ones. */
  #free(node, width, isHub) {
    let best = null;
    let least = Infinity;
    for (const box of this.#places(node, width)) {
      if (box.left < 0 || box.right > this.width || this.#boxes.some((other) => overlap(box, other))) continue;
      const covered = this.#covered(box, node, isHub);
      if (covered < least) [best, least] = [box, covered];
      if (covered === 0) break;
    }
    return best;
  }

  /** How many nodes a label would cover; of one that is no hub's infinitely many if one of them matters as much as its own. */
  #covered(box, node, isHub = false) {
    const covered = new Set();
    for (const cell of cellsOf(box)) {
      for (const other of this.#cells.get(cell) ?? []) {
        if (other === node || !isOn(other, box)) continue;
        const isFaint = node.lit && !other.lit;
        covered.add(other);
        if (isHub || isFaint) continue;
        if (other.sr > node.sr * SMALL || covered.size > MOST_COVERED) return Infinity;
      }
    }
    return covered.size;
  }

  /** Where a label can be: below, above, right, left. */
  #places({ sx, sy, sr: radius, ringed }, width) {
    const sr = ringed ? radius + 4 : radius;
    const [below, above, middle] = [sy + sr + 3, sy - sr - LABEL_PX - 5, sy - LABEL_PX / 2 - 2];
    const left = sx - width / 2;
    const places = [[left, below], [left, above], [sx + sr + 4, middle], [sx - sr - 4 - width, middle]];
    return places.map(([x, top]) => ({ left: x, right: x + width, top, bottom: top + LABEL_PX + 3 }));
  }

  #labelLinks(links) {
    const font = `${EDGE_LABEL_PX}px ${this.#colours.font}`;
    for (const link of links.slice(0, MOST_EDGE_LABELS)) {
      const { source, target } = link;
      if (Math.hypot(target.sx - source.sx, target.sy - source.sy) < 48) continue;
      const text = shortened(meaning(link));
      const width = this.#width(text, font);
      const [left, top] = [(source.sx + target.sx - width) / 2, (source.sy + target.sy - EDGE_LABEL_PX) / 2];
      const box = { left, right: left + width, top, bottom: top + EDGE_LABEL_PX + 3 };
      if (this.#boxes.some((other) => overlap(box, other)) || this.#covered(box, { sr: 0 }) > 0) continue;
      this.#boxes.push(box);
      this.#write(text, font, box, this.#colours.soft);
    }
  }

  /** The width of a label with its margins; `null` if too many were measured for this frame. */
  #width(text, font) {
    const key = `${font}\n${text}`;
    if (!this.#widths.has(key)) {
      if (this.#unmeasured <= 0) return null;
      this.#unmeasured -= 1;
      this.#context.font = font;
      this.#widths.set(key, this.#context.measureText(text).width + 6);
    }
    return this.#widths.get(key);
  }

  #write(text, font, { left, top }, colour) {
    const context = this.#context;
    context.font = font;
    context.textBaseline = "top";
    context.textAlign = "left";
    context.direction = runsLeft(text) && directionOf(text) !== "ltr" ? "rtl" : "ltr";
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = this.#colours.face;
    context.strokeText(text, left + 3, top + 1);
    context.fillStyle = colour;
    context.fillText(text, left + 3, top + 1);
  }
}

function grouped(nodes) {
  const groups = new Map();
  for (const node of nodes) {
    if (!groups.has(node.type)) groups.set(node.type, []);
    groups.get(node.type).push(node);
  }
  return groups;
}

function arrow(context, from, to) {
  const length = Math.hypot(to.sx - from.sx, to.sy - from.sy);
  if (length < from.sr + to.sr + 8) return;
  const [ux, uy] = [(to.sx - from.sx) / length, (to.sy - from.sy) / length];
  const [x, y] = [to.sx - ux * (to.sr + 2), to.sy - uy * (to.sr + 2)];
  context.moveTo(x, y);
  context.lineTo(x - 7 * ux + 3 * uy, y - 7 * uy - 3 * ux);
  context.lineTo(x - 7 * ux - 3 * uy, y - 7 * uy + 3 * ux);
  context.closePath();
}

function isOn({ sx, sy, sr }, { left, right, top, bottom }) {
  return sx + sr > left && sx - sr < right && sy + sr > top && sy - sr < bottom;
}

function overlap(a, b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** The cells of the grid that a box touches. */
function cellsOf({ left, right, top, bottom }) {
  const cells = [];
  for (let x = Math.floor(left / CELL_PX); x * CELL_PX <= right; x += 1) {
    for (let y = Math.floor(top / CELL_PX); y * CELL_PX <= bottom; y += 1) cells.push(x * 10_000 + y);
  }
  return cells;
}

function shortened(text) {
  if (text.length > LONGEST_WORD && !/\s/.test(text)) {
    return `${text.slice(0, LONGEST_WORD - WORD_END - 7)}…${text.slice(-WORD_END)}`;
  }
  return text.length > LONGEST_LABEL ? `${text.slice(0, LONGEST_LABEL - 1)}…` : text;
}
