// Asks a service and shows what it finds. What can be asked and how is up to the source.

import { el, fill, uniqueId } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { isAbort } from "../lib/client.js";
import { wordsOf } from "../lib/marks.js";
import { button, choice, field } from "../lib/parts.js";
import { card, isReasoned } from "../lib/result.js";
import { emptiness, failure } from "../lib/shell.js";
import { filterPanel } from "./filters.js";

/**
 * Where a search looks.
 *
 * @typedef {Object} Source
 * @property {string} label Of the question's field.
 * @property {string} placeholder
 * @property {[id: string, title: string, hint: string][]} modes The first one is the default.
 * @property {(at: import("../lib/shell.js").At) => Control[]} controls
 * @property {(at: import("../lib/shell.js").At) => import("./filters.js").Filter[]} filters
 * @property {string[]} [filtered] The modes in which the filters apply; all if absent.
 * @property {(asked: Object<string, string>, signal: AbortSignal) => Promise<Answer>} search Given `q`, `mode`, the
 *   values of the controls of that mode, and those of the filters that are set.
 * @property {(at: import("../lib/shell.js").At) => Node} welcome Shown before the first question.
 * @property {(at: import("../lib/shell.js").At, changed: () => void) => Node} [aside] Shown below the question.
 *   `changed` is called when there is more to be found.
 *
 * @typedef {Object} Control
 * @property {string} name In the URL and in what is asked.
 * @property {string} label
 * @property {HTMLInputElement|HTMLSelectElement} input A checkbox is `"true"` or empty.
 * @property {string[]} [modes] Where it applies; everywhere if absent.
 * @property {string} [initial] Left out of the URL.
 * @property {() => void} [refresh] Called when there is more to be found.
 *
 * @typedef {Object} Answer
 * @property {string} summary
 * @property {Node[]} [head] Comes before the results.
 * @property {Node[]} [actions]
 * @property {import("../lib/result.js").Result[]} results
 * @property {{id: string, title: string, of: (result: any) => string, label?: (value: string) => string}[]} [facets]
 *   Narrow the shown results.
 * @property {Node} [none] Shown if there are no results.
 */

/** How long an answer is shown again to someone who asks the same. */
const MEMO_MS = 60_000;
/** How long it is shown again to someone who comes back. */
const RETURN_MS = 15 * MEMO_MS;
const MOST_MEMOS = 10;
const LIKENESS = "min_score";
/** How long another choice may itself be changed before it is asked for. */
const CHANGE_MS = 400;

/** @param {Source} source */
export function search(source) {
  /** Answers with their times, by what was asked. */
  const memo = new Map();
  return {
    id: "search",
    title: "Search",
    style: "search.css",
    show: (root, at) => showSearch(source, memo, root, at),
  };
}

function showSearch(source, memo, root, at) {
  const form = questionForm(source, at);
  const summary = el("p.summary", { role: "status" });
  const body = el("div.stack");
  let running = new AbortController();
  let rerun;
  let last = null;

  const run = async (fresh) => {
    clearTimeout(rerun);
    const asked = form.asked();
    if (!form.filters.isFine()) {
      form.unfold(true);
      last = { q: asked.q, isEmpty: false };
      return void fill(summary, "Nothing was searched: a filter has to be changed.");
    }
    const isBack = at.returned && last === null;
    const isOther = last !== null && last.q !== asked.q;
    last = { q: asked.q, isEmpty: false };
    running.abort();
    running = new AbortController();
    const signal = AbortSignal.any([at.signal, running.signal]);
    at.keep({ ...form.inUrl(), ...facetsOf(at.params) }, isOther);
    at.name(asked.q);
    fill(summary, "Searching …");
    body.setAttribute("aria-busy", "true");
    try {
      const answer = await remembered(source, memo, asked, { fresh, isBack, signal });
      last.isEmpty = answer.results.length === 0 && Boolean(answer.none);
      showAnswer(answer, asked, { at, form, summary, body });
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
      fill(summary);
      fill(body, failure(error, () => run(true), { signal }));
    } finally {
      if (!signal.aborted) body.removeAttribute("aria-busy");
    }
  };

  form.element.addEventListener("submit", (event) => {
    event.preventDefault();
    for (const name of facetNames(at.params)) at.params.delete(name);
    if (form.question.value.trim()) run(true);
    else form.question.focus();
  });
  form.element.addEventListener("change", ({ target }) => {
    clearTimeout(rerun);
    if (target === form.question || last === null || !form.question.value.trim()) return;
    // The Enter key changes a field and asks, in this order.
    rerun = setTimeout(() => { if (!at.signal.aborted && form.element.checkValidity()) run(false); }, CHANGE_MS);
  });
  const changed = () => {
    memo.clear();
    form.refresh();
    if (last === null) fill(body, source.welcome(at));
    else if (last.isEmpty) run(true);
  };
  fill(root, el("div.card.ask", {}, form.element), source.aside?.(at, changed), summary, body);
  // On a touch screen the keyboard would hide the results.
  const isAsking = !form.question.value || matchMedia("(pointer: fine)").matches;
  if (isAsking && !at.returned) form.question.focus({ preventScroll: true });
  if (form.question.value.trim()) return run(false);
  return void fill(body, source.welcome(at));
}

