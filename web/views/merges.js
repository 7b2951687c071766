// Nodes that are one thing: the part of a node's page that shows what is merged into it, and merges it.

import { may } from "../console/session.js";
import { el, fill } from "../lib/dom.js";
import { typeName } from "../lib/nouns.js";
import { ask, badge, button, field, tlp, when } from "../lib/parts.js";
import { failure, linkTo } from "../lib/shell.js";

/** Nodes that are offered. */
const OFFERED = 8;

/** A node in a line of its own. */
export const lineOf = (node, ...more) => el("span.row", {},
  el("a", { href: linkTo("node", { id: node.id }) }, node.name),
  node.node_type && badge(typeName(node.node_type), `type-${node.node_type}`), tlp(node.tlp), more);

/**
 * Asks whether to merge a node into another one, and merges it. Says whether it did.
 *
 * @param {{id: string, name: string}} node
 * @param {{id: string, name: string}} into
 */
export async function mergeInto(api, node, into, at) {
  const reason = el("input", { name: "reason", maxlength: 200, autocomplete: "off" });
  const content = el("div.stack", {},
    el("p", {}, el("bdi", {}, into.name), " stands for ", el("bdi", {}, node.name), " from then on: in searches, look-ups "
      + "and exports. It can be taken back at any time."),
    field("Reason (optional)", reason));
  const answer = await ask(`Merge “${node.name}”?`, content, [["", "Cancel"], ["merge", "Merge", "primary"]], at.signal);
  if (answer !== "merge") return false;
  const body = { into: into.id, ...(reason.value.trim() && { reason: reason.value.trim() }) };
  await api.mergeNode(node.id, body, { signal: at.signal });
  at.notify("The nodes are merged.");
  return true;
}

/** What is merged into a node, and what it could be merged into. `reload` shows the page anew. */
export function merges(api, found, at, reload) {
  const writes = may("recall:write");
  if (found.merged.length === 0 && !writes) return null;
  const problem = el("div");
  const guarded = (work) => async () => {
    fill(problem);
    try {
      await work();
    } catch (error) {
      if (!at.signal.aborted) fill(problem, failure(error));
    }
  };
  const undo = (node) => button("Take back", guarded(async () => {
    await api.unmergeNode(node.id, { signal: at.signal });
    at.notify(`${node.name} stands for itself again.`);
    await reload();
  }), { "aria-label": `Take back the merge of ${node.name}` });
  const line = (node) => el("li", {}, lineOf(node, el("span.muted", {}, "merged ", when(node.merged_at),
    node.reason && [": ", el("bdi", {}, node.reason)])), writes && undo(node));
  return el("section.card", {}, el("h2", {}, "One thing"),
    found.redirected_from && el("p", { role: "note" },
      "The node that was asked for is merged into this one."),
    found.merged.length > 0
      ? el("ul.ends", { "aria-label": "Merged nodes" }, found.merged.map(line))
      : el("p.muted", {}, "No node is merged into this one."),
    writes && chooser(api, found.node, at, guarded, reload), problem);
}

/** A search for the node that another one is merged into. */
function chooser(api, node, at, guarded, reload) {
  const query = el("input", { type: "search", name: "into", maxlength: 400, autocomplete: "off" });
  const list = el("ul.ends", { "aria-label": "Nodes to merge into", "aria-live": "polite" });
  const offer = (other) => el("li", {}, lineOf(other), button(`Merge into ${other.name}`, guarded(async () => {
    if (await mergeInto(api, node, other, at)) await reload();
  })));
  const look = guarded(async () => {
    const q = query.value.trim();
    if (!q) return;
    const filters = { q, limit: OFFERED, node_type: node.node_type };
    const { results } = await api.semantic(filters, { signal: at.signal });
    const others = results.filter(({ id }) => id !== node.id);
    fill(list, others.length > 0 ? others.map(offer) : el("li.muted", {}, "No other node is like that."));
  });
  const form = el("form.row", { onsubmit: (event) => { event.preventDefault(); look(); } },
    field("Merge this node into", query), button("Find", look, { type: "submit" }));
  return el("details", {}, el("summary", {}, "It is the same as another node"), form, list,
    el("p.hint", {}, el("a", { href: linkTo("duplicates") }, "Nodes that are likely the same")));
}
