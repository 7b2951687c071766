// A batch of a threat feed: its state, and the review of its items.

import { showItems } from "../review/items.js";

export const batch = (api) => ({
  id: "batch",
  title: "Feed batch",
  style: "review.css",
  show: (root, at) => showItems(api, root, at),
});
