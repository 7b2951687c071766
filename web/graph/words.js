// What the graph view says in sentences.

import { count, number } from "../lib/format.js";
import { meaning } from "./picture.js";
import { typeName } from "./types.js";

/** What to say after a node was expanded: `came` tells how many nodes are new in the picture. */
export function outcome(label, { shown, hidden }, part) {
  const unseen = hidden > 0
    && `${count(hidden, "new node")} around ${label} not shown: show hidden types with the buttons above the picture.`;
  const added = shown > 0 && `${count(shown, "node")} added around ${label}.`;
  const least = !added && !unseen && (part?.truncated && !part.last
    ? `The ${number(part.nodes.length)} nodes nearest to ${label} are in the picture; expand more to reach the next.`
    : `Nothing new around ${label}.`);
  const end = part?.truncated && part.last
    && `There is more, but no more than the ${number(part.nodes.length)} nearest can be asked for.`;
  return [added, unseen, least, end].filter(Boolean).join(" ");
}

/** What to say of a selected node; of its links, if they are `known`. `details` are those that have just arrived. */
export function spoken(node, known, details) {
  const name = `${node.label}, ${typeName(node.type)}`;
  if (!known) return name;
  const near = node.near ?? [];
  const first = near.slice(0, 3).map((link) =>
    `${meaning(link)}: ${(link.source === node ? link.target : link.source).label}`);
  const all = details?.totals?.neighbours ?? details?.neighbours.length;
  const listed = all > near.length
    && `${number(all)}${details.next === null ? "" : " or more"} listed in the details`;
  const links = [`${count(near.length, "link")} shown`, listed].filter(Boolean).join(", ");
  return `${name}, ${links}. ${first.join("; ")}`;
}

/** What to say after a search. `grown` tells how many nodes are new in the picture. */
export function findings(part, grown) {
  const { nodes, found = nodes.length } = part;
  const extent = part.around ? `, with what is around ${nodes[0].label}` : "";
  return `${count(found, "node")} found${extent}: ${number(grown)} new in the picture.`;
}

/** What is shown, and what of it was found. `total` is how many nodes there are, if not all are in the picture. */
export function summary(picture, { text, asked, matches, whole, around, total }) {
  const { nodes, links } = picture.shown;
  const hidden = picture.nodes.size - nodes.length;
  return [
    `${count(nodes.length, "node")} and ${count(links.length, "link")} shown`,
    hidden > 0 && `, ${count(hidden, "node")} hidden by type`, ". ",
    links.some(({ together }) => together) && "Dashed links: in the same note. ",
    text !== "" && `${number(matches)} ${asked ? "found for" : "with"} “${text}”. `,
    !whole && nodes.some(({ opened, steps }) => !opened && !steps)
      && "Links appear for nodes that you open or expand. ",
    total > 0 && `The picture holds ${number(picture.nodes.size)} of all ${number(total)} nodes, `
      + `${around ? "the nearest and best connected" : "the best connected"} first; search or expand to see more. `,
  ];
}
