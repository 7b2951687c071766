// Takes notes: one, many, or files of them.

import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { field, tabs } from "../lib/parts.js";
import { acceptDrops, filePanel } from "./files.js";
import { length, readLines } from "./items.js";
import { itemList } from "./list.js";
import { LONGEST_NOTE, forgetDomains, kept, originFields } from "../local/remember.js";

/** Shows the forms, whose contents stay in `draft`, and the list of a sender. */
export async function showIngest(api, { sender, draft }, root, at) {
  const limits = await api.config({ signal: at.signal }).then(({ web }) => web, () => null);
  const longest = limits?.max_content_chars ?? LONGEST_NOTE;
  const origin = originFields(api, draft);
  /** Puts notes on the list. What is stated for all of them gives way to what a note states itself. */
  const take = (reading, file = "") => {
    const items = [
      ...reading.notes.map(({ note, from }) => checked({ note, from, file }, longest)),
      ...reading.refused.map(({ from, reason }) => refused({ note: { content: "" }, from }, reason)),
    ];
    list.toStart();
    sender.add(items);
    return items.filter(({ state }) => state === "waiting");
  };
  const send = (items) => {
    const stated = origin.value();
    for (const item of items) item.note = { ...(item.file && { source_ref: item.file }), ...stated, ...item.note };
    at.guard(() => sender.isBusy && "Notes are still being sent. Stop sending and leave?");
    return sender.start(items).finally(forgetDomains);
  };
  const list = itemList(sender, send, at);
  at.signal.addEventListener("abort", () => { sender.changed = () => {}; sender.abandon(); });
  const panelOfFiles = filePanel(take, longest);
  const ways = tabs("What to ingest", [
    { id: "one", title: "One note", show: (panel) => fill(panel, oneNote(take, send, draft)) },
    { id: "many", title: "Many notes", show: (panel) => fill(panel, manyNotes(take, send, draft)) },
    { id: "files", title: "Files", show: (panel) => fill(panel, panelOfFiles.element) },
  ], draft.lines && !draft.note ? "many" : "one");
  fill(root, el("div.stack", {},
    el("div.card.ingest", {}, ways, el("section.about", {}, el("h2", {}, "About these notes"), origin.fields)),
    list.element));
  acceptDrops(root, panelOfFiles.zone, (dropped) => {
    ways.choose("files");
    panelOfFiles.read(dropped);
  });
}

function checked(item, longest) {
  const characters = length(item.note.content);
  if (characters <= longest) return { ...item, state: "waiting" };
  return refused(item, `It has ${number(characters)} characters; at most ${number(longest)} are allowed.`);
}

const refused = (item, error) => ({ ...item, state: "failed", error, hopeless: true });

function oneNote(take, send, draft) {
  const placeholder = "APT28 used X-Agent against 203.0.113.7.";
  const text = kept(el("textarea", { name: "note", rows: 9, required: true, placeholder }), draft);
  const form = el("form.stack", {}, field("Note", text),
    el("div.row", {}, el("button.primary", { type: "submit" }, "Remember")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!text.value.trim()) return;
    send(take({ notes: [{ note: { content: text.value }, from: "typed" }], refused: [] }));
    text.value = "";
    delete draft.note;
    text.focus();
  });
  return form;
}

function manyNotes(take, send, draft) {
  const text = kept(el("textarea", { name: "lines", rows: 9, required: true, spellcheck: "false" }), draft);
  const submit = el("button.primary", { type: "submit" });
  const label = () => {
    const lines = readLines(text.value).notes.length;
    fill(submit, lines > 0 ? `Remember ${count(lines, "note")}` : "Remember");
  };
  label();
  const form = el("form.stack", {},
    field("Notes, one per line", text, "Empty lines are skipped."), el("div.row", {}, submit));
  text.addEventListener("input", label);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const reading = readLines(text.value);
    if (reading.notes.length === 0) return;
    send(take(reading));
    text.value = "";
    delete draft.lines;
    label();
    text.focus();
  });
  return form;
}
