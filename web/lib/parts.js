// Parts that several views are built of.

import { el, fill, uniqueId } from "./dom.js";
import { ago, moment } from "./format.js";

/** A labelled field. `hint` explains it. */
export function field(label, control, hint) {
  control.id ||= uniqueId("field");
  const explained = hint && el("span.hint", { id: uniqueId("hint") }, hint);
  if (explained) control.setAttribute("aria-describedby", explained.id);
  return el("div.field", {}, el("label", { for: control.id }, label), control, explained);
}

/** A select with these choices: texts, or `[value, label]`. */
export function choice(choices, value, attributes = {}) {
  const options = choices.map((entry) => {
    const [of, label] = Array.isArray(entry) ? entry : [entry, entry];
    return el("option", { value: of, selected: String(of) === String(value) }, label);
  });
  return el("select", attributes, options);
}

/** A point in time: relative, with the exact time as its title. */
export function when(time) {
  // A leap second is a time that browsers don't know.
  if (Number.isNaN(new Date(time).getTime())) return el("span", {}, String(time));
  return el("time", { datetime: time, title: `${moment(time)} (${new Date(time).toISOString()})` }, ago(time));
}

/** A small label. `kind` chooses its colour: `tlp-red`, `tier-a`, `type-actor`, `good`, `bad`. */
export function badge(text, kind = "", title) {
  return el("span.badge", { class: kind, title }, text);
}

/** Texts in a row. Each is apart from the others, so that a change of the writing direction in it ends with it. */
export function joined(texts) {
  return texts.map((text, at) => [at > 0 && ", ", el("bdi.apart", {}, text)]);
}

/** The badge of a marking. */
export function tlp(level) {
  const name = String(level).replace(/^TLP:/, "");
  return badge(`TLP:${name}`, `tlp-${name.toLowerCase().replace("+", "-")}`);
}

/** Names with their values. */
export function facts(entries) {
  return el("dl.facts", {}, entries.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** A button. Its action may be asynchronous: meanwhile the button is disabled. */
export function button(text, action, attributes = {}) {
  const made = el("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", async (event) => {
    if (made.getAttribute("aria-disabled") === "true") return;
    made.setAttribute("aria-disabled", "true");
    try {
      await action(event);
    } finally {
      made.removeAttribute("aria-disabled");
    }
  });
  return made;
}

/** Offers a text as a file. */
export function download(name, text, type = "application/json") {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = el("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/**
 * Tabs with their panels (ARIA Authoring Practices, Tabs pattern). A panel is filled when it is first shown.
 *
 * @param {string} label
 * @param {{id: string, title: string, show: (panel: HTMLElement) => void}[]} tabs
 */
export function tabs(label, tabs, chosen = tabs[0].id) {
  const prefix = uniqueId("tab");
  const list = el("div.tabs", { role: "tablist", "aria-label": label });
  const panels = el("div");
  const choose = (id, focus = false) => {
    for (const { tab, panel, of } of entries) {
      const active = of.id === id;
      tab.setAttribute("aria-selected", String(active));
      tab.tabIndex = active ? 0 : -1;
      panel.hidden = !active;
      if (active && !panel.dataset.filled) { panel.dataset.filled = "yes"; of.show(panel); }
      if (active && focus) tab.focus();
    }
  };
  const entries = tabs.map((of) => {
    const tab = el("button", { type: "button", role: "tab", id: `${prefix}-${of.id}`, "aria-controls": `${prefix}-${of.id}-panel`,
      onclick: () => choose(of.id) }, of.title);
    const panel = el("div", { role: "tabpanel", id: `${prefix}-${of.id}-panel`, "aria-labelledby": tab.id, tabindex: 0 });
    return { tab, panel, of };
  });
  list.addEventListener("keydown", (event) => {
    const at = entries.findIndex(({ tab }) => tab === document.activeElement);
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1 + entries.length, Home: 0, End: entries.length - 1 };
    if (at < 0 || !(event.key in steps)) return;
    event.preventDefault();
    choose(entries[steps[event.key] % entries.length].of.id, true);
  });
  fill(list, entries.map(({ tab }) => tab));
  fill(panels, entries.map(({ panel }) => panel));
  choose(chosen);
  return Object.assign(el("div", {}, list, panels), { choose });
}

/**
 * A table.
 *
 * @param {string} caption Read to screen readers.
 * @param {{key: string, title: string, sortable?: boolean, number?: boolean, cell: (row: any) => any}[]} columns
 * @param {any[]} rows
 * @param {{sorted?: {key: string, down: boolean}, sort?: (key: string) => void}} [order]
 */
export function table(caption, columns, rows, { sorted, sort } = {}) {
  const head = columns.map((column) => {
    const active = sorted?.key === column.key;
    const direction = active ? (sorted.down ? "descending" : "ascending") : column.sortable && "none";
    const arrow = active ? (sorted.down ? " ↓" : " ↑") : "";
    const title = column.sortable
      ? el("button.plain", { type: "button", onclick: () => sort(column.key) }, column.title,
        el("span", { "aria-hidden": "true" }, arrow))
      : column.title;
    return el("th", { scope: "col", class: column.number ? "number" : "", "aria-sort": direction }, title);
  });
  const body = rows.map((row) => el("tr", {}, columns.map((column) =>
    el("td", { class: column.number ? "number" : "", "data-title": column.title }, column.cell(row)))));
  return el("div.table-frame", { tabindex: 0, role: "region", "aria-label": caption },
    el("table", {}, el("caption.unseen", {}, caption), el("thead", {}, el("tr", {}, head)), el("tbody", {}, body)));
}

/**
 * Asks a question in a dialog. Resolves to the value of the pressed button, or `""`, also once `signal` ends. The Enter
 * key never presses `""`: a primary button has the focus, unless the content has something to fill in.
 */
export function ask(title, content, buttons, signal) {
  if (signal?.aborted) return Promise.resolve("");
  const heading = el("h2", { id: uniqueId("dialog") }, title);
  const actions = buttons.map(([value, text, kind = ""]) =>
    el("button", { type: value === "" ? "button" : "submit", value, class: kind,
      onclick: value === "" && (() => dialog.close("")) }, text));
  const form = el("form", { method: "dialog" }, heading, content, el("div.actions", {}, actions));
  if (!form.querySelector("input, select, textarea")) form.querySelector(".primary")?.toggleAttribute("autofocus", true);
  const dialog = el("dialog", { "aria-labelledby": heading.id }, form);
  document.body.append(dialog);
  dialog.showModal();
  const leave = () => dialog.close("");
  signal?.addEventListener("abort", leave, { once: true });
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      signal?.removeEventListener("abort", leave);
      dialog.remove();
      resolve(dialog.returnValue);
    }, { once: true });
  });
}
