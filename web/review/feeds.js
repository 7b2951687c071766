// Threat feeds: register, change and pull them, list their batches, upload a bundle.

import { el, fill } from "../lib/dom.js";
import { tabs } from "../lib/parts.js";
import { showBatches } from "./batches.js";
import { showFeeds } from "./feed.js";
import { showUpload } from "./upload.js";

const PARTS = [["feeds", "Feeds", showFeeds], ["batches", "Batches", showBatches],
  ["upload", "Upload a bundle", showUpload]];

/** Shows the tabs. The feeds are read once for all of them. */
export async function showAll(api, root, at) {
  fill(root, el("p.muted", { role: "status" }, "Loading the feeds …"));
  const { feeds } = await api.feeds({ signal: at.signal });
  const known = new Map(feeds.map((feed) => [feed.id, feed]));
  const chosen = PARTS.find(([id]) => id === at.params.get("tab")) ?? PARTS[0];
  fill(root, tabs("Feeds", PARTS.map(([id, title, show]) =>
    ({ id, title, show: (panel) => show(api, panel, at, known) })), chosen[0]));
}
