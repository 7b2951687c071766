// How busy the actors of the service are, for its operator.

import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { badge, button, table } from "../lib/parts.js";
import { emptiness } from "../lib/shell.js";

const REFRESH_MS = 5000;

export const actors = (api) => ({
  id: "actors",
  title: "Load",
  show: (root, at) => showActors(api, root, at),
});

async function showActors(api, root, at) {
  fill(root, el("p.muted", { role: "status" }, "Loading …"));
  const options = { signal: at.signal };
  const first = await loaded(api, options);
  if (!first) {
    fill(root, emptiness("Only the operator's administrators see this.", "It tells how busy the whole service is."));
    return;
  }
  const place = el("div.stack");
  const draw = ({ actors }) => fill(place, advice(actors), gates(actors), shares(actors));
  draw(first);
  const refresh = async () => draw(await loaded(api, options));
  const timer = setInterval(() => { if (!document.hidden) refresh().catch(() => {}); }, REFRESH_MS);
  at.signal.addEventListener("abort", () => clearInterval(timer));
  fill(root, el("div.stack", {},
    el("div.spread", {}, el("h2", {}, "Load of the actors"), button("Refresh", refresh)),
    el("p.muted", {}, "Each actor works on as many requests at a time as it has permits; others wait, or are refused."), place));
}

/** What the service answers; nothing for administrators of other workspaces. */
async function loaded(api, options) {
  try {
    return await api.actors(options);
  } catch (error) {
    if (error.status === 403) return null;
    throw error;
  }
}

/** The settings that would help. */
function advice(actors) {
  const all = actors.flatMap((actor) => actor.advice);
  if (all.length === 0) return el("p", {}, badge("calm", "good"), " Nothing waits long, and nothing was refused.");
  return el("ul", { "aria-label": "Advice" }, all.map((text) => el("li", {}, text)));
}

function gates(actors) {
  const rows = actors.flatMap((actor) => [["reads", actor.reads], ["writes", actor.writes]].map(([kind, gate]) => ({
    ...gate, kind, name: actor.name, restarts: actor.restarts })));
  return table("Permits of each actor", [
    { key: "name", title: "Actor", cell: (row) => row.name },
    { key: "kind", title: "Requests", cell: (row) => row.kind },
    { key: "in_flight", title: "In flight", number: true, cell: (row) => `${number(row.in_flight)} of ${number(row.permits)}` },
    { key: "waiting", title: "Waiting", number: true, cell: (row) => number(row.waiting) },
    { key: "wait", title: "Wait, p95", number: true, cell: (row) => `${row.wait_p95_ms.toFixed(1)} ms` },
    { key: "refused", title: "Refused", number: true, cell: (row) => number(row.refused) },
    { key: "restarts", title: "Restarts", number: true, cell: (row) => number(row.restarts) },
  ], rows);
}

/** Which workspaces hold the permits. */
function shares(actors) {
  const rows = actors.flatMap((actor) => [actor.reads, actor.writes].flatMap((gate) => gate.workspaces))
    .filter((share) => share.id);
  const held = new Map();
  for (const { id, held: permits, waiting } of rows) {
    const sum = held.get(id) ?? { id, permits: 0, waiting: 0 };
    held.set(id, { id, permits: sum.permits + permits, waiting: sum.waiting + waiting });
  }
  if (held.size === 0) return null;
  return el("section", {}, el("h3", {}, "Workspaces at work"),
    el("ul", {}, [...held.values()].map(({ id, permits, waiting }) =>
      el("li", {}, el("code", {}, id), ` ${count(permits, "permit")}, ${count(waiting, "request")} waiting`))));
}
