// The form of a collection that is defined or changed.

import { el } from "../lib/dom.js";
import { button, choice, field } from "../lib/parts.js";
import { form } from "../review/form.js";
import { LEVELS } from "../review/row.js";

/** `done` gets the collection, and the warnings of the answer. */
export function collectionForm(api, at, known, collection, done, cancel) {
  const isNew = collection === null;
  const filter = collection?.filter ?? {};
  const content = [
    el("h3", {}, isNew ? "A new collection" : `Change ${collection.title}`),
    el("div.grid", {},
      field("Title", el("input", { name: "title", required: true, value: collection?.title ?? "", autocomplete: "off" })),
      field("Alias", el("input", { name: "alias", value: collection?.alias ?? "", autocomplete: "off" }),
        "Stands for the id in URLs: small letters, digits, dots, hyphens.")),
    field("Description", el("input", { name: "description", value: collection?.description ?? "" })),
    el("div.grid", {},
      field("STIX types", el("input", { name: "types", value: filter.types?.join(", ") ?? "" }),
        "Such as indicator, relationship. Empty for all."),
      field("Sources", el("textarea", { name: "sources", rows: 2, value: filter.sources?.join("\n") ?? "" }),
        "One a line. Empty for all."),
      field("Least confidence", el("input", { name: "min_confidence", type: "number", min: 0, max: 1, step: "any",
        value: filter.min_confidence ?? "" }), "0 to 1."),
      field("Results of a search", choice(sessionsOf(known, filter), filter.session ?? "", { name: "session" }),
        "As they are now, with the relationships between them.")),
    checks("Markings", "markings", LEVELS.map((level) => [level, level]), filter.markings),
    known.feeds.length > 0 && checks("Feeds", "feeds", known.feeds.map(({ id, name }) => [id, name]), filter.feeds),
    el("div.grid", {},
      users(known, "Read by", "readable_by", collection?.readable_by ?? "everyone"),
      users(known, "Written by", "writable_by", collection?.writable_by ?? [])),
    field("What is handed in", choice([["review", "is reviewed before anything is stored"],
      ["ingest", "is stored at once"]], collection?.hand_in ?? "review", { name: "hand_in" })),
    el("div.actions", {}, button("Cancel", cancel),
      el("button.primary", { type: "submit" }, isNew ? "Define" : "Save")),
  ];
  return form({ class: isNew ? "card stack" : "stack" }, content, async (data) => {
    const options = { signal: at.signal };
    const body = bodyOf(data);
    if (!isNew && JSON.stringify(body.filter) === JSON.stringify(filter)) delete body.filter;
    try {
      const answer = isNew ? await api.addCollection(body, options)
        : await api.changeCollection(collection.id, body, options);
      done(answer.collection, answer.warnings ?? []);
    } catch (error) {
      // The fields of the form are named without what they are part of.
      if (error instanceof Error) error.message = error.message.replace(/^filter\./, "");
      throw error;
    }
  });
}

function sessionsOf({ sessions }, { session }) {
  const mine = sessions.map(({ id, query, result_count: results }) => [id, `${query} (${results})`]);
  const isMine = mine.some(([id]) => id === session);
  return [["", "no"], ...(session && !isMine ? [[session, "the one that was chosen"]] : []), ...mine];
}

function checks(legend, name, entries, chosen = []) {
  return el("fieldset.choices", {}, el("legend", {}, legend), el("div.row", {}, entries.map(([value, label]) =>
    el("label.check", {}, el("input", { type: "checkbox", name, value, checked: chosen.includes(value) }), label))),
  el("span.hint", {}, "None for all."));
}

/** Who may use a collection: everyone, or chosen keys. */
function users({ keys }, legend, name, chosen) {
  const usable = keys.filter((key) => key.revoked_at === null || chosen.includes(key.id));
  const everyone = el("label.check", {}, el("input", { type: "checkbox", name: `${name}_everyone`,
    checked: chosen === "everyone" }), "everyone with the permission");
  return el("fieldset.choices", {}, el("legend", {}, legend), everyone, usable.map(({ id, name: title }) =>
    el("label.check", {}, el("input", { type: "checkbox", name, value: id, checked: chosen.includes(id) }), title)),
  el("span.hint", {}, "Chosen API keys and nobody else, unless it is everyone."));
}

function bodyOf(data) {
  const text = (name) => String(data.get(name)).trim();
  const list = (name, separator) => text(name).split(separator).map((entry) => entry.trim()).filter(Boolean);
  const usersOf = (name) => (data.has(`${name}_everyone`) ? "everyone" : data.getAll(name));
  const filter = {
    types: list("types", /[\s,]+/),
    sources: list("sources", "\n"),
    feeds: data.getAll("feeds"),
    markings: data.getAll("markings"),
    min_confidence: text("min_confidence") === "" ? "" : Number(text("min_confidence")),
    session: text("session"),
  };
  const set = Object.entries(filter).filter(([, value]) => value !== "" && value.length !== 0);
  return {
    title: text("title"),
    alias: text("alias"),
    description: text("description"),
    filter: Object.fromEntries(set),
    readable_by: usersOf("readable_by"),
    writable_by: usersOf("writable_by"),
    hand_in: text("hand_in"),
  };
}
