// Pairs of nodes that are likely the same, to be merged or told apart.

import { el, fill } from "../lib/dom.js";
import { typeName } from "../lib/nouns.js";
import { button, choice, field } from "../lib/parts.js";
import { emptiness, failure } from "../lib/shell.js";
import { lineOf, mergeInto } from "./merges.js";

/** Pairs per request. */
const PAGE = 50;
const TYPES = ["actor", "tool", "attck", "vulnerability", "cve", "ioc", "osint"];
const SHARED = { name: "the name", alias: "the alias", external_id: "the id", value: "the value" };

export const duplicates = (api) => ({
  id: "duplicates",
  title: "Likely duplicates",
  style: "node.css",
  hidden: true,
  async show(root, at) {
    const list = el("ul.pairs", { "aria-label": "Likely duplicates", tabindex: -1 });
    const problem = el("div");
    const state = el("p.muted", { role: "status" });
    let cursor;
    const load = async () => {
      fill(problem);
      try {
        const query = { limit: PAGE, cursor, node_type: type.value || undefined };
        const page = await api.duplicates(query, { signal: at.signal });
        list.append(...page.duplicates.map((pair) => pairOf(api, pair, at, problem)));
        cursor = page.next_cursor;
        next.hidden = cursor === undefined;
        fill(state, list.children.length === 0 && "No two nodes share a name, an id or a value.");
      } catch (error) {
        if (!at.signal.aborted) fill(problem, failure(error, load));
      }
    };
    const next = button("Show more", load, { hidden: true });
    const type = choice([["", "All types"], ...TYPES.map((type) => [type, typeName(type)])], "", { name: "node_type", onchange: () => {
      cursor = undefined;
      fill(list);
      load();
    } });
    fill(root, el("div.stack", {},
      el("p", {}, "Nodes of one type that share a name, an alias, an id or a value. Merge those that are one thing; the rest "
        + "is remembered as not the same."),
      field("Type", type), problem, state, list, next));
    await load();
  },
});

/** A pair with what can be done about it. */
function pairOf(api, { first, second, reasons }, at, problem) {
  const line = el("li.card");
  const guarded = (work) => async () => {
    fill(problem);
    try {
      if (await work()) line.remove();
    } catch (error) {
      if (!at.signal.aborted) fill(problem, failure(error));
    }
  };
  const merge = (node, into) =>
    button(`Merge ${node.name} into ${into.name}`, guarded(() => mergeInto(api, node, into, at)));
  const distinct = button("Not the same", guarded(async () => {
    await api.markDistinct(first.id, second.id, { signal: at.signal });
    at.notify(`${first.name} and ${second.name} are not the same.`);
    return true;
  }), { "aria-label": `${first.name} and ${second.name} are not the same` });
  const shared = reasons.map(({ by, text }) => [SHARED[by] ?? by, " ", el("bdi", {}, text)]);
  const listed = shared.flatMap((one, place) => (place > 0 ? [", ", one] : [one]));
  return fill(line, el("div.stack", {}, lineOf(first), lineOf(second),
    el("p.muted", {}, "Both have ", listed, "."),
    el("div.row", {}, merge(second, first), merge(first, second), distinct)));
}
