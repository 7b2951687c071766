// The configuration editor: every setting by section, what waits for a restart, and the settings as text.

import { ApiError, isAbort } from "../lib/client.js";
import { debounced, el, fill } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { button, choice, field, tabs } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { Raw } from "./config-raw.js";
import { Setting, named, plainly, prose } from "./config-setting.js";

export const config = (api) => ({
  id: "config",
  title: "Configuration",
  style: "config.css",
  async show(root, at) {
    fill(root, el("p.muted", {}, "Loading the settings …"));
    const options = { signal: at.signal };
    const [values, meta] = await Promise.all([api.config(options), api.configMeta(options)]);
    new Editor(api, at, values, meta).show(root);
  },
});

const SHOWN = [["", "All settings"], ["changed", "Changed"], ["waiting", "Waiting for the restart"]];
const FILTER_MS = 150;

class Editor {
  #api;
  #at;
  #meta;
  #settings;
  #groups = [];
  #result = el("div.config-result", { role: "status", tabindex: -1 });
  #waiting = el("div");
  #found = el("p.muted.config-found", { role: "status" });
  #count = el("strong", { role: "status" });
  #problem = el("p.field-error", { role: "alert" });
  #none = el("div", { hidden: true }, emptiness("No setting fits the filter.",
    button("Show all settings", () => this.#choose(""))));
  #unseen = button("Show it", () => this.#reveal(), { class: "link", hidden: true });
  #bar;
  #query;
  #only;
  #raw;
  #tabs;

  constructor(api, at, values, meta) {
    this.#api = api;
    this.#at = at;
    this.#meta = meta;
    const owner = { changed: () => this.#edited(), withdraw: (setting) => this.#withdraw(setting) };
    this.#settings = meta.fields.map((field) => new Setting(field, valueAt(values, field.path), owner));
    this.#raw = new Raw(api, at, { before: () => this.#read(), applied: (done) => this.#done(done) });
    this.#query = el("input", { type: "search", value: at.params.get("q") ?? "", autocomplete: "off",
      oninput: debounced(FILTER_MS, () => this.#filter()) });
    this.#only = choice(SHOWN, at.params.get("show") ?? "", { onchange: () => this.#filter() });
    this.#bar = el("div.config-bar", { hidden: true, role: "region", "aria-label": "Unsaved changes" },
      el("div", {}, this.#count, " ", this.#unseen, this.#problem),
      el("div.row", {}, button("Revert", () => this.#revert()),
        button("Apply", () => this.#apply(), { class: "primary" })));
  }

  show(root) {
    const chosen = this.#at.params.get("tab") === "raw" ? "raw" : "form";
    this.#tabs = tabs("Ways to edit", [
      { id: "form", title: "Settings", show: (panel) => this.#form(panel) },
      { id: "raw", title: "JSON and TOML", show: (panel) => this.#raw.show(panel) },
    ], chosen);
    const kept = () => this.#keep();
    this.#tabs.firstChild.addEventListener("click", kept);
    this.#tabs.firstChild.addEventListener("keyup", kept);
    fill(root, this.#result, this.#waiting, this.#tabs);
    this.#at.guard(() => this.#raw.isDirty() || this.#dirty().length > 0);
    this.#counted();
    this.#remind();
    this.#groups.find((group) => group.name === this.#at.params.get("section"))?.card.scrollIntoView();
  }

  #form(panel) {
    this.#groups = this.#grouped();
    const parts = this.#groups.map((group) => group.link);
    fill(panel,
      el("div.toolbar", { role: "search" },
        el("div.grow", {}, field("Filter", this.#query)),
        field("Show", this.#only)),
      this.#found,
      el("div.config-columns", {},
        el("nav.config-contents", { "aria-label": "Sections" }, el("ul", {}, parts)),
        el("div.stack", {}, this.#none, this.#groups.map((group) => group.card))),
      this.#bar);
    this.#filter();
  }

  /** One card per section at the top level, with the sections inside it. */
  #grouped() {
    const names = new Set(this.#meta.sections.map((section) => section.name.split(".")[0]));
    return [...names].map((name) => {
      const inside = this.#meta.sections.filter((section) => section.name.split(".")[0] === name);
      const parts = inside.map((section) => this.#part(section, section.name === name ? "h2" : "h3"));
      const card = el("section.card.config-section", { "aria-label": named(name), tabindex: -1 },
        parts.map((part) => part.element));
      const link = el("li", {}, el("a", { href: linkTo("config", { section: name }), onclick: (event) => {
        event.preventDefault();
        card.scrollIntoView();
        card.focus({ preventScroll: true });
      } }, named(name)));
      return { name, card, link, parts };
    });
  }

  #part(section, heading) {
    const settings = this.#settings.filter((setting) => setting.field.section === section.name);
    const element = el("div", {},
      el(heading, {}, named(section.name.split(".").at(-1))),
      section.description && el("p.hint", {}, prose(section.description)),
      settings.map((setting) => setting.element));
    return { element, settings };
  }

  #filter() {
    const words = this.#query.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const setting of this.#settings) setting.element.hidden = !setting.fits(words, this.#only.value);
    const isShown = (setting) => !setting.element.hidden;
    for (const group of this.#groups) {
      const some = group.parts.map((part) => part.settings.some(isShown));
      // What a group has in common is shown with any of its sections.
      group.parts.forEach((part, at) => { part.element.hidden = !(some[at] || (at === 0 && some.includes(true))); });
      group.card.hidden = group.link.hidden = !some.includes(true);
    }
    const shown = this.#settings.filter(isShown).length;
    const all = count(this.#settings.length, "setting");
    this.#found.textContent = shown === this.#settings.length ? all : `${shown} of ${all}`;
    this.#none.hidden = shown > 0;
    this.#counted();
    this.#keep();
  }

  /** Shows the settings of a kind, whatever the filter was. */
  #choose(only) {
    this.#tabs.choose("form");
    this.#query.value = "";
    this.#only.value = only;
    this.#filter();
  }

  /** Shows the edited settings that the filter hides. */
  #reveal() {
    this.#choose("changed");
    if (!this.#toFirstError()) this.#dirty()[0]?.control.focus();
  }

  #keep() {
    const raw = this.#tabs?.querySelector('[role="tab"][aria-selected="true"]')?.id.endsWith("raw");
    this.#at.keep({ q: this.#query.value, show: this.#only.value, tab: raw ? "raw" : "" });
  }

  #dirty() {
    return this.#settings.filter((setting) => setting.edit !== undefined);
  }

  /** What came of the changes before says nothing about these. */
  #edited() {
    this.#counted();
    if (!this.#bar.hidden && this.#result.firstChild) fill(this.#result);
  }

  #counted() {
    const changed = this.#dirty().length;
    this.#bar.hidden = changed === 0;
    this.#count.textContent = changed === 0 ? "" : `${count(changed, "change")} not applied`;
    const hidden = this.#dirty().filter((setting) => setting.element.hidden).length;
    this.#unseen.hidden = hidden === 0;
    this.#unseen.textContent = changed === 1 ? "Show it" : "Show them";
    if (changed === 0) this.#problem.textContent = "";
  }

  #revert() {
    this.#dirty().forEach((setting) => setting.revert());
    this.#settings.forEach((setting) => setting.fail(""));
    this.#counted();
    this.#say(el("div.notice", {}, "The changes were dropped."));
  }

  async #apply() {
    const changed = this.#dirty();
    this.#settings.forEach((setting) => setting.fail(setting.edit === undefined ? "" : setting.problem()));
    this.#problem.textContent = "";
    if (this.#toFirstError()) return;
    const changes = Object.fromEntries(changed.map((setting) => [setting.field.path, setting.edit]));
    try {
      const done = await this.#api.changeConfig(changes, { signal: this.#at.signal });
      changed.forEach((setting) => setting.accepted(changes[setting.field.path]));
      await this.#done(done);
    } catch (error) {
      this.#refused(error);
    }
  }

  /** Shows each error at its setting, and the others at the buttons. */
  #refused(error) {
    if (isAbort(error)) return;
    const elsewhere = [];
    const fields = error instanceof ApiError ? error.fields : [];
    for (const { path, message } of fields) {
      const setting = this.#settings.find((known) => known.field.path === path);
      if (setting) setting.fail(message);
      else elsewhere.push(path ? `${path}: ${message}` : message);
    }
    if (fields.length === 0) elsewhere.push(error.message);
    const refused = this.#settings.filter((setting) => setting.failed).length;
    const there = refused > 0 && `${count(refused, "setting is", "settings are")} refused; each says why.`;
    this.#problem.textContent = ["Nothing was changed.", there, ...elsewhere].filter(Boolean).join(" ");
    this.#toFirstError();
  }

  /** Leads to the first setting with an error, if there is one. */
  #toFirstError() {
    const first = this.#settings.find((setting) => setting.failed);
    if (!first) return false;
    if (first.element.hidden) this.#choose("");
    first.control.focus();
    first.element.scrollIntoView({ block: "center" });
    return true;
  }

  async #withdraw(setting) {
    try {
      const done = await this.#api.withdrawConfig(setting.field.path, { signal: this.#at.signal });
      setting.fail("");
      await this.#done(done, () => [el("p", {}, "Taken back. It keeps its value: ", paths(done.applied), ".")]);
    } catch (error) {
      if (!isAbort(error)) this.#refusedWithdrawal(setting, error);
    }
  }

  #refusedWithdrawal(setting, error) {
    const needed = (error.fields ?? []).map(({ path, message }) => `${path}: ${plainly(message)}`);
    const text = needed.length > 0 ? `This can't be taken back alone. ${needed.join("; ")}` : error.message;
    setting.fail(text);
    setting.control.focus();
  }

  /** After a change: shows the new state and tells what came of it. */
  async #done(done, told = outcome) {
    try {
      const moved = await this.#refresh();
      this.#say(el("div.notice.good", {}, told(done, moved)));
    } catch (error) {
      if (isAbort(error)) return;
      const text = `The change was made, but the settings could not be read again. ${error.message}`;
      this.#say(failure(new Error(text), () => this.#done(done, told)));
    }
  }

  /** Reads the state again, also into the texts. Resolves to the paths of the settings that may be different. */
  async #refresh() {
    const { values, moved } = await this.#read();
    await this.#raw.refresh(values);
    return moved;
  }

  async #read() {
    const options = { signal: this.#at.signal };
    const [values, meta] = await Promise.all([this.#api.config(options), this.#api.configMeta(options)]);
    const fields = new Map(meta.fields.map((field) => [field.path, field]));
    const moved = this.#settings.filter((setting) => {
      const { path } = setting.field;
      return setting.update(fields.get(path) ?? setting.field, valueAt(values, path));
    });
    this.#counted();
    this.#remind();
    return { values, moved: new Set(moved.map((setting) => setting.field.path)) };
  }

  /** Reminds of what waits for the restart. */
  #remind() {
    const waiting = this.#settings.filter((setting) => setting.field.pending !== undefined).length;
    fill(this.#waiting, waiting > 0 && el("div.notice.warn.spread.config-waiting", {},
      el("span", {}, `${count(waiting, "change waits", "changes wait")} for a restart of the service.`),
      button(waiting === 1 ? "Show it" : "Show them", () => this.#choose("waiting"))));
  }

  #say(notice) {
    fill(this.#result, notice);
    this.#result.focus({ preventScroll: true });
    this.#result.scrollIntoView({ block: "nearest" });
  }
}

/** What came of a change. A text repeats much that was so before. */
function outcome(done, moved) {
  const isNews = (path) => moved.has(path);
  const applied = done.applied.filter(isNews);
  const waiting = done.pending_restart.filter(isNews);
  return [
    applied.length > 0 && el("p", {}, "In effect: ", paths(applied), "."),
    waiting.length > 0 && el("p", {}, "Waits for the restart: ", paths(waiting), "."),
    applied.length + waiting.length === 0 && el("p", {}, "Nothing is different from before."),
    applied.length > 0 && el("p.hint", {}, "What is in effect lasts until the service stops. To keep it, download ",
      el("code", {}, "local.toml"), " under “JSON and TOML” and start the service with it."),
  ];
}

/** The value at a dotted path. */
function valueAt(tree, path) {
  return path.split(".").reduce((at, key) => at?.[key], tree);
}

function paths(all) {
  return all.flatMap((path, at) => [at > 0 && ", ", el("code", {}, path)]);
}
