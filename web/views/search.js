// Asks the memory.

import { el, fill } from "../lib/dom.js";

export const search = (api) => ({
  id: "search",
  title: "Search",
  show(root, at) {
    fill(root, el("p", {}, at.params.get("q") ?? ""));
  },
});
