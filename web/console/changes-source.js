// The changes of a workspace: of nodes and relationships.

import { el } from "../lib/dom.js";
import { linkTo } from "../lib/shell.js";

const nodeLink = ({ id, name }) => name
  ? el("a", { href: linkTo("node", { id, include_rejected: true }) }, name) : el("code", {}, id);

export const changesSource = (api) => ({
  kinds: ["created", "changed", "rejected", "restored", "merged", "unmerged", "erased"],
  read: (query, options) => api.changes(query, options),
  by: ({ via, source }) => [el("span", {}, via), source && el("span.muted", {}, " ", el("bdi", {}, source))],
  what({ node, into, relationship }) {
    if (node) return [nodeLink(node), into && [" and ", nodeLink(into)]];
    return [el("span.muted", {}, "relationship "), el("a", { href: linkTo("node", { id: relationship.source }) },
      relationship.relationship_type.replaceAll("-", " "))];
  },
});
