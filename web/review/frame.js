// The frame of a review: what the batch is, filters by state, the selection, the list and its pages.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { button } from "../lib/parts.js";
import { failure } from "../lib/shell.js";
import { Decisions } from "./decisions.js";
import { manyBar } from "./many.js";
import { isLocked, keepingFocus, keyHelp, levelOf, stateOf } from "./row.js";

/** No answer, or one of a proxy that has none. */
const UNKNOWN = new Set([0, 502, 504]);
const KEYS = { accepted: "a", rejected: "r", uncertain: "u" };

const unasked = async (items, change) => ({ items, change });

export class Frame {
  /** Of the head: what it is called, its buttons, and the rest. */
  title = el("div.row");
  actions = el("div.row");
  about = el("div.batch-about");
  #chips = new Map();
  #shown = el("span", { role: "status" });
  #pager = el("div.row");
  #help;
  #list = null;
  /** Tells screen readers what was decided. */
  #said = el("span.unseen", { role: "status" });

  /**
   * @param {import("../lib/shell.js").At} at
   * @param {{things: [string, string], verdicts: [string, string][], keys: [string, string, Function][], more?: Node[],
   *   confirm?: Function, content: Function, send: Function, changed: Function}} of `keys` are further keys of the
   *   list, with what they do. The others are for `Decisions` and `manyBar`.
   */
  constructor(at, { things, verdicts, keys, more, confirm = unasked, ...of }) {
    const known = verdicts.map(([status, text]) =>
      [KEYS[status], text.toLowerCase(), (row) => { row.decide({ status }); return true; }]);
    const all = [...known, ...keys];
    this.#help = keyHelp(all.map(([key, does]) => [key, does]));
    this.head = el("section.card.batch-head", { "aria-label": "The batch" },
      el("div.spread", {}, this.title, this.actions), this.about);
    this.result = el("div", { role: "status", tabindex: -1 });
    this.filters = el("div.chips", { role: "group", "aria-label": "State" });
    const changed = (before, item) => {
      if (!this.many.isRunning()) this.#said.textContent = `${item.name}: ${stateOf(item)}, ${levelOf(item)}`;
      of.changed(before, item);
    };
    this.decisions = new Decisions({ ...of, changed, label: things[1], signal: at.signal, isLocked,
      chosen: () => this.many?.update(), keys: Object.fromEntries(all.map(([key, , action]) => [key, action])) });
    this.many = manyBar(this.decisions, { things, more, shown: this.#shown, confirm, at,
      verdicts: verdicts.filter(([status]) => status !== "uncertain") });
  }

  /** The list with its tools. */
  list(title, ...tools) {
    this.#list = el("div.stack", {}, el("h2", {}, title), el("div.toolbar", {}, this.filters, tools), this.#help,
      this.#said, this.many.element, this.decisions.element, this.#pager);
    return this.#list;
  }

  /** Shows these items, with what to say of them and `[text, action]` for each page that can be turned to. */
  show(items, text, pages) {
    fill(this.#said);
    fill(this.#shown, items.length === 0 ? "None fits the filter." : text);
    fill(this.#pager, pages.filter(Boolean).map(([to, action]) => this.button(to, async () => {
      await action();
      this.many.element.scrollIntoView({ block: "nearest" });
    })));
    this.many.tidy();
    this.decisions.show(items);
  }

  /** A button. If its action takes away what has the focus, that goes to what came of it. */
  button(text, action, attributes) {
    return button(text, () => this.keep(action), attributes);
  }

  keep(action) {
    return keepingFocus(action, () =>
      (this.result.hasChildNodes() ? this.result : this.decisions.first ?? this.#chips.get("")));
  }

  /** Offers these states, `[state, count]`, except those that nothing is in. The chips stay, as they may be in use. */
  offer(states, all, chosen, choose) {
    for (const [state, many] of [["", all], ...states]) {
      if (!this.#chips.has(state)) {
        const made = el("button.chip", { type: "button", onclick: () => choose(state) });
        this.#chips.set(state, made);
        this.filters.append(made);
      }
      const chip = this.#chips.get(state);
      const isVain = state !== "" && many === 0 && state !== chosen;
      if (isVain && document.activeElement === chip) this.#chips.get("").focus();
      chip.hidden = isVain;
      chip.textContent = `${state || "all"} ${number(many)}`;
      chip.setAttribute("aria-pressed", String(state === chosen));
    }
  }

  /**
   * Commits, while nothing else can be done here, and leaves the focus on what is said. Resolves to what `send` does,
   * or to `null` after a failure.
   */
  async commit(many, send, again) {
    fill(this.result, el("p.muted", {}, `Committing ${many} …`));
    this.result.focus();
    const closed = [this.actions, this.#list].filter(Boolean);
    for (const part of closed) part.inert = true;
    try {
      return await send();
    } catch (error) {
      if (UNKNOWN.has(error.status)) fill(this.result, this.#lost(again));
      else this.failed(error);
      return null;
    } finally {
      for (const part of closed) part.inert = false;
    }
  }

  #lost(again) {
    return el("div.notice.bad", {}, el("p", {}, "The answer was lost. It may be committed or not: load again."),
      this.button("Load again", again));
  }

  /** Says what a commit did, besides what went wrong afterwards. */
  committed(said) {
    const problem = this.result.querySelector(".notice.bad");
    fill(this.result, said, problem);
    this.result.focus();
  }

  /** Says what went wrong. */
  failed(error, again) {
    if (isAbort(error)) return;
    const shown = failure(error, again && (() => this.keep(again)));
    if (error.body?.details) shown.append(el("p", {}, error.body.details));
    fill(this.result, shown);
  }
}
