// Reads a text into a staging batch, or opens a batch for review.

import { showReview } from "../review/start.js";

export const review = (api) => ({
  id: "review",
  title: "Review",
  style: "review.css",
  show: (root, at) => showReview(api, root, at),
});
