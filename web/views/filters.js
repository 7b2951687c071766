// The filters of a search: what is searched at all.

import { debounced, el, uniqueId } from "../lib/dom.js";
import { field } from "../lib/parts.js";

/**
 * A filter.
 *
 * @typedef {Object} Filter
 * @property {string} name In the URL and in what is asked.
 * @property {HTMLElement} element Its input with a label.
 * @property {() => string} value Empty if it does not filter.
 * @property {() => void} clear
 * @property {HTMLInputElement} [input] Where a problem is told.
 * @property {() => string} [problem] What is wrong with it.
 */

/** How long what is typed may still be wrong before that is told. */
const TYPING_MS = 500;
/** So that the field of a year takes four digits. */
const LAST_DAY = "9999-12-31";

/** Any number of choices, `[value, label]`. */
export function choicesFilter(name, label, choices, params) {
  const chosen = new Set((params.get(name) ?? "").split(","));
  const boxes = choices.map(([value]) => el("input", { type: "checkbox", value, checked: chosen.has(value) }));
  return {
    name,
    element: el("fieldset.choices", {}, el("legend", {}, label),
      choices.map(([, text], at) => el("label", {}, boxes[at], " ", text))),
    value: () => boxes.filter(({ checked }) => checked).map(({ value }) => value).join(","),
    clear: () => { for (const box of boxes) box.checked = false; },
  };
}

/** A text, with those that were seen as suggestions in the `datalist`. */
export function textFilter(name, label, datalist, params) {
  const input = el("input", {
    type: "text", list: datalist.id, autocomplete: "off", spellcheck: "false",
    value: params.get(name) ?? "",
  });
  const element = field(label, input);
  element.append(datalist);
  return { name, input, element, value: () => input.value.trim(), clear: () => { input.value = ""; } };
}

/** Two days, of which the second must not come before the first. */
export function periodFilters([first, last], params) {
  const day = ([name, label]) => {
    const input = el("input", { type: "date", max: LAST_DAY, value: params.get(name) ?? "" });
    return {
      name, input, element: field(label, input), value: () => input.value, clear: () => { input.value = ""; },
      problem: () => (input.validity.badInput ? "This is no whole date." : ""),
    };
  };
  const [since, until] = [day(first), day(last)];
  const isBackward = () => since.value() !== "" && until.value() !== "" && until.value() < since.value();
  const order = `This is before “${first[1]}”.`;
  return [since, { ...until, problem: () => until.problem() || (isBackward() ? order : "") }];
}

/** A least part of one, in percent. */
export function leastFilter(name, label, params) {
  const given = params.get(name) ? Math.round(Number(params.get(name)) * 100) : NaN;
  const input = el("input.few", {
    type: "number", min: 0, max: 100, step: 1, placeholder: "0", value: Number.isNaN(given) ? "" : given,
  });
  return {
    name, input,
    element: field(label, input),
    value: () => (input.value === "" ? "" : String(Number(input.value) / 100)),
    clear: () => { input.value = ""; },
    problem: () => (input.validity.badInput || !(input.value >= 0 && input.value <= 100) || input.value % 1 !== 0
      ? "A whole number from 0 to 100." : ""),
  };
}

/**
 * A disclosure with filters. It tells of a change by the event `change`, also when they are cleared.
 *
 * @param {Filter[]} filters
 */
export function filterPanel(filters) {
  const tally = el("span.badge.accent");
  const head = el("summary", {}, "Filters", tally);
  const clearing = el("button", { type: "button" }, "Clear filters");
  const fields = el("fieldset.filter-fields", {}, el("legend.unseen", {}, "Filters"),
    filters.map(({ element }) => element), el("div.filter-end", {}, clearing));
  const element = el("details.filters", {}, head, fields);
  const told = filters.filter(({ problem }) => problem).map((filter) => telling(filter));
  const active = () => (fields.disabled ? [] : filters.filter(({ value }) => value() !== ""));
  const check = () => {
    for (const { check } of told) check();
    const number = active().length;
    tally.hidden = number === 0;
    tally.textContent = number > 0 ? `${number} active` : "";
    clearing.hidden = number === 0 && told.every(({ isFine }) => isFine());
  };
  const tell = () => {
    for (const { tell } of told) tell();
    if (!isFine()) element.open = true;
  };
  const tellLater = debounced(TYPING_MS, tell);
  const isFine = () => fields.disabled || told.every(({ isFine }) => isFine());
  const clear = () => {
    for (const filter of filters) filter.clear();
    element.dispatchEvent(new Event("change", { bubbles: true }));
    head.focus();
  };
  clearing.addEventListener("click", clear);
  element.addEventListener("input", () => { check(); tellLater(); });
  element.addEventListener("change", () => { check(); tellLater(); });
  // The form was sent.
  element.addEventListener("invalid", tell, { capture: true });
  check();
  tell();
  return {
    element,
    isFine,
    clear,
    count: () => active().length,
    values: () => Object.fromEntries(active().map(({ name, value }) => [name, value()])),
    /** Whether they apply. */
    apply: (yes) => {
      element.hidden = !yes;
      fields.disabled = !yes;
      check();
    },
  };
}

/** Checks an input, and tells what is wrong with it. */
function telling({ input, element, problem }) {
  const text = el("span.field-error", { id: uniqueId("error"), role: "alert" });
  element.append(text);
  const found = () => (input.matches(":disabled") ? "" : problem());
  return {
    check: () => {
      input.setCustomValidity(found());
      if (found() === "") forget(input, text);
    },
    isFine: () => found() === "",
    tell: () => {
      if (found() === "" || text.textContent === found()) return;
      text.textContent = found();
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", text.id);
    },
  };
}

function forget(input, text) {
  text.textContent = "";
  input.removeAttribute("aria-invalid");
  input.removeAttribute("aria-describedby");
}
