// Takes notes: one, many, or files of them.

import { showIngest } from "../ingest/page.js";
import { Sender } from "../ingest/sender.js";

export function ingest(api) {
  // The list outlives a visit, so that one may look at a note and come back.
  const sender = new Sender((notes, signal) => api.ingest(notes, { signal }));
  const draft = {};
  return {
    id: "ingest",
    title: "Ingest",
    style: "ingest.css",
    show: (root, at) => showIngest(api, { sender, draft }, root, at),
  };
}
