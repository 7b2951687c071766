// Look-up among the entities of the memory.

import { el } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { badge } from "../lib/parts.js";
import { linkTo } from "../lib/shell.js";
import { matchText } from "../views/lookup.js";

/** Entities, and notes of each, that a row shows. */
const FEW = 3;

/** @returns {import("../views/lookup.js").Source} */
export const lookupSource = (api) => ({
  look: (body, signal) => api.lookup(body, { signal }),
  columns: [
    { key: "found", title: "Found", cell: ({ hits }) => list(hits.slice(0, FEW).map(entity)) },
    { key: "notes", title: "Notes", cell: ({ hits }) => list(hits.slice(0, FEW).flatMap(notes)) },
  ],
  fields: [
    ["match", (hit) => hit.match], ["name", (hit) => hit.name], ["type", (hit) => hit.entity_type],
    ["notes", (hit) => hit.note_count], ["tier", (hit) => hit.tier],
    ["note_ids", (hit) => hit.notes.map(({ id }) => id).join("; ")],
  ],
});

const list = (entries) => (entries.length === 0 ? el("span.muted", {}, "–")
  : el("ul", {}, entries.map((entry) => el("li", {}, entry))));

const entity = (hit) => [el("a", { href: linkTo("search", { q: hit.name }) }, hit.name), " ", badge(hit.entity_type), " ",
  el("span.muted", {}, matchText(hit.match)), " ",
  el("a", { href: linkTo("graph", { around: hit.id }), "aria-label": `Show ${hit.name} in the graph` }, "graph")];

function notes({ notes: all, note_count: total }) {
  const shown = all.slice(0, FEW).map(({ id, context }) => el("a", { href: linkTo("note", { id }) }, context));
  const rest = total - shown.length;
  return rest > 0 ? [...shown, el("span.muted", {}, `and ${count(rest, "other")}`)] : shown;
}
