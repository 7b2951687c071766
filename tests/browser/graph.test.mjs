// The parts of the graph view that can be looked at without a page: which names are written, and where things rest.

import assert from "node:assert/strict";
import { test } from "node:test";

// What the modules ask of a page when they are loaded.
globalThis.addEventListener ??= () => {};
const { Layout } = await import("../../web/graph/layout.js");
const { Painter } = await import("../../web/graph/painter.js");
const { Picture } = await import("../../web/graph/picture.js");

const [WIDTH, HEIGHT] = [800, 600];

/** A canvas that notes what is written on it. */
function canvasOf() {
  const written = [];
  const alphas = [];
  const context = new Proxy(
    { measureText: (text) => ({ width: text.length * 7 }), fillText: (text) => written.push(text) },
    {
      get: (of, name) => of[name] ?? (() => {}),
      set: (of, name, value) => {
        if (name === "globalAlpha") alphas.push(value);
        of[name] = value;
        return true;
      },
    },
  );
  return { canvas: { getContext: () => context, clientWidth: WIDTH, clientHeight: HEIGHT }, written, alphas };
}

/** Hubs, each with leaves around it, and notes that are linked with nothing. */
function pictureOf({ hubs, leaves, loose }) {
  const nodes = [];
  const edges = [];
  const node = (id, type) => nodes.push({ id, label: id, type, aliases: [] });
  for (let hub = 0; hub < hubs; hub += 1) {
    node(`hub ${hub}`, "actor");
    if (hub > 0) edges.push({ id: `h${hub}`, source: `hub ${hub - 1}`, target: `hub ${hub}`, relationship: "knows" });
    for (let leaf = 0; leaf < leaves; leaf += 1) {
      node(`leaf ${hub} ${leaf}`, "malware");
      edges.push({ id: `${hub} ${leaf}`, source: `hub ${hub}`, target: `leaf ${hub} ${leaf}`, relationship: "uses" });
    }
  }
  for (let note = 0; note < loose; note += 1) node(`note ${note}`, "note");
  const picture = new Picture();
  picture.add({ nodes, edges });
  return picture;
}

function rested(picture) {
  const shown = picture.arrange();
  const layout = new Layout();
  layout.hold(shown, 1, WIDTH / HEIGHT);
  while (!layout.resting) layout.tick(1000);
  return shown;
}

/** Draws the whole picture; returns what was written and the strengths that were used. */
function drawn(picture, shown) {
  const { canvas, written, alphas } = canvasOf();
  globalThis.devicePixelRatio = 1;
  const painter = new Painter(canvas, picture);
  painter.fit();
  painter.hold(shown);
  const reach = (of) => Math.max(...shown.nodes.map((node) => Math.abs(node[of]))) + 1;
  const k = Math.min((WIDTH - 80) / 2 / reach("x"), (HEIGHT - 80) / 2 / reach("y"), 1.4);
  painter.draw({ x: WIDTH / 2, y: HEIGHT / 2, k }, false);
  return { written, alphas };
}

test("a leaf is named only where the hubs are", () => {
  for (const [hubs, leaves] of [[1, 12], [3, 20], [6, 40], [12, 60], [5, 150]]) {
    const picture = pictureOf({ hubs, leaves, loose: 0 });
    const { written } = drawn(picture, rested(picture));
    const named = Array.from({ length: hubs }, (_, hub) => `hub ${hub}`).filter((hub) => written.includes(hub));
    assert.equal(named.length, hubs, `${hubs} hubs of ${leaves}: ${written}`);
  }
});

test("what is linked with nothing rests around what is linked", () => {
  for (const [hubs, leaves, loose] of [[3, 20, 1], [3, 20, 30], [5, 40, 200], [2, 5, 60]]) {
    const picture = pictureOf({ hubs, leaves, loose });
    const { nodes } = rested(picture);
    const away = ({ x, y }) => Math.hypot(x, y);
    const linked = nodes.filter(({ near }) => near.length > 0).map(away);
    const reach = linked.toSorted((a, b) => a - b)[Math.floor(linked.length * .9)];
    const inside = nodes.filter((node) => node.near.length === 0 && away(node) < reach);
    assert.equal(inside.length, 0, `${inside.length} of ${loose} inside ${Math.round(reach)}`);
    const farthest = Math.max(...nodes.map(away));
    const room = Math.max(...linked) + 120 + 40 * Math.sqrt(loose);
    assert.ok(farthest < room, `${loose} within ${Math.round(farthest)}, not ${Math.round(room)}`);
  }
});

test("beside a selected node the rest stays in sight", () => {
  const picture = pictureOf({ hubs: 4, leaves: 20, loose: 5 });
  const shown = rested(picture);
  const selected = picture.nodes.get("hub 1");
  for (const [change, least] of [
    [{ selected }, .5],
    [{ hovered: selected }, .3],
    [{ selected, hovered: picture.nodes.get("leaf 0 0") }, .3],
    [{ selected, found: new Set([selected]) }, .3],
  ]) {
    Object.assign(picture, { selected: null, hovered: null, found: null }, change);
    const { alphas } = drawn(picture, shown);
    assert.ok(Math.min(...alphas) >= Math.min(.3, least), `${Object.keys(change)}: ${alphas}`);
  }
});
