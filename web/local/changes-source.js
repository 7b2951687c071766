// The changes of the local memory: of notes and entities.

import { el } from "../lib/dom.js";
import { linkTo } from "../lib/shell.js";

export const changesSource = (api) => ({
  kinds: ["created", "changed", "superseded", "merged", "unmerged", "deleted"],
  read: (query, options) => api.changes(query, options),
  by: ({ source }) => source,
  what({ kind, note, entity }) {
    if (note) {
      return kind === "deleted" ? ["Note ", el("code", {}, note)]
        : el("a", { href: linkTo("note", { id: note }) }, "Note ", el("code", {}, note));
    }
    if (!entity) return el("span.muted", {}, "erased entity");
    return kind === "deleted" ? el("bdi", {}, entity) : el("a", { href: linkTo("graph", { around: entity }) }, entity);
  },
});
