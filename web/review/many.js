// The same decision on many things: one request each, with progress, stopped by what all of them would meet.

import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { button, choice } from "../lib/parts.js";
import { LEVELS } from "./row.js";

const AT_ONCE = 4;
/** From so many on, the bar says what they cost. */
const MANY = 20;
/** Refusals that say nothing about the one thing: no answer, no permission, too many requests, overload. */
const FOR_ALL = new Set([0, 401, 403, 429, 503]);

const isForAll = (error) => FOR_ALL.has(error.status);

/**
 * A bar that selects, and decides on what is selected.
 *
 * @param {import("./decisions.js").Decisions} decisions
 * @param {{things: [string, string], verdicts: [string, string][], more?: Node[], shown: Node,
 *   level: (level: string) => Promise<boolean>, at: import("../lib/shell.js").At}} options `shown` says what the list
 *   shows. `level` is asked before a marking is set.
 */
export function manyBar(decisions, { things, verdicts, more = [], shown, level, at }) {
  const box = el("input", { type: "checkbox", onchange: () => decisions.chooseAll(box.checked) });
  const said = el("span", { role: "status" });
  const progress = el("div.many-progress");
  let isRunning = false;
  at.guard(() => isRunning);
  const run = async (change, done, items = decisions.chosen) => {
    isRunning = true;
    update();
    const left = await runMany(progress, decisions, items, change, { done, things, signal: at.signal });
    isRunning = false;
    const go = () => run(change, done, left);
    if (left.length > 0) progress.append(button(`Go on with the ${number(left.length)} left`, go));
    update();
  };
  const acts = verdicts.map(([status, text]) => button(text, () => run({ status }, status)));
  const mark = choice([["", "Mark …"], ...LEVELS], "", { "aria-label": "Mark the selected", onchange: async () => {
    const chosen = mark.value;
    mark.value = "";
    if (await level(chosen)) await run({ resolved_tlp: chosen }, `marked ${chosen}`);
  } });
  const actions = el("div.row", {}, acts, mark, more);
  const all = el("label.check", {}, box, "All");
  const element = el("div.many", {}, all, el("div.row.muted", {}, shown, said), actions, progress);
  const update = () => {
    const [some, open] = [decisions.chosen.length, decisions.open];
    box.checked = some > 0 && some === open;
    box.indeterminate = some > 0 && some < open;
    said.textContent = some > 0 ? `${number(some)} selected${some > MANY ? ": a request each" : ""}` : "";
    all.hidden = open === 0;
    actions.hidden = some === 0 || isRunning;
  };
  /** Forgets what the last run said, unless something of it is left. */
  const tidy = () => { if (!isRunning && !progress.querySelector("button")) fill(progress); };
  return { element, update, tidy };
}

/** Decides on all of `items`, a few at a time. Resolves to those that are left because it was stopped. */
async function runMany(root, decisions, items, change, { done, things, signal }) {
  const queue = [...items];
  const state = { good: 0, bad: 0, stopped: null };
  const bar = el("progress", { max: items.length, value: 0, "aria-label": "Progress" });
  const text = el("span", { role: "status" });
  fill(root, bar, text, button("Stop", () => { state.stopped ??= new Error("Stopped."); }));
  const work = async () => {
    while (queue.length > 0 && !state.stopped && !signal.aborted) {
      const item = queue.shift();
      const error = await decisions.decide(item, change, isForAll);
      if (error && isForAll(error)) {
        state.stopped ??= error;
        queue.unshift(item);
      } else {
        state[error ? "bad" : "good"] += 1;
      }
      bar.value = state.good + state.bad;
      text.textContent = `${number(bar.value)} of ${number(items.length)}`;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const bad = state.bad > 0 && ` ${count(state.bad, ...things)} could not be changed; each says why.`;
  const good = `${count(state.good, ...things)} ${done}.`;
  fill(root, queue.length === 0
    ? el("span", { role: "status" }, good, bad)
    : el("span.stopped", { role: "alert" }, `${state.stopped?.message ?? ""} ${good}`, bad));
  return queue;
}
