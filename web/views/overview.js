// What the memory holds and how it is doing.

import { el, fill } from "../lib/dom.js";
import { number } from "../lib/format.js";

export const overview = (api) => ({
  id: "overview",
  title: "Overview",
  async show(root, at) {
    const storage = await api.storage({ signal: at.signal });
    fill(root, el("div.card", {}, number(storage.total_notes)));
  },
});
