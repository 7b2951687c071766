// The form that remembers one note, and what other forms for notes need.

import { ApiError, isAbort } from "../lib/client.js";
import { el, fill, uniqueId } from "../lib/dom.js";
import { badge, field } from "../lib/parts.js";
import { chips } from "../lib/result.js";
import { failure, linkTo } from "../lib/shell.js";

export const LONGEST_NOTE = 50_000;
const SOURCE_TYPES = ["manual", "report", "advisory", "feed", "blog", "log", "interview", "llm"];
const FRESH_MS = 60_000;
let known = { at: 0, list: null };

/** The domains of the notes, `{name, notes}`, those with most notes first. Asked for once a minute at most. */
export function domainsOf(api) {
  if (!known.list || Date.now() - known.at > FRESH_MS) {
    const list = api.domains().then(({ domains }) => domains);
    list.catch(() => { known.list = null; });
    known = { at: Date.now(), list };
  }
  return known.list;
}

/** Lets the domains be asked for again, as there may be a new one. */
export const forgetDomains = () => { known.list = null; };

/** A control that keeps what is in it in `draft`, so that the next visit finds it there. */
export function kept(control, draft) {
  const property = control.type === "checkbox" ? "checked" : "value";
  if (control.name in draft) control[property] = draft[control.name];
  control.addEventListener("input", () => { draft[control.name] = control[property]; });
  return control;
}

/**
 * The fields that say what a note is about and where it comes from.
 *
 * @param {object} draft What they hold, which is kept there.
 * @returns {{fields: HTMLElement[], value: () => {domain?: string, source_type?: string, source_ref?: string,
 *   evolve?: boolean}}} What is empty is left out.
 */
export function originFields(api, draft) {
  const domains = el("datalist", { id: uniqueId("domains") });
  domainsOf(api).then((list) => fill(domains, list.map(({ name }) => el("option", { value: name }))), () => {});
  const types = el("datalist", { id: uniqueId("types") }, SOURCE_TYPES.map((type) => el("option", { value: type })));
  const text = (name, more) =>
    kept(el("input", { type: "text", name, autocomplete: "off", ...more }), draft);
  const domain = text("domain", { list: domains.id, placeholder: "cti" });
  const type = text("source_type", { list: types.id, placeholder: "manual" });
  const reference = text("source_ref", { placeholder: "https://example.org/report" });
  const evolve = kept(el("input.switch", {
    type: "checkbox", name: "evolve", checked: true, id: uniqueId("evolve"), role: "switch",
  }), draft);
  return {
    fields: [
      field("Domain", domain, "What it is about."), domains,
      field("Kind of source", type, "Decides the tier: manual A; report, feed B; llm C."), types,
      field("Source", reference, "A link or a name."),
      el("div.check", {}, evolve, el("label", { for: evolve.id }, "Compare with existing notes")),
    ],
    value: () => ({
      ...(domain.value.trim() && { domain: domain.value.trim() }),
      ...(type.value.trim() && { source_type: type.value.trim() }),
      ...(reference.value.trim() && { source_ref: reference.value.trim() }),
      ...(!evolve.checked && { evolve: false }),
    }),
  };
}

const OUTCOMES = {
  created: ["good", "The note is remembered."],
  duplicate: ["", "This text was known already; its sources were added."],
  updated: ["accent", "The note is remembered and supersedes one that said nearly the same."],
};

/**
 * A form that remembers one note and shows what became of it. What is not sent stays in `draft`; `done` is called after
 * a note was remembered.
 */
export function rememberForm(api, at, draft, done) {
  const content = kept(el("textarea", { name: "content", rows: 4, required: true }), draft);
  const origin = originFields(api, draft);
  const outcome = el("div", { role: "status" });
  const send = el("button.primary", { type: "submit" }, "Remember");
  const form = el("form.stack", {},
    field("Note", content), el("div.grid", {}, origin.fields), el("div.row", {}, send), outcome);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (send.getAttribute("aria-disabled") === "true") return;
    send.setAttribute("aria-disabled", "true");
    clearFaults(form);
    fill(outcome);
    try {
      const told = await api.remember({ content: content.value, ...origin.value() }, { signal: at.signal });
      forgetDomains();
      content.value = "";
      delete draft.content;
      fill(outcome, remembered(told));
      if (!at.signal.aborted) done();
    } catch (error) {
      if (isAbort(error)) return;
      if (!showFaults(form, error)) fill(outcome, failure(error));
    } finally {
      send.removeAttribute("aria-disabled");
    }
  });
  return form;
}

function remembered({ note_id: id, status, entities }) {
  return el("div.notice.stack-tight", { class: status === "created" ? "good" : "" },
    el("p", {}, badge(status, OUTCOMES[status]?.[0]), " ", OUTCOMES[status]?.[1], " ",
      el("a", { href: linkTo("note", { id }) }, "Open the note")),
    entities.length > 0
      ? chips(entities, (q) => linkTo("search", { q }))
      : el("p.muted", {}, "It mentions no entity that is known to the rules."));
}

/** Shows what is wrong at the fields of a form. Tells whether every fault has its field. */
function showFaults(form, error) {
  if (!(error instanceof ApiError) || error.fields.length === 0) return false;
  return error.fields.map(({ path, message }) => {
    const input = form.elements.namedItem(path);
    if (!input) return false;
    const fault = el("span.field-error", { id: uniqueId("fault"), role: "alert" }, message);
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-errormessage", fault.id);
    input.after(fault);
    return true;
  }).every(Boolean);
}

function clearFaults(form) {
  for (const fault of form.querySelectorAll(".field-error")) fault.remove();
  for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
}
