// Asks which node a staged entity is.

import { isAbort } from "../lib/client.js";
import { el, fill, uniqueId } from "../lib/dom.js";
import { plain } from "../lib/markdown.js";
import { typeName } from "../lib/nouns.js";
import { ask, button, field, tlp } from "../lib/parts.js";
import { failure } from "../lib/shell.js";
import { matchOf, namesakes } from "./row.js";

const FOUND = 20;
/** So many nodes of one name are read to tell them apart: each is a request. */
const COMPARED = 4;
const WORDS = 140;

/** Resolves to the chosen node, `{node_id, name}`, or `null`. */
export async function chooseTarget(api, entity, at) {
  const known = new Map(entity.duplicate_candidates.map((node) => [node.node_id, { ...node, note: matchOf(node) }]));
  const list = el("div.targets", { role: "radiogroup", "aria-label": "Nodes" });
  const group = uniqueId("target");
  const draw = () => {
    const held = list.querySelector("input:focus")?.value;
    const chosen = list.querySelector("input:checked")?.value ?? (known.size === 1 && [...known.keys()][0]);
    fill(list, known.size === 0 ? el("p.muted", {}, "No node looks the same. Search for the one that it is.")
      : [...known.values()].map((node) => target(node, group, node.node_id === chosen)));
    if (held) list.querySelector(`input[value="${CSS.escape(held)}"]`)?.focus();
  };
  draw();
  tellApart(api, known, draw, at.signal);
  const content = el("div.stack", {}, el("p", {}, "The text becomes evidence of the chosen node; no new node is made."),
    list, finder(api, entity, at, known, draw));
  const buttons = [["", "Cancel"], ["merge", "Merge", "primary"]];
  const answer = await ask(`What is ${entity.name}?`, content, buttons, at.signal);
  if (answer !== "merge") return null;
  const chosen = known.get(list.querySelector("input:checked")?.value);
  if (!chosen) at.notify("No node was chosen: nothing was changed.", "bad");
  return chosen ?? null;
}

function target(node, group, checked) {
  const { name, node_type: type, note, tlp: level, source, properties, description = "", node_id: id } = node;
  const ids = Array.isArray(properties?.external_ids) ? properties.external_ids.slice(0, 3) : [];
  const told = plain(description);
  const text = told.length > WORDS ? `${told.slice(0, WORDS)} …` : told;
  return el("label.target", {}, el("input", { type: "radio", name: group, value: id, checked, required: true }),
    el("span", {}, el("strong", {}, name), " ", el("span.muted", {}, `${typeName(type)} · ${note}`), " ", level && tlp(level),
      el("br"), el("span.muted.target-more", {}, [...ids, source, text].filter(Boolean).map((fact) =>
        [el("bdi", {}, String(fact)), " · "]), el("code", { title: id }, id.slice(0, 8)))));
}

/** Reads what tells candidates of the same name apart. Without it, one can still choose. */
async function tellApart(api, known, draw, signal) {
  const alike = namesakes([...known.values()]).slice(0, COMPARED);
  await Promise.all(alike.map(async ({ node_id: id }) => {
    const answer = await api.node(id, { limit: 1 }, { signal }).catch(() => null);
    if (answer) known.set(id, { ...answer.node, ...known.get(id) });
  }));
  if (alike.length > 0) draw();
}

/** Looks nodes up by name: only when asked to, as each search is a request and stands in the audit log. */
function finder(api, entity, at, known, draw) {
  const input = el("input", { type: "search", value: entity.name });
  const said = el("div.muted", { role: "status" });
  const look = async () => {
    const q = input.value.trim();
    if (q === "") return input.focus();
    fill(said, "Searching …");
    try {
      const { results } = await api.search({ q, limit: FOUND }, { signal: at.signal });
      const fitting = results.filter((node) => isAlike(node.node_type, entity.node_type));
      for (const node of fitting) {
        known.set(node.id, { note: "found", ...node, node_id: node.id, ...known.get(node.id) });
      }
      draw();
      const others = results.length - fitting.length;
      fill(said, `${fitting.length} of type ${typeName(entity.node_type)} found`,
        others > 0 && `; ${others} of other types left out`, ".");
    } catch (error) {
      if (!isAbort(error)) fill(said, failure(error));
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    look();
  });
  const tools = el("div.toolbar", {}, el("div.grow", {}, field("Name", input)), button("Search", look));
  return el("div.stack", {}, tools, said);
}

/** Whether a node of one type can be an entity of the other: a CVE is a vulnerability under another name. */
function isAlike(one, other) {
  return one === other || [one, other].every((type) => type === "cve" || type === "vulnerability");
}
