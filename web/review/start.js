// Reads a text into a staging batch, or opens a batch for review.

import { el, fill } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { button, choice, field, when } from "../lib/parts.js";
import { linkTo } from "../lib/shell.js";
import { drafted, forgetRead, keepDraft } from "./draft.js";
import { form, valuesOf } from "./form.js";
import { LEVELS } from "./row.js";
import { showBatch } from "./staging.js";

const SOURCES = [["manual_text", "Text"], ["analyst_report", "Analyst's report"], ["osint_feed", "Open source (OSINT)"],
  ["incident_writeup", "Incident report"], ["chat", "Chat"]];
const MODES = [["review", "Stage everything for review"], ["auto", "Commit at once what needs no review"]];

/** Batches that this page has made, with the time: the API has no list of them. */
const recent = new Map();

/** Shows a batch, or the form that makes one. */
export async function showReview(api, root, at) {
  const batch = at.params.get("batch");
  if (batch) await showBatch(api, root, at, batch);
  else fill(root, el("div.stack", {}, reader(api, at), opener(at)));
}

function reader(api, at) {
  if (at.params.get("session")) forgetRead();
  const { values, batch } = drafted();
  const text = el("textarea", { name: "text", required: true, minlength: 10, rows: 10, spellcheck: "false",
    value: values.text ?? "" });
  const session = el("input", { name: "session_id", autocomplete: "off",
    value: at.params.get("session") ?? values.session_id ?? "" });
  const confidence = el("input", { name: "default_confidence", type: "number", min: 0, max: 1, step: "any",
    value: values.default_confidence ?? "" });
  const levels = [["", "As the text states, otherwise TLP:AMBER"], ...LEVELS];
  const read = batch && readBefore(batch, text);
  const content = [
    el("h2", {}, "Read a text"),
    field("Text", text, "The entities that it names are staged. Nothing becomes a node before it is committed."),
    read,
    el("div.grid.roomy", {},
      field("Kind of text", choice(SOURCES, values.source_type ?? "manual_text", { name: "source_type" })),
      field("Marking", choice(levels, values.default_tlp, { name: "default_tlp" })),
      field("Session", session, "A name of your choice, such as a case number: texts with the same one and the same marking share a batch."),
      field("Confidence", confidence, "0 to 1. If empty, as sure as the extractor is."),
      field("What happens then", choice(MODES, values.ingest_mode ?? "review", { name: "ingest_mode" }))),
    el("div.actions", {}, el("button.primary", { type: "submit" }, "Find the entities")),
  ];
  const keep = (event) => {
    keepDraft(Object.fromEntries(new FormData(event.currentTarget)));
    if (read) read.remove();
  };
  return form({ class: "card stack", oninput: keep, onchange: keep }, content, async (data) => {
    const body = valuesOf(data);
    if (body.default_confidence) body.default_confidence = Number(body.default_confidence);
    const answer = await api.preview(body, { signal: at.signal });
    const found = count(answer.entities.length, "entity", "entities");
    const written = answer.entities.filter((entity) => entity.node_id).length;
    const said = answer.auto_ingest ? `${found} found, ${written} committed.` : `${found} found.`;
    at.notify(said, answer.entities.length > 0 ? "good" : "warn");
    recent.set(answer.batch_id, new Date().toISOString());
    if (answer.entities.length > 0) keepDraft(drafted().values, answer.batch_id);
    at.go("review", { batch: answer.batch_id });
  });
}

/** Says that a text was read, and clears it. */
function readBefore(batch, text) {
  const clear = () => {
    forgetRead();
    text.value = "";
    said.remove();
    text.focus();
  };
  const said = el("div.row.hint", {}, el("span", {}, "This text is in the batch ",
    el("a", { href: linkTo("review", { batch }) }, batch.slice(0, 8)), " already."), button("Clear it", clear));
  return said;
}

function opener(at) {
  const id = el("input", { name: "batch", required: true, autocomplete: "off", spellcheck: "false",
    placeholder: "2c1a473a-e54c-4c90-8750-d90700bea7d0" });
  const content = [el("h2", {}, "Open a batch"),
    el("div.toolbar", {}, el("div.grow", {}, field("Id of the batch", id)), el("button", { type: "submit" }, "Open")),
    recent.size > 0 && el("p", {}, "Read in this tab: ", [...recent].reverse().map(([batch, time], place) => [
      place > 0 && ", ", el("a", { href: linkTo("review", { batch }) }, batch.slice(0, 8)), " ", when(time)]))];
  return form({ class: "card" }, content, async () => at.go("review", { batch: id.value.trim() }));
}
