// The frame of a review: what the batch is, filters by state, the selection, the list and its pages.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { button } from "../lib/parts.js";
import { failure } from "../lib/shell.js";
import { Decisions } from "./decisions.js";
import { manyBar } from "./many.js";
import { isLocked, keyHelp, levelOf, stateOf } from "./row.js";

const KEYS = { accepted: "a", rejected: "r", uncertain: "u" };

export class Frame {
  #shown = el("span", { role: "status" });
  #pager = el("div.row");
  #help;
  /** Tells screen readers what was decided. */
  #said = el("span.unseen", { role: "status" });

  /**
   * @param {import("../lib/shell.js").At} at
   * @param {{things: [string, string], verdicts: [string, string][], keys: [string, string, Function][], more?: Node[],
   *   level?: (level: string) => Promise<boolean>, content: Function, send: Function, changed: Function}} of `keys` are
   *   further keys of the list, with what they do. The others are for `Decisions` and `manyBar`.
   */
  constructor(at, { things, verdicts, keys, more, level = async () => true, ...of }) {
    const known = verdicts.map(([status, text]) =>
      [KEYS[status], text.toLowerCase(), (row) => { row.decide({ status }); return true; }]);
    const all = [...known, ...keys];
    this.#help = keyHelp(all.map(([key, does]) => [key, does]));
    this.head = el("section.card.batch-head", { "aria-label": "The batch" });
    this.result = el("div", { role: "status" });
    this.filters = el("div.chips", { role: "group", "aria-label": "State" });
    const changed = (before, item) => {
      this.#said.textContent = `${item.name}: ${stateOf(item)}, ${levelOf(item)}`;
      of.changed(before, item);
    };
    this.decisions = new Decisions({ ...of, changed, label: things[1], signal: at.signal, isLocked,
      chosen: () => this.many?.update(), keys: Object.fromEntries(all.map(([key, , action]) => [key, action])) });
    this.many = manyBar(this.decisions, { things, more, shown: this.#shown, level, at,
      verdicts: verdicts.filter(([status]) => status !== "uncertain") });
  }

  /** The list with its tools. */
  list(title, ...tools) {
    return el("div.stack", {}, el("h2", {}, title), el("div.toolbar", {}, this.filters, tools), this.#help, this.#said,
      this.many.element, this.decisions.element, this.#pager);
  }

  /** Shows these items, with what to say of them and `[text, action]` for each page that can be turned to. */
  show(items, text, pages) {
    fill(this.#shown, items.length === 0 ? "None fits the filter." : text);
    fill(this.#pager, pages.filter(Boolean).map(([to, action]) => button(to, async () => {
      await action();
      this.many.element.scrollIntoView({ block: "nearest" });
    })));
    this.many.tidy();
    this.decisions.show(items);
  }

  /** Offers these states, `[state, count]`, except those that nothing is in. */
  offer(states, all, chosen, choose) {
    const offered = states.filter(([state, many]) => many > 0 || state === chosen);
    fill(this.filters, [["", all], ...offered].map(([state, many]) => el("button.chip", { type: "button",
      "aria-pressed": String(state === chosen), onclick: () => choose(state) }, `${state || "all"} ${number(many)}`)));
  }

  /** Says what went wrong. */
  failed(error, again) {
    if (isAbort(error)) return;
    const shown = failure(error, again);
    if (error.body?.details) shown.append(el("p", {}, error.body.details));
    fill(this.result, shown);
  }
}
