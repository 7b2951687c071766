// The batches of the threat feeds, newest first.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { button, choice, field, table, when } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { batchBadge, kindOf } from "./pull.js";
import { keepingFocus } from "./row.js";

const PAGE = 25;
const STATES = [["", "Any"], "pulling", "review", "failed", "committed"];

/** Shows the batches, filtered by feed and state. */
export function showBatches(api, panel, at, known) {
  const feeds = [["", "All feeds and uploads"], ...[...known.values()].map((feed) => [feed.id, feed.name])];
  const feed = choice(feeds, at.params.get("feed") ?? "", { onchange: () => load(0) });
  const status = choice(STATES, at.params.get("status") ?? "", { onchange: () => load(0) });
  const list = el("div.stack");
  const load = async (offset) => {
    at.keep({ tab: "batches", feed: feed.value, status: status.value });
    fill(list, el("p.muted", { role: "status" }, "Loading …"));
    try {
      const query = { feed: feed.value, status: status.value, limit: PAGE + 1, offset };
      const { batches } = await api.feedBatches(query, { signal: at.signal });
      fill(list, shown(batches, offset, known, turn));
    } catch (error) {
      if (!isAbort(error)) fill(list, failure(error, () => turn(offset)));
    }
  };
  const turn = (offset) => keepingFocus(() => load(offset), () => list.querySelector("[tabindex], a, button"));
  fill(panel, el("div.toolbar", {}, el("div.grow", {}, field("Feed", feed)), field("State", status),
    button("Load again", () => load(0))), list);
  return load(0);
}

function shown(batches, offset, known, turn) {
  if (batches.length === 0) {
    return emptiness(offset > 0 ? "There are no older batches" : "No batch fits",
      el("a", { href: linkTo("feeds") }, "Pull a feed"), " or ",
      el("a", { href: linkTo("feeds", { tab: "upload" }) }, "upload a bundle"), " to stage one.");
  }
  const page = batches.slice(0, PAGE);
  return [
    table("Batches", columns(known), page),
    el("div.row.pager", {}, offset > 0 && button("Newer", () => turn(Math.max(0, offset - PAGE))),
      batches.length > PAGE && button("Older", () => turn(offset + PAGE))),
  ];
}

function columns(known) {
  const amount = (key) => ({ key, title: `${key[0].toUpperCase()}${key.slice(1)}`, number: true,
    cell: (batch) => number(batch[key]) });
  const source = (batch) => {
    const feed = known.get(batch.feed_source_id);
    return feed ? `${feed.name} (${kindOf(batch)})` : kindOf(batch);
  };
  return [
    { key: "created", title: "Begun", cell: (batch) => when(batch.created_at) },
    { key: "source", title: "Source", cell: (batch) =>
      el("a", { href: linkTo("batch", { id: batch.id }) }, source(batch)) },
    { key: "status", title: "State", cell: batchBadge },
    amount("pending"), amount("accepted"), amount("rejected"), amount("committed"),
  ];
}
