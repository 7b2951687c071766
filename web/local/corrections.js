// What a user does to a note: correct it, put another in its place, delete it.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { ask, button, field, when } from "../lib/parts.js";
import { failure, linkTo } from "../lib/shell.js";

/**
 * The buttons below a note. What goes wrong is told in `problem`.
 *
 * @param {{changed: () => void}} then `changed` shows the note anew.
 */
export function actions(api, note, at, { changed }) {
  const problem = el("div", { "aria-live": "polite" });
  const attempt = async (work) => {
    fill(problem);
    try {
      await work();
    } catch (error) {
      if (!isAbort(error)) fill(problem, failure(error));
    }
  };
  return [
    el("div.row", {},
      button("Correct", () => attempt(() => correct(api, note, at, changed))),
      !note.superseded_by && button("Supersede", () => attempt(() => supersede(api, note, at, changed))),
      button("Delete", () => attempt(() => remove(api, note, at)), { class: "danger" })),
    problem,
  ];
}

async function correct(api, note, at, changed) {
  const content = el("textarea", { rows: 8, required: true, value: note.content });
  const domain = el("input", { type: "text", required: true, autocomplete: "off", value: note.domain });
  const type = el("input", { type: "text", required: true, autocomplete: "off", value: note.source_type });
  const source = el("input", { type: "text", autocomplete: "off", value: note.source_ref });
  const form = el("div.stack", {}, field("Text", content), field("Domain", domain),
    field("Kind of source", type, "Decides the tier: manual A; report, feed B; llm C."), field("Source", source));
  const answer = await ask("Correct the note", form, [["", "Cancel"], ["save", "Save", "primary"]], at.signal);
  if (answer !== "save") return;
  const now = { content: content.value, domain: domain.value.trim(), source_type: type.value.trim(),
    source_ref: source.value.trim() };
  const given = Object.entries(now).filter(([name, value]) => value !== note[name]);
  if (given.length === 0) return;
  await api.correct(note.id, Object.fromEntries(given), { signal: at.signal });
  at.notify("The note is corrected.");
  changed();
}

async function supersede(api, note, at, changed) {
  const by = el("input", { type: "text", required: true, autocomplete: "off", spellcheck: "false" });
  const form = el("div.stack", {}, field("Id of the other note", by, "Searches find it instead of this one."));
  const answer = await ask("Put another note in its place", form, [["", "Cancel"], ["save", "Supersede", "primary"]],
    at.signal);
  if (answer !== "save") return;
  await api.supersede(note.id, by.value.trim(), { signal: at.signal });
  at.notify("The note is superseded.");
  changed();
}

async function remove(api, note, at) {
  const text = el("div.stack", {},
    el("p", {}, "It goes from every search and list, with what it alone stated. This can't be undone."),
    el("p", {}, "Erase also removes its text from all files of the service, which takes longer."));
  const answer = await ask("Delete the note?", text,
    [["", "Cancel"], ["erase", "Erase", "danger"], ["delete", "Delete", "danger"]], at.signal);
  if (answer === "") return;
  const { restored } = await api.remove(note.id, answer === "erase", { signal: at.signal });
  at.notify(answer === "erase" ? "The note is erased." : "The note is deleted.");
  at.go(...(restored.length > 0 ? ["note", { id: restored[0] }] : ["search", { q: at.params.get("q") }]));
}

/** What the note said before its corrections, the newest first. */
export function versions({ versions: list = [] }) {
  if (list.length === 0) return null;
  return el("section.card.stack", {}, el("h2", {}, "Earlier versions"),
    [...list].reverse().map((version) => el("details", {},
      el("summary", {}, `Version ${version.version}, until `, when(version.until)),
      el("div.note-text.pre", {}, version.content),
      el("p.muted", {}, [version.domain, version.source_type, version.source_ref].filter(Boolean).join(" · ")))));
}

/** Links to the notes that contradict one. */
export const conflicts = (ids, q) => ids.map((id) => el("a.conflict", { href: linkTo("note", { id, q }) },
  "contradicts another note"));