/** The answer, which is asked for anew if the last one is another question's or old. */
async function remembered(source, memo, asked, { fresh, isBack, signal }) {
  const key = JSON.stringify(asked);
  const known = memo.get(key);
  if (!fresh && known && Date.now() - known.time <= (isBack ? RETURN_MS : MEMO_MS)) return known.answer;
  const answer = await source.search(asked, signal);
  memo.delete(key);
  memo.set(key, { answer, time: Date.now() });
  if (memo.size > MOST_MEMOS) memo.delete(memo.keys().next().value);
  return answer;
}

function questionForm(source, at) {
  const question = el("input", {
    type: "search", id: "question", name: "q", placeholder: source.placeholder,
    value: at.params.get("q") ?? "", autocomplete: "off", spellcheck: "false", enterkeyhint: "search",
  });
  const controls = source.controls(at).map((control) => ({ ...control, field: field(control.label, control.input) }));
  const value = ({ input }) => (input.type === "checkbox" ? (input.checked ? "true" : "") : input.value.trim());
  const hint = el("p.hint");
  const filters = filterPanel(source.filters(at));
  const adapt = (mode) => {
    for (const control of controls) control.field.hidden = !applies(control, mode);
    filters.apply(applies({ modes: source.filtered }, mode));
    fill(hint, source.modes.find(([id]) => id === mode)[2]);
  };
  const modes = modeSwitch(source, at.params.get("mode"), adapt);
  adapt(modes.value());
  const active = () => controls.filter((control) => applies(control, modes.value()));
  // On a phone they would take the whole screen, so they are folded there, unless something is chosen.
  const more = el("div.ask-more", { id: uniqueId("more") },
    el("div.ask-options", {}, modes.element, controls.map((control) => control.field)), hint, filters.element);
  const unfold = (is) => {
    more.classList.toggle("unfolded", is);
    toggle.setAttribute("aria-expanded", String(is));
  };
  const toggle = el("button.link.ask-toggle", { type: "button", "aria-controls": more.id,
    onclick: () => unfold(!more.classList.contains("unfolded")) }, "Mode and filters");
  unfold(filters.count() > 0);
  const element = el("form", { role: "search" },
    el("div.ask-row", {},
      el("label.unseen", { for: question.id }, source.label), question,
      el("button.primary", { type: "submit" }, "Search")),
    toggle, more);
  return {
    element,
    question,
    filters,
    unfold,
    /** Asks again for whatever is nearest; absent where that is asked already. */
    get widen() {
      const { input } = active().find((control) => control.name === LIKENESS) ?? {};
      return input?.value === "" && (() => {
        input.value = "0";
        element.requestSubmit();
      });
    },
    refresh: () => { for (const control of controls) control.refresh?.(); },
    asked: () => ({
      q: question.value.trim(), mode: modes.value(),
      ...Object.fromEntries(active().map((control) => [control.name, value(control)])),
      ...filters.values(),
    }),
    inUrl: () => ({
      q: question.value.trim(), mode: modes.value() === source.modes[0][0] ? "" : modes.value(),
      ...Object.fromEntries(active().filter((control) => value(control) !== control.initial)
        .map((control) => [control.name, value(control)])),
      ...filters.values(),
    }),
  };
}

const applies = (control, mode) => !control.modes || control.modes.includes(mode);

function modeSwitch(source, wanted, changed) {
  let mode = source.modes.some(([id]) => id === wanted) ? wanted : source.modes[0][0];
  const choose = (event) => {
    mode = event.target.value;
    changed(mode);
  };
  const element = el("fieldset.segments", {}, el("legend", {}, "Mode"),
    source.modes.map(([id, title]) => el("label", {},
      el("input", { type: "radio", name: "mode", value: id, checked: id === mode, onchange: choose }),
      el("span", {}, title))));
  return { element, value: () => mode };
}

