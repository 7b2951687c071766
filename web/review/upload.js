// Stages an uploaded STIX bundle for the same review as a pull.

import { ApiError } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { choice, field } from "../lib/parts.js";
import { form } from "./form.js";
import { LEVELS } from "./row.js";

/** Shows the form. */
export function showUpload(api, panel, at, known) {
  const feeds = [["", "No feed"], ...[...known.values()].map((feed) => [feed.id, feed.name])];
  const content = [
    el("h2", {}, "Upload a bundle"),
    el("p", {}, "The objects of a STIX 2.1 bundle are staged for review. Nothing becomes a node before a commit."),
    field("File", el("input", { type: "file", name: "bundle", required: true, accept: ".json,application/json" })),
    el("div.grid", {},
      field("Feed", choice(feeds, at.params.get("feed") ?? "", { name: "feed_source_id" }),
        "If the bundle comes from a registered feed: the feed's marking and terms of redistribution then apply."),
      field("Marking for objects that have none", choice([["", "The feed's, otherwise TLP:GREEN"], ...LEVELS], "",
        { name: "default_tlp" }))),
    el("div.actions", {}, el("button.primary", { type: "submit" }, "Stage the bundle")),
  ];
  fill(panel, form({ class: "card stack" }, content, async (data) => {
    const upload = { bundle: await read(data.get("bundle")) };
    for (const name of ["feed_source_id", "default_tlp"]) {
      if (data.get(name)) upload[name] = data.get(name);
    }
    const { batch } = await api.uploadBundle(upload, { signal: at.signal });
    if (batch.item_count > 0) at.notify(`${count(batch.item_count, "item")} staged for review.`);
    else at.notify("Nothing was staged: the bundle holds nothing new that can become a node.", "warn");
    at.go("batch", { id: batch.id });
  }));
}

async function read(file) {
  try {
    return JSON.parse(await file.text());
  } catch {
    throw new ApiError(0, `bundle: the file ${file.name} holds no JSON.`);
  }
}
