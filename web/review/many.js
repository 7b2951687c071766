// The same decision on many things: one request each, with progress, stopped by what all of them would meet.

import { requestsLeft } from "../console/session.js";
import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { ask, button, choice } from "../lib/parts.js";
import { LEVELS, keepingFocus } from "./row.js";

const AT_ONCE = 4;
/** Requests that are kept for the commit, and for loading what it leaves. */
const KEPT = 2;
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
 *   confirm: Function, at: import("../lib/shell.js").At}} options `shown` says what the list shows. `confirm` is asked
 *   before things are decided on: it gets them and the change, and resolves to `{items, change}`, or to `null`.
 */
export function manyBar(decisions, { things, verdicts, more = [], shown, confirm, at }) {
  const box = el("input", { type: "checkbox", onchange: () => decisions.chooseAll(box.checked) });
  const said = el("span", { role: "status" });
  const progress = el("div.many-progress");
  let isRunning = false;
  at.guard(() => isRunning);
  const first = () => progress.querySelector("button") ?? (all.hidden ? decisions.first : box);
  const shows = (isNow, ...content) => keepingFocus(() => {
    isRunning = isNow;
    fill(progress, content);
    update();
  }, first);
  const run = async (change, done, chosen = decisions.chosen) => {
    const items = chosen.slice(0, await affordable(chosen.length, at.signal));
    if (items.length === 0) return;
    const running = new Run(decisions, items, change, at.signal);
    shows(true, running.shown);
    const left = [...await running.ended, ...chosen.slice(items.length)];
    const go = () => run(change, done, left);
    shows(false, running.outcome(done, things),
      left.length > 0 && button(`Go on with the ${number(left.length)} left`, go));
  };
  const acts = verdicts.map(([status, text]) => button(text, async () => {
    const asked = await confirm(decisions.chosen, { status });
    if (asked) await run(asked.change, status, asked.items);
  }));
  const mark = choice([["", "Mark …"], ...LEVELS], "", { "aria-label": "Mark the selected", onchange: async () => {
    const chosen = mark.value;
    mark.value = "";
    await run({ resolved_tlp: chosen }, `marked ${chosen}`);
  } });
  const actions = el("div.row", {}, acts, mark, more);
  const allText = el("span");
  const all = el("label.check", {}, box, allText);
  const element = el("div.many", {}, all, el("div.row.muted", {}, shown, said), actions, progress);
  const update = () => {
    const [some, open] = [decisions.chosen.length, decisions.open];
    box.checked = some > 0 && some === open;
    box.indeterminate = some > 0 && some < open;
    const text = some > 0 ? `${number(some)} selected${costOf(some)}` : "";
    if (said.textContent !== text) said.textContent = text;
    allText.textContent = open === decisions.many ? `All ${number(open)} shown` : `All ${number(open)} not committed`;
    all.hidden = open === 0;
    actions.hidden = some === 0 || isRunning;
  };
  /** Forgets what the last run said, unless something of it is left. */
  const tidy = () => { if (!isRunning && !progress.querySelector("button")) fill(progress); };
  return { element, update, tidy, isRunning: () => isRunning };
}

function costOf(many) {
  const { left } = requestsLeft() ?? { left: Infinity };
  if (many + KEPT > left) return `: a request each, and ${number(left)} left of this hour`;
  return many > MANY ? ": a request each" : "";
}

/** How many of these can be decided on: if the requests that are left do not suffice, it asks. */
async function affordable(many, signal) {
  const { left, reset } = requestsLeft() ?? { left: Infinity };
  if (many + KEPT <= left) return many;
  const some = Math.max(0, left - KEPT);
  const content = [
    el("p", {}, `This takes ${count(many, "request")}; ${number(left)} of this hour ${left === 1 ? "is" : "are"} left, `
      + `with more in ${count(Math.ceil(reset / 60), "minute")}. Users and API keys of the workspace share them.`),
    el("p", {}, some > 0 ? `${number(KEPT)} are kept, to commit and to load what that leaves.`
      : "What is left is kept for the commit."),
  ];
  const first = some > 0 && ["some", `Decide on the first ${number(some)}`, "primary"];
  const buttons = [["", "Cancel"], first, ["all", "Try all"]].filter(Boolean);
  return { some, all: many }[await ask("Not enough requests are left", content, buttons, signal)] ?? 0;
}

/** Decides on all of `items`, a few at a time. */
class Run {
  #good = 0;
  #bad = 0;
  /** Items that somebody decided on in the meantime. */
  #left = 0;
  #stopped = null;
  #bar;
  #text = el("span");

  constructor(decisions, items, change, signal) {
    Object.assign(this, { decisions, change, signal, many: items.length, queue: [...items] });
    this.#bar = el("progress", { max: items.length, value: 0, "aria-label": "Progress" });
    this.shown = [this.#bar, this.#text, button("Stop", () => { this.#stopped ??= new Error("Stopped."); })];
    /** Resolves to the items that are left because it was stopped. */
    this.ended = Promise.all(Array.from({ length: AT_ONCE }, () => this.#work())).then(() => this.queue);
  }

  async #work() {
    while (this.queue.length > 0 && !this.#stopped && !this.signal.aborted) {
      const item = this.queue.shift();
      await this.#decide(item);
      this.#bar.value = this.#good + this.#bad + this.#left;
      this.#text.textContent = `${number(this.#bar.value)} of ${number(this.many)}`;
    }
  }

  async #decide(item) {
    const now = await this.decisions.settled(item);
    if (Object.keys(this.change).some((key) => now[key] !== item[key])) {
      this.#left += 1;
      return;
    }
    const error = await this.decisions.decide(item, this.change, isForAll);
    if (error && isForAll(error)) {
      this.#stopped ??= error;
      this.queue.unshift(item);
    } else if (error) {
      this.#bad += 1;
    } else {
      this.#good += 1;
    }
  }

  outcome(done, things) {
    const text = [this.#stopped?.message, `${count(this.#good, ...things)} ${done}.`,
      this.#left > 0 && `${count(this.#left, ...things)} left as decided meanwhile.`,
      this.#bad > 0 && `${count(this.#bad, ...things)} could not be changed; each says why.`].filter(Boolean).join(" ");
    return this.queue.length === 0 ? el("span", { role: "status" }, text) : el("span.stopped", { role: "alert" }, text);
  }
}
