// What a row of a list of decisions is built of.

import { sentence } from "../lib/client.js";
import { el } from "../lib/dom.js";
import { percent } from "../lib/format.js";
import { typeName, warningText } from "../lib/nouns.js";
import { badge, button, choice, tlp } from "../lib/parts.js";
import { linkTo } from "../lib/shell.js";

/** Markings, weakest first. */
export const LEVELS = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER", "TLP:AMBER+PK", "TLP:RED"];

export const rank = (level) => LEVELS.indexOf(level);

/** A staged thing with a node is committed, whatever was decided. */
export const stateOf = (item) => (item.node_id ? "committed" : item.status);

export const isLocked = (item) => stateOf(item) === "committed";

export const levelOf = (item) => item.resolved_tlp ?? item.proposed_tlp;

const KINDS = { accepted: "good", rejected: "bad", merged: "accent", committed: "good", uncertain: "warn" };

/** The badge of a state, if anything has been decided. */
export const stateBadge = (state) => state !== "pending" && badge(state, KINDS[state] ?? "");

/** Buttons for these decisions, `[status, text]`, and `more`. The one that was made is pressed; again takes it back. */
export function verdicts(row, choices, more) {
  const { item } = row;
  const buttons = choices.map(([status, text]) => {
    const isMade = item.status === status;
    return button(text, () => row.decide({ status: isMade ? "pending" : status }), {
      class: `verdict ${status}`, "aria-pressed": String(isMade), "data-act": status,
      title: isMade ? "Take this back" : null, "aria-disabled": row.busy ? "true" : null });
  });
  return el("div.verdicts", { role: "group", "aria-label": `Decision on ${item.name}` }, buttons, more);
}

/** The marking, with a way to change it. `ask` may refuse a level. */
export function marking(row, change) {
  const { item } = row;
  if (isLocked(item)) return tlp(levelOf(item));
  const select = choice(LEVELS, levelOf(item), { "aria-label": `Marking of ${item.name}`, "data-act": "tlp" });
  select.addEventListener("change", async () => {
    if (!await change(row, select.value)) select.value = levelOf(item);
  });
  return select;
}

/** What a reviewer made of the proposed marking, if anything. */
export function remarked(item) {
  if (!item.resolved_tlp || item.resolved_tlp === item.proposed_tlp) return null;
  const isWeaker = rank(item.resolved_tlp) < rank(item.proposed_tlp);
  return badge(`${isWeaker ? "weaker" : "stricter"} than the proposed ${item.proposed_tlp}`, isWeaker ? "warn" : "");
}

/** Whether a warning asks for a stricter marking. */
export const isSensitive = (text) => text.startsWith("TLP sensitivity: ");

/** Says that an item has a sensitivity warning. */
export const sensitive = (item) => item.warnings.some(isSensitive) && badge("sensitive", "warn");

const isOfDualUse = (text) => text.startsWith("Dual use: ");

/** Whether an item is common software, which a text may name without any misuse. */
export const hasDualUse = (item) => item.warnings.some(isOfDualUse);

/** Says that an item is common software. */
export const dualUse = (item) => hasDualUse(item)
  && badge("common software", "", "A program of an operating system, or software that many use without any misuse.");

/** Warnings that all items have; they are worth saying once. */
export function common(items) {
  if (items.length < 2) return [];
  return items[0].warnings.filter((text) => items.every((item) => item.warnings.includes(text)));
}

/** Warnings, those about sensitivity first. */
export function warnings(texts) {
  if (texts.length === 0) return null;
  return el("ul.warnings", {}, [...texts].sort((a, b) => isSensitive(b) - isSensitive(a)).map((text) =>
    el("li", { class: isSensitive(text) ? "sensitive" : "" }, sentence(warningText(text)))));
}

const MATCHES = { id: "same identifier", name: "same name", alias: "an alias", semantic: "similar meaning" };

/** Nodes of the same name as another one among these. */
export function namesakes(nodes) {
  return nodes.filter((node) => nodes.filter(({ name }) => name === node.name).length > 1);
}

/** Nodes that may be the same. `merge` merges into one of them; `compare` shows what tells namesakes apart. */
export function candidates(row, { merge, compare } = {}) {
  const found = row.item.duplicate_candidates;
  if (found.length === 0) return null;
  const twins = new Set(namesakes(found));
  const isOpen = merge && !isLocked(row.item);
  return el("div.candidates", {}, el("span.muted", {}, "May be the same as "), el("ul", {}, found.map((node) =>
    el("li", {}, el("a", { href: linkTo("node", { id: node.node_id }) }, node.name), " ",
      el("span.muted", {}, `${typeName(node.node_type)} · ${matchOf(node)}`,
        twins.has(node) && [" · ", el("code", { title: node.node_id }, node.node_id.slice(0, 8))]),
      isOpen && !twins.has(node) && row.item.merge_target_id !== node.node_id && [" ",
        button("Merge into it", () => merge(row, node), { class: "link", "data-act": `merge-${node.node_id}` })]))),
  isOpen && twins.size > 0
    && [" ", button("Compare …", () => compare(row), { class: "link", "data-act": "compare" })]);
}

/** How a node matched: `same name`, `similar meaning, 83 %`. */
export function matchOf(node) {
  const text = MATCHES[node.match] ?? node.match;
  return node.match === "semantic" ? `${text}, ${percent(node.score)}` : text;
}

/** A line of facts with dots between them. Each is a text, a node or a list of them. */
export function facts(...parts) {
  const given = parts.filter(Boolean);
  return given.length > 0 && el("p.decision-facts", {}, given.map((part, at) => [at > 0 && " · ", part]));
}

/** Does something. If it takes away what has the focus, the element that `next` finds gets it. */
export async function keepingFocus(action, next) {
  const held = document.activeElement;
  await action();
  const isLost = !held.isConnected || held.closest("[hidden]");
  if (isLost && [document.body, held].includes(document.activeElement)) next()?.focus();
}

/** The keys that a list of decisions takes. */
export function keyHelp(keys) {
  return el("p.hint.keys", {}, "Keys in the list: ", [["j", "k", "move"], ...keys, ["x", "select"]].map((entry, at) =>
    [at > 0 && ", ", entry.slice(0, -1).map((key) => [el("kbd", {}, key), " "]), entry.at(-1)]), ".");
}
