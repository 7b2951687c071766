// What a feed's batch says about itself.

import { el } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { badge, table, tlp, when } from "../lib/parts.js";
import { linkTo } from "../lib/shell.js";
import { batchBadge, kindOf, received } from "./pull.js";
import { facts } from "./row.js";

/** What a batch is called. `feed` is the batch's feed, if it has one. */
export function batchTitle(batch, feed) {
  return [
    batchBadge(batch),
    feed ? el("a", { href: linkTo("feeds", { tab: "batches", feed: feed.id }) }, feed.name)
      : el("strong", {}, kindOf(batch)),
    tlp(batch.default_tlp), feed && feed.redistribution_state !== "allowed"
      && badge(feed.redistribution_state.replace("_", " "), "warn", "What this feed brings never leaves in an export."),
  ];
}

/** What else there is to say of it. */
export function batchFacts(batch) {
  return [
    facts(["begun ", when(batch.created_at)], batch.ended_at && ["ended ", when(batch.ended_at)],
      batch.status === "committed" && ["committed ", when(batch.committed_at)], ...received(batch)),
    batch.error && el("div.notice.bad", {}, el("p", {}, batch.error),
      el("p", {}, "What was staged before stays. “Resume” goes on after the last page that was staged.")),
    skipped(batch),
    el("p.hint", {}, "Batch ", el("code", {}, batch.id)),
  ];
}

/** What could not be staged, and why. */
function skipped(batch) {
  const types = Object.entries(batch.skipped_by_type);
  if (types.length === 0) return null;
  const all = types.reduce((sum, [, { count: many }]) => sum + many, 0);
  const rows = types.flatMap(([type, { reasons }]) =>
    Object.entries(reasons).map(([reason, many]) => ({ type, reason, many })));
  const objects = batch.skipped_objects ?? [];
  return el("details", {}, el("summary", {}, `${count(all, "object")} not staged`),
    table("Objects that were not staged, by type", [
      { key: "type", title: "Type", cell: (row) => el("code", {}, row.type) },
      { key: "reason", title: "Reason", cell: (row) => row.reason },
      { key: "many", title: "Objects", number: true, cell: (row) => number(row.many) },
    ], rows),
    objects.length > 0 && [el("p", {}, "The first invalid ones:"), el("ul.skipped", {}, objects.map((one) =>
      el("li", {}, el("code", {}, one.id), ` ${one.reason}`)))]);
}

/** What a commit did. */
export function commitResult(results, nameOf) {
  const rest = results.remaining > 0
    ? `${count(results.remaining, "item is", "items are")} still to be decided or committed.`
    : "Nothing is left to decide.";
  const done = [["nodes_created", "node created", "nodes created"], ["nodes_updated", "node updated", "nodes updated"],
    ["edges_created", "relationship created", "relationships created"],
    ["edges_updated", "relationship updated", "relationships updated"],
    ["evidence_created", "evidence record"], ["already_committed", "committed before", "committed before"]]
    .filter(([key]) => results[key] > 0).map(([key, ...words]) => count(results[key], ...words)).join(", ");
  return el("div.notice", { class: results.committed > 0 ? "good" : "warn" },
    el("p", {}, `Committed ${count(results.committed, "item")}${done && `: ${done}`}.`),
    el("p", {}, rest),
    results.waiting.length > 0 && el("details", {},
      el("summary", {}, count(results.waiting.length, "relationship waits", "relationships wait"),
        " for an end that is no node yet. They stay accepted; commit them again later."),
      el("ul.skipped", {}, results.waiting.map((id) => el("li", {}, nameOf(id))))),
    results.warnings.length > 0 && el("ul.warnings", {}, results.warnings.map((text) => el("li", {}, text))));
}