function showAnswer(answer, asked, { at, form, summary, body }) {
  const words = wordsOf(asked.q);
  const list = el("ol.plain-list.stack", { tabindex: -1 });
  const draw = () => {
    const shown = answer.results.filter((result) => (answer.facets ?? []).every((facet) => {
      const wanted = at.params.get(facetName(facet));
      return wanted === null || wanted === facet.of(result);
    }));
    if (shown.length > 0) fill(list, shown.map((result) => el("li", {}, card(result, asked.q, words))));
    else fill(list, el("li", {}, emptiness("The filter hides all of them.", button("Show all", widen))));
    const part = shown.length < answer.results.length ? `; ${count(shown.length, "is", "are")} shown` : "";
    fill(summary, answer.summary + part);
  };
  const narrow = () => {
    at.keep({ ...form.inUrl(), ...facetsOf(at.params) });
    draw();
  };
  const widen = () => {
    for (const name of facetNames(at.params)) at.params.delete(name);
    at.keep(form.inUrl());
    showAnswer(answer, asked, { at, form, summary, body });
    body.querySelector("ol[tabindex]").focus({ preventScroll: true });
  };
  draw();
  fill(body,
    (answer.actions ?? []).length > 0 && el("div.row", {}, answer.actions),
    answer.head,
    nearest(answer.results, asked.q, words),
    facetBar(answer, at.params, narrow),
    answer.results.length > 0
      ? el("section", { "aria-label": "Results" }, el("h2.unseen", {}, "Results"), list)
      : [answer.none, answer.none && filtered(form.filters), answer.none && form.widen && el("p.row", {},
        button("Show the nearest", form.widen))]);
}

/** Whether a search shows what is likely an answer, or whatever is nearest. */
export const likeness = ({ params }, modes) => {
  const input = choice([["", "Likely answers"], ["0", "Anything near"]], params.get(LIKENESS) ?? "");
  return { name: LIKENESS, label: "Show", input, modes, initial: "" };
};

/** Says that filters may be why nothing was found. */
function filtered(filters) {
  if (filters.count() === 0) return null;
  return el("p.row.filtered", {}, `${count(filters.count(), "filter is", "filters are")} set.`,
    button("Clear the filters", filters.clear));
}

/** Says so if nothing but the meaning speaks for what was found. */
function nearest(results, question, words) {
  if (results.length === 0 || words.length === 0) return null;
  if (results.some((result) => isReasoned(result, question, words))) return null;
  return el("p.notice.warn", {}, "Nothing that is shown has these words or names. These are the nearest in meaning.");
}

const PREFIX = "only-";
const facetName = ({ id }) => PREFIX + id;
const facetNames = (params) => [...new Set(params.keys())].filter((name) => name.startsWith(PREFIX));

/** The chosen facets as the URL holds them. */
function facetsOf(params) {
  return Object.fromEntries(facetNames(params).map((name) => [name, params.get(name)]));
}

/** Buttons that narrow the results; a facet with one value only would narrow nothing, unless it is chosen already. */
function facetBar({ results, facets = [] }, params, changed) {
  const groups = facets.map((facet) => {
    const counts = Map.groupBy(results, facet.of);
    const chosen = params.get(facetName(facet));
    if (chosen === null ? counts.size < 2 : results.length === 0) return null;
    if (chosen !== null && !counts.has(chosen)) counts.set(chosen, []);
    const buttons = [...counts].sort(([a], [b]) => a.localeCompare(b)).map(([value, those]) => {
      const made = el("button.chip", { type: "button", "aria-pressed": String(params.get(facetName(facet)) === value),
        onclick: () => {
          const on = params.get(facetName(facet)) !== value;
          if (on) params.set(facetName(facet), value);
          else params.delete(facetName(facet));
          for (const other of buttons) other.setAttribute("aria-pressed", String(on && other === made));
          changed();
        } }, `${facet.label ? facet.label(value) : value} (${those.length})`);
      return made;
    });
    return el("div.row", { role: "group", "aria-label": `Only this ${facet.title.toLowerCase()}` },
      el("span.facet-title", {}, facet.title), buttons);
  }).filter(Boolean);
  return groups.length > 0 && el("div.facets", {}, groups);
}

