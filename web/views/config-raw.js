// The settings as JSON and as TOML: read, edit, apply, download.

import { ApiError, isAbort } from "../lib/client.js";
import { el, fill, uniqueId } from "../lib/dom.js";
import { ask, button, download, tabs } from "../lib/parts.js";
import { INEXACT, plainly } from "./config-setting.js";

const ABOUT_JSON = "The settings in effect. Only what you change is sent; a secret shown as *** stays as it is.";
const ABOUT_TOML = "A configuration file: the settings in effect and those that wait for the restart, without secrets. "
  + "Keep it as local.toml and start the service with --config local.toml.";

/** Most lines of a text that a question shows. */
const LINES = 12;

export class Raw {
  #texts;

  /**
   * `before` reads the state that a change as a whole starts from. `applied` is told what came of each change, and asks
   * for a refresh itself.
   */
  constructor(api, at, { before, applied }) {
    const options = () => ({ signal: at.signal });
    this.#texts = [
      new Text({
        id: "json", title: "JSON", about: ABOUT_JSON, file: "settings.json", type: "application/json", at, applied,
        load: async (values) => `${JSON.stringify(values ?? await api.config(options()), null, 2)}\n`,
        apply: (text, loaded) => api.changeConfig(changes(JSON.parse(loaded), parsed(text)), options()),
      }),
      new Text({
        id: "toml", title: "TOML", about: ABOUT_TOML, file: "local.toml", type: "application/toml", at, applied,
        load: () => api.configText(options()), before,
        apply: (text) => api.changeConfigText(text, options()),
      }),
    ];
  }

  isDirty() {
    return this.#texts.some((text) => text.isDirty());
  }

  show(panel) {
    fill(panel, tabs("Formats", this.#texts.map((text) => (
      { id: text.of.id, title: text.of.title, show: (inner) => text.show(inner) }))));
  }

  /** Reads again what is shown, unless it was edited. `values` are the settings in effect. */
  async refresh(values) {
    for (const text of this.#texts) await text.refresh(values);
  }
}

class Text {
  #area;
  #problem = el("div", { id: uniqueId("problem"), role: "alert" });
  #loaded = null;

  constructor(of) {
    this.of = of;
    const about = uniqueId("about");
    this.#area = el("textarea.mono.config-text", {
      "aria-label": `Settings as ${of.title}`, "aria-describedby": `${this.#problem.id} ${about}`, spellcheck: "false",
      autocapitalize: "off", autocomplete: "off", wrap: "off", rows: 24, oninput: () => this.#fail([]),
    });
    this.about = el("p.hint", { id: about }, of.about);
  }

  isDirty() {
    return this.#loaded !== null && this.#area.value !== this.#loaded;
  }

  show(panel) {
    const { file, type } = this.of;
    fill(panel, this.about, this.#problem, this.#area, el("div.row.config-actions", {},
      button("Apply", () => this.#apply(), { class: "primary" }),
      button("Load the current settings", () => this.#load()),
      button(`Download ${file}`, () => download(file, this.#area.value, type))));
    return this.#load();
  }

  async refresh(values) {
    if (this.#loaded !== null && !this.isDirty()) await this.#load(values, true);
  }

  async #load(values, keepsEdits = false) {
    try {
      const before = this.#area.value;
      const text = await this.of.load(values);
      if (keepsEdits && this.#area.value !== before) return;
      this.#area.value = text;
      this.#loaded = this.#area.value;
      this.#fail([]);
    } catch (error) {
      if (!isAbort(error)) this.#fail([error.message]);
    }
  }

  async #apply() {
    if (this.#loaded === null) return this.#load();
    const sent = this.#area.value;
    try {
      if (this.of.before && !(await this.#overwrites())) return;
      const done = await this.of.apply(sent, this.#loaded);
      this.#loaded = sent;
      this.#fail([]);
      await this.of.applied(done);
    } catch (error) {
      if (!isAbort(error)) this.#refused(error);
    }
  }

  /** Whether to apply all of the text, though some settings may have been changed since it was loaded. */
  async #overwrites() {
    await this.of.before();
    const now = (await this.of.load()).split(/\r?\n/);
    const known = new Set(this.#loaded.split("\n"));
    const fresh = now.filter((line) => !known.has(line));
    if (fresh.length === 0) return true;
    const answer = await ask("The settings were changed meanwhile", [
      el("p", {}, "Since this text was loaded, these lines changed elsewhere. Applying it sets all of them to what the "
        + "text says."),
      el("pre.pre", {}, fresh.slice(0, LINES).join("\n"), fresh.length > LINES && "\n…"),
    ], [["", "Cancel"], ["apply", "Apply the text", "primary"]], this.of.at.signal);
    return answer === "apply";
  }

  #refused(error) {
    const fields = error instanceof ApiError ? error.fields : [];
    // A broken text is named by its line, so its offset says nothing more.
    const lines = fields.map(({ path, message }) => (/^\d*$/.test(path) ? message : `${path}: ${plainly(message)}`));
    this.#fail(["Nothing was changed.", ...(lines.length > 0 ? lines : [error.message])]);
    this.#area.focus();
    if (fields.length === 1 && /^\d+$/.test(fields[0].path)) this.#show(Number(fields[0].path));
  }

  /** Puts the caret at a character and its line into sight. */
  #show(offset) {
    // The field counts in UTF-16 units.
    const before = [...this.#area.value].slice(0, offset).join("");
    this.#area.setSelectionRange(before.length, before.length);
    const above = before.split("\n").length - 4;
    this.#area.scrollTop = above * parseFloat(getComputedStyle(this.#area).lineHeight);
  }

  #fail(messages) {
    if (messages.length > 0) this.#area.setAttribute("aria-invalid", "true");
    else this.#area.removeAttribute("aria-invalid");
    fill(this.#problem, messages.length > 0 && el("div.notice.bad", {},
      messages.map((message) => el("p", {}, message))));
  }
}

function parsed(text) {
  try {
    const value = JSON.parse(text);
    if (isTree(value)) return value;
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}`);
  }
  throw new Error("The settings must be a JSON object.");
}

const isTree = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** What differs between two trees, by dotted path. */
function changes(before, after, prefix = "") {
  return Object.entries(after).reduce((all, [key, value]) => {
    const path = prefix + key;
    if (isTree(value) && isTree(before?.[key])) return { ...all, ...changes(before[key], value, `${path}.`) };
    if (JSON.stringify(value) === JSON.stringify(before?.[key])) return all;
    if (Number.isInteger(value) && !Number.isSafeInteger(value)) {
      throw new Error(`${path}: JSON can't hold this number exactly here. ${INEXACT}`);
    }
    return { ...all, [path]: value };
  }, {});
}
