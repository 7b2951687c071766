// Reads a text into a staging batch, or opens one that waits for its review.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { button, choice, field, table, when } from "../lib/parts.js";
import { failure, linkTo } from "../lib/shell.js";
import { drafted, forgetRead, keepDraft } from "./draft.js";
import { form, valuesOf } from "./form.js";
import { LEVELS } from "./row.js";
import { showBatch } from "./staging.js";

const SOURCES = [["manual_text", "Text"], ["analyst_report", "Analyst's report"], ["osint_feed", "Open source (OSINT)"],
  ["incident_writeup", "Incident report"], ["chat", "Chat"]];
const MODES = [["review", "Stage everything for review"], ["auto", "Commit at once what needs no review"]];

/** Most batches that are listed. */
const LISTED = 20;

/** Shows a batch, or the form that makes one. */
export async function showReview(api, root, at) {
  const batch = at.params.get("batch");
  if (batch) await showBatch(api, root, at, batch);
  else fill(root, el("div.stack", {}, reader(api, at), opener(api, at)));
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

/** The batches that wait for a decision or a commit. */
function opener(api, at) {
  const list = el("div", { role: "status" });
  const load = async () => {
    fill(list, el("p.muted", {}, "Loading …"));
    try {
      const { batches } = await api.batches({ status: "open", limit: LISTED }, { signal: at.signal });
      fill(list, batches.length > 0 ? table("Open batches", COLUMNS, batches)
        : el("p.muted", {}, "No batch waits for a review."));
    } catch (error) {
      if (!isAbort(error)) fill(list, failure(error, load));
    }
  };
  load();
  return el("section.card", { "aria-labelledby": "open-batches" },
    el("div.spread", {}, el("h2", { id: "open-batches" }, "Open batches"), button("Load again", load)), list);
}

const COLUMNS = [
  { key: "created", title: "Begun", cell: (batch) => when(batch.created_at) },
  { key: "batch", title: "Batch", cell: ({ id, session_id: session }) =>
    el("a", { href: linkTo("review", { batch: id }) }, session || id.slice(0, 8)) },
  ...["pending", "accepted", "rejected", "uncertain", "committed"].map((key) => ({
    key, title: `${key[0].toUpperCase()}${key.slice(1)}`, number: true, cell: ({ entities }) => number(entities[key]),
  })),
];
