// One setting of the configuration editor: its control, what is known about it, and its error.

import { el, fill, uniqueId } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { badge, button, choice } from "../lib/parts.js";

const NAMES = { "": "General", web: "Web server", llm: "Language model", pii: "Personal data" };
const WORDS = { api: "API", url: "URL", ms: "(ms)", mib: "(MiB)", k: "k", http: "HTTP" };

/** What can be done about an integer above 2⁵³. */
export const INEXACT = `Above ${number(Number.MAX_SAFE_INTEGER)} use the TOML text.`;

/** A key or a section as people say it: `api_key` is `API key`. */
export function named(key) {
  const words = NAMES[key] ?? key.split("_").map((word) => WORDS[word] ?? word).join(" ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A text with what stands in backticks as code. */
export function prose(text) {
  return text.split("`").map((part, at) => (at % 2 === 1 ? el("code", {}, part) : part));
}

/** Whether two values are the same. */
const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** An error without the word that the API puts before each broken rule. */
export const plainly = (message) => message.replace(/^Value error, /, "");

export class Setting {
  #value;
  #owner;
  #removing = false;
  /** Whether it was edited again while the edit before was applied. */
  #isRetyped = false;
  #error = el("p.field-error", { id: uniqueId("error"), hidden: true });
  #notes = el("div.setting-notes", { id: uniqueId("notes") });
  #reset;

  /**
   * @param {object} field What `GET /api/config/meta` tells about it.
   * @param {unknown} value The value in effect.
   * @param {{changed: () => void, withdraw: (setting: Setting) => Promise<void>}} owner
   */
  constructor(field, value, owner) {
    this.field = field;
    this.#value = value;
    this.#owner = owner;
    this.control = this.#made();
    this.control.addEventListener("input", () => this.#edited());
    this.#reset = this.#isSecret
      ? button("Remove", () => this.#remove(), { class: "link" })
      : button("Use the default", () => { this.#write(this.field.default); this.#edited(); }, { class: "link" });
    this.#reset.setAttribute("aria-describedby", this.#labelled());
    this.element = this.#row();
    this.revert();
  }

  get #isSecret() {
    return this.field.type === "secret";
  }

  /** What the setting will be if nothing is edited; a secret is never known. */
  get #base() {
    return this.#isSecret ? undefined : this.field.pending ?? this.#value;
  }

  /** The new value, or `undefined`. */
  get edit() {
    const now = this.#read();
    return isSame(now, this.#base) ? undefined : now;
  }

  get failed() {
    return !this.#error.hidden;
  }

  /** Why the new value can't be sent, or `""`. */
  problem() {
    const { edit } = this;
    if (Number.isNaN(edit)) return "Enter a number.";
    const isInexact = Number.isInteger(edit) && !Number.isSafeInteger(edit);
    return isInexact ? `A page can't send this number exactly. ${INEXACT}` : "";
  }

  /** Shows an error at the setting; `""` removes it. */
  fail(message) {
    const text = plainly(message);
    this.#error.textContent = text.charAt(0).toUpperCase() + text.slice(1);
    this.#error.hidden = text === "";
    if (text) this.control.setAttribute("aria-invalid", "true");
    else this.control.removeAttribute("aria-invalid");
    this.control.setAttribute("aria-describedby", text ? `${this.#error.id} ${this.#notes.id}` : this.#notes.id);
  }

  revert() {
    this.#removing = false;
    this.#write(this.#isSecret ? "" : this.#base);
    this.fail("");
    this.#refresh();
  }

  /** The edit was taken over, unless there is another one by now. A secret is no longer needed here. */
  accepted(sent) {
    this.#isRetyped = !isSame(this.edit, sent);
    if (this.#isSecret && !this.#isRetyped) this.revert();
  }

  /** Takes over a new state; an edit stays. Whether it is different: of a secret that is set, nobody can tell. */
  update(field, value) {
    const edit = this.edit;
    const before = JSON.stringify([this.#value, this.field.pending, this.field.is_set]);
    const isDifferent = before !== JSON.stringify([value, field.pending, field.is_set]);
    this.field = field;
    this.#value = value;
    if (edit === undefined && !this.#isRetyped) this.#write(this.#isSecret ? "" : this.#base);
    this.#isRetyped = false;
    this.#refresh();
    return isDifferent || field.is_set || (this.#isSecret && field.pending !== undefined);
  }

  /** Whether it has all these words and belongs to what is to be shown. */
  fits(words, only) {
    const { path, description, pending } = this.field;
    const text = `${path} ${named(path.split(".").at(-1))} ${description}`.toLowerCase();
    const isWaiting = pending !== undefined;
    const isChanged = isWaiting || this.edit !== undefined
      || (this.#isSecret ? this.field.is_set : !isSame(this.#value, this.field.default));
    const belongs = { changed: isChanged, waiting: isWaiting }[only] ?? true;
    return belongs && words.every((word) => text.includes(word));
  }

  #made() {
    const { type, choices, minimum, maximum } = this.field;
    const attributes = { id: uniqueId("setting"), autocomplete: "off", spellcheck: "false", autocapitalize: "off" };
    const within = (bound) => (Number.isSafeInteger(bound) || type === "number" ? bound : null);
    if (type === "boolean") return el("input.switch", { type: "checkbox", role: "switch", ...attributes });
    if (choices) return choice(choices, "", attributes);
    if (type === "secret") return el("input", { type: "password", ...attributes, autocomplete: "new-password" });
    if (type === "text" || type === "list") return el("input", { type: "text", ...attributes });
    const step = type === "integer" ? 1 : "any";
    return el("input", { type: "number", step, min: within(minimum), max: within(maximum), ...attributes });
  }

  #row() {
    const { path, description, restart } = this.field;
    return el("div.setting", {},
      el("div", {},
        el("div.row", {},
          el("label", { for: this.control.id, id: this.#labelled() }, named(path.split(".").at(-1))),
          restart && badge("restart", "warn", "A change takes effect at the next start")),
        el("code.setting-path", {}, path),
        description && el("p.hint", {}, prose(description))),
      el("div.setting-edit", {}, this.control, this.#error, this.#notes, this.#reset));
  }

  #labelled() {
    return `${this.control.id}-label`;
  }

  #read() {
    const { control, field } = this;
    if (field.type === "boolean") return control.checked;
    if (field.type === "integer" || field.type === "number") return control.value === "" ? NaN : Number(control.value);
    if (this.#isSecret && control.value === "") return this.#removing ? "" : undefined;
    if (field.type === "list") return control.value.split(",").map((entry) => entry.trim()).filter(Boolean);
    return control.value;
  }

  #write(value) {
    if (this.field.type === "boolean") this.control.checked = value;
    else this.control.value = written(value);
  }

  #remove() {
    this.#removing = !this.#removing;
    this.control.value = "";
    this.#edited();
  }

  #edited() {
    if (this.control.value !== "") this.#removing = false;
    this.fail("");
    this.#refresh();
    this.#owner.changed();
  }

  #refresh() {
    const { field, control } = this;
    const isFixed = Boolean(field.restart && field.set_by);
    control.disabled = isFixed;
    if (this.#isSecret) {
      const state = field.is_set ? `Set${isFixed ? "" : ". Type to replace it"}` : "Not set";
      control.placeholder = this.#removing ? "Will be removed" : state;
      this.#reset.textContent = this.#removing ? "Keep it" : "Remove";
      this.#reset.hidden = isFixed || !(field.is_set || field.pending !== undefined);
    } else {
      this.#reset.hidden = isFixed || isSame(this.#read(), field.default);
    }
    this.element.classList.toggle("is-edited", this.edit !== undefined);
    this.#noted();
  }

  /** Rebuilds the notes only when they change, as one of them has a button that may be in use. */
  #noted() {
    const { field } = this;
    const known = JSON.stringify([field, this.#value]);
    if (this.#notes.dataset.known === known) return;
    this.#notes.dataset.known = known;
    fill(this.#notes, this.#range(), this.#waits(), this.#override());
  }

  #range() {
    if (this.#isSecret) return null;
    const { minimum, maximum, type } = this.field;
    const isNumber = minimum !== undefined && (type === "integer" || type === "number");
    const shown = (bound) => (Number.isInteger(bound) ? number(bound) : String(bound));
    const most = Number.isSafeInteger(maximum) || type === "number" ? ` to ${shown(maximum)}` : " or more";
    return el("p.hint", {}, isNumber && `${shown(minimum)}${most}. `, type === "list" && "With commas between. ",
      "Default: ", standard(this.field.default));
  }

  #waits() {
    const { pending } = this.field;
    if (pending === undefined) return null;
    const text = this.#isSecret
      ? ["A new value waits for the restart. "]
      : ["Waits for the restart: ", standard(pending), ". In effect: ", standard(this.#value), ". "];
    return el("p.setting-waits", {}, text,
      button("Withdraw", () => this.#owner.withdraw(this), { class: "link", "aria-describedby": this.#labelled() }));
  }

  #override() {
    const { set_by: by, restart } = this.field;
    if (!by) return null;
    const text = restart ? " sets it; change it there." : " sets it at each start: a change here lasts until then.";
    return el("p.hint", {}, badge("overridden", "accent"), " ", el("code", {}, by), text);
  }
}

/** A value as it is typed. */
const written = (value) => (Array.isArray(value) ? value.join(", ") : String(value));

/** A value in a sentence. */
function standard(value) {
  if (typeof value === "boolean") return value ? "on" : "off";
  const text = written(value);
  return text === "" ? "empty" : el("code", {}, text);
}
