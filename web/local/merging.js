// Entities that are one thing, and the way back.

import { el, fill, uniqueId } from "../lib/dom.js";
import { ask, button, field } from "../lib/parts.js";

const OFFERED = 20;

/** A button that merges an entity into another of its type. */
export const merging = (api, entity, at, { changed, failed }) => button("Merge", async () => {
  try {
    if (await merge(api, entity, at)) changed();
  } catch (error) {
    failed(error);
  }
}, { "aria-label": `Merge ${entity.name} into another entity` });

async function merge(api, entity, at) {
  const options = el("datalist", { id: uniqueId("entities") });
  const offer = async () => {
    const found = await api.entities({ q: into.value.split(":").pop(), type: entity.type, limit: OFFERED },
      { signal: at.signal }).catch(() => ({ entities: [] }));
    fill(options, found.entities.filter(({ id }) => id !== entity.id).map(({ id }) => el("option", { value: id })));
  };
  const into = el("input", { type: "text", required: true, autocomplete: "off", spellcheck: "false", list: options.id,
    oninput: offer });
  offer();
  const form = el("div.stack", {},
    el("p", {}, "Both are then shown as one. This can be undone at any time."),
    field("Entity that stands for both", into, "Its type, a colon and its value."), options);
  const answer = await ask(`Merge ${entity.name} into`, form, [["", "Cancel"], ["merge", "Merge", "primary"]], at.signal);
  if (answer !== "merge") return false;
  await api.merge(entity.id, into.value.trim(), { signal: at.signal });
  at.notify("The entities are merged.");
  return true;
}

/** The entities that are merged into one, each with a button that undoes it. */
export function merged(api, entity, at, { changed, failed }) {
  const list = entity.merged ?? [];
  if (list.length === 0) return null;
  const undo = (id) => button("Undo", async () => {
    try {
      await api.unmerge(id, { signal: at.signal });
      at.notify("The merge is undone.");
      changed();
    } catch (error) {
      failed(error);
    }
  }, { class: "link", "aria-label": `Undo the merge of ${id}` });
  return el("ul.plain-list", { "aria-label": `Merged into ${entity.name}` },
    list.map((id) => el("li", {}, "with ", el("bdi", {}, id), " ", undo(id))));
}
