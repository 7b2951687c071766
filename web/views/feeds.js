// Threat feeds: register, change and pull them, list their batches, upload a bundle.

import { showAll } from "../review/feeds.js";

export const feeds = (api) => ({
  id: "feeds",
  title: "Feeds",
  style: "review.css",
  show: (root, at) => showAll(api, root, at),
});
