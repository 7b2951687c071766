// A list of things to decide on, with the mouse or the keyboard.

import { isAbort } from "../lib/client.js";
import { el, fill, uniqueId } from "../lib/dom.js";
import { failure } from "../lib/shell.js";

const TYPED_INTO = "input:not([type=checkbox]):not([type=radio]), select, textarea, dialog";
const STEPS = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };

/**
 * What a row is given to show itself.
 *
 * @typedef {Object} Row
 * @property {any} item
 * @property {boolean} busy Whether a decision is under way.
 * @property {Object<string, any>} kept Whatever should outlive a redraw, such as an open part.
 * @property {(change: object) => Promise<Error|null>} decide
 */

export class Decisions {
  #rows = new Map();
  /** The last decision on each item that one is under way on. */
  #running = new Map();
  #chosen = new Set();
  #options;

  /**
   * @param {{label: string, content: (row: Row, name: string) => Array, isLocked: (item: any) => boolean,
   *   latest: (item: any) => any, send: (item: any, change: object) => Promise<any>,
   *   changed: (before: any, after: any) => void, chosen: () => void,
   *   keys: Object<string, (row: Row) => boolean|void>, signal: AbortSignal}} options
   *   The element of `content` that names the row has the id `name`. `latest` finds an item as it is now. `send`
   *   resolves to the changed item. A key's action that returns `true` goes on to the next row.
   */
  constructor(options) {
    this.#options = options;
    this.element = el("ol.decisions", { "aria-label": options.label });
    document.addEventListener("keydown", (event) => this.#pressed(event), { signal: options.signal });
  }

  /** Shows these items. None is selected. */
  show(items) {
    this.#chosen.clear();
    this.#rows = new Map(items.map((item) => [item.id, this.#made(item)]));
    fill(this.element, [...this.#rows.values()].map((row) => el("li", {}, row.element)));
    for (const row of this.#rows.values()) this.#draw(row);
    this.#stop(this.first);
    this.#options.chosen();
  }

  /** The selected items that can still be decided. */
  get chosen() {
    return [...this.#chosen].map((id) => this.#rows.get(id).item);
  }

  /** The first row, if there is one. */
  get first() {
    return this.element.querySelector("article");
  }

  /** How many items are shown. */
  get many() {
    return this.#rows.size;
  }

  /** How many items could be selected. */
  get open() {
    return [...this.#rows.values()].filter((row) => !this.#options.isLocked(row.item)).length;
  }

  /** Selects all items that can be decided, or none. */
  chooseAll(all) {
    for (const [id, row] of this.#rows) this.#choose(id, all && !this.#options.isLocked(row.item));
    this.#options.chosen();
  }

  /** The item as it is once no decision on it is under way. */
  async settled(item) {
    while (this.#running.has(item.id)) await this.#running.get(item.id);
    return this.#options.latest(item);
  }

  /**
   * Sends a decision, after any other on the same item. Resolves to the refusal, or `null`. The item's row, if it is
   * shown, says what came of it, unless a refusal is shown elsewhere.
   */
  async decide(item, change, isShownElsewhere = () => false) {
    const earlier = this.#running.get(item.id);
    const decided = earlier ? earlier.then(() => this.#decide(item, change, isShownElsewhere))
      : this.#decide(item, change, isShownElsewhere);
    this.#running.set(item.id, decided);
    try {
      return await decided;
    } finally {
      if (this.#running.get(item.id) === decided) this.#running.delete(item.id);
    }
  }

  async #decide(item, change, isShownElsewhere) {
    const { latest, send } = this.#options;
    this.#set(item.id, { busy: true, error: null });
    let [changed, problem] = [null, null];
    try {
      changed = await send(latest(item), change);
    } catch (error) {
      problem = error;
    }
    const shown = problem && !isAbort(problem) && !isShownElsewhere(problem) ? problem : null;
    const before = latest(item);
    this.#set(item.id, { busy: false, error: shown, ...(changed && { item: changed }) });
    if (changed) this.#options.changed(before, changed);
    return problem;
  }

  /** Changes the row of an item, if it is still shown. */
  #set(id, change) {
    const row = this.#rows.get(id);
    if (row) this.#draw(Object.assign(row, change));
  }

  #made(item) {
    const element = el("article.decision", { tabindex: -1, "data-id": item.id,
      onfocusin: () => this.#stop(element) });
    const row = { item, element, busy: this.#running.has(item.id), error: null, kept: {} };
    row.decide = (change) => this.decide(row.item, change);
    return row;
  }

  #draw(row) {
    const { item, element } = row;
    const held = element.contains(document.activeElement) && document.activeElement !== element;
    const act = document.activeElement?.dataset?.act;
    const locked = this.#options.isLocked(item);
    if (locked) this.#chosen.delete(item.id);
    const name = uniqueId("decision");
    const box = el("input", { type: "checkbox", checked: this.#chosen.has(item.id), disabled: locked,
      "data-act": "choose", "aria-label": `Select ${item.name}` });
    box.addEventListener("change", () => {
      this.#choose(item.id, box.checked);
      this.#options.chosen();
    });
    element.setAttribute("aria-busy", String(row.busy));
    element.setAttribute("aria-labelledby", name);
    fill(element, el("div.decision-box", {}, box),
      el("div.decision-body", {}, this.#options.content(row, name), row.error && failure(row.error)));
    if (!held) return;
    element.querySelector(`[data-act="${act}"]`)?.focus();
    if (!element.contains(document.activeElement)) element.focus();
  }

  #choose(id, yes) {
    if (yes) this.#chosen.add(id);
    else this.#chosen.delete(id);
    this.#rows.get(id).element.querySelector("[data-act=choose]").checked = yes;
  }

  /** Makes a row the one that Tab comes to. */
  #stop(element) {
    for (const row of this.#rows.values()) row.element.tabIndex = row.element === element ? 0 : -1;
  }

  #pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(TYPED_INTO)) return;
    const at = document.activeElement?.closest("article.decision");
    const row = at && this.#rows.get(at.dataset.id);
    // Letters act within the list only, so that nobody decides by accident (WCAG 2.1.4).
    if (!row && ![document.body, document.getElementById("main")].includes(document.activeElement)) return;
    if (event.key in STEPS && (row || event.key === "j")) {
      event.preventDefault();
      this.#move(row, STEPS[event.key]);
    } else if (row && event.key === "x" && !this.#options.isLocked(row.item)) {
      this.#choose(row.item.id, !this.#chosen.has(row.item.id));
      this.#options.chosen();
    } else if (row && Object.hasOwn(this.#options.keys, event.key) && !this.#options.isLocked(row.item)) {
      event.preventDefault();
      if (this.#options.keys[event.key](row)) this.#move(row, 1);
    }
  }

  #move(from, step) {
    const rows = [...this.#rows.values()];
    const next = rows[from ? rows.indexOf(from) + step : 0];
    next?.element.focus();
    next?.element.scrollIntoView({ block: "nearest" });
  }
}
