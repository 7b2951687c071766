// Asks which node a staged entity is.

import { isAbort } from "../lib/client.js";
import { el, fill, uniqueId } from "../lib/dom.js";
import { ask, button, field, tlp } from "../lib/parts.js";
import { failure } from "../lib/shell.js";
import { matchOf } from "./row.js";

const FOUND = 20;

/** Resolves to the chosen node, `{node_id, name}`, or `null`. */
export async function chooseTarget(api, entity, at) {
  const known = new Map(entity.duplicate_candidates.map((node) => [node.node_id, { ...node, note: matchOf(node) }]));
  const list = el("div.targets", { role: "radiogroup", "aria-label": "Nodes" });
  const group = uniqueId("target");
  const draw = () => fill(list, known.size === 0
    ? el("p.muted", {}, "No node looks the same. Search for the one that it is.")
    : [...known.values()].map((node) => target(node, group)));
  draw();
  const content = el("div.stack", {}, el("p", {}, "The text becomes evidence of the chosen node; no new node is made."),
    list, finder(api, entity, at, known, draw));
  const answer = await ask(`What is ${entity.name}?`, content, [["", "Cancel"], ["merge", "Merge", "primary"]]);
  if (answer !== "merge") return null;
  const chosen = known.get(list.querySelector("input:checked")?.value);
  if (!chosen) at.notify("No node was chosen: nothing was changed.", "bad");
  return chosen ?? null;
}

function target(node, group) {
  return el("label.target", {}, el("input", { type: "radio", name: group, value: node.node_id, required: true }),
    el("span", {}, el("strong", {}, node.name), " ", el("span.muted", {}, `${node.node_type} · ${node.note}`), " ",
      node.tlp && tlp(node.tlp)));
}

/** Looks nodes up by name: only when asked to, as each search is a request and stands in the audit log. */
function finder(api, entity, at, known, draw) {
  const input = el("input", { type: "search", value: entity.name, maxlength: 4000 });
  const said = el("div.muted", { role: "status" });
  const look = async () => {
    const q = input.value.trim();
    if (q === "") return input.focus();
    fill(said, "Searching …");
    try {
      const { results } = await api.search({ q, limit: FOUND }, { signal: at.signal });
      const fitting = results.filter((node) => isAlike(node.node_type, entity.node_type));
      for (const node of fitting) {
        if (!known.has(node.id)) known.set(node.id, { ...node, node_id: node.id, note: "found" });
      }
      draw();
      const others = results.length - fitting.length;
      fill(said, `${fitting.length} of type ${entity.node_type} found`,
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
