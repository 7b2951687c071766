// The legend: each type with its shape, colour and number, to be shown or hidden.

import { el, fill } from "../lib/dom.js";
import { number } from "../lib/format.js";
import { sign, typeName } from "./types.js";

export class Legend {
  #picture;
  #changed;
  /** Whether the user chose to show or hide notes. */
  notesChosen = false;
  root = el("div.graph-legend", { role: "group", "aria-label": "Types shown" });

  /** @param {(type?: string) => void} changed Called when a type was shown or hidden. */
  constructor(picture, changed) {
    this.#picture = picture;
    this.#changed = changed;
  }

  /** Shows the types of the picture. */
  show() {
    const focused = this.root.contains(document.activeElement) ? document.activeElement.dataset.type : null;
    const types = this.#picture.types();
    const notes = types.find(([type]) => type === "note");
    const others = types.filter(([type]) => type !== "note");
    const all = others.some(([type]) => this.#picture.hidden.has(type));
    fill(this.root,
      notes && this.#notes(notes[1]),
      el("div.chips", {},
        others.map(([type, many]) => this.#chip(type, many)),
        all && el("button.chip", { type: "button", "data-type": "", onclick: () => this.#all() }, "Show all types")));
    if (focused !== null) this.root.querySelector(`[data-type="${CSS.escape(focused)}"]`)?.focus();
    if (focused === "" && !all) this.root.querySelector("button")?.focus();
  }

  /** Shows a type again. */
  allow(type) {
    this.#picture.hidden.delete(type);
  }

  #notes(many) {
    const box = el("input.switch", { type: "checkbox", role: "switch", "data-type": "note",
      checked: !this.#picture.hidden.has("note") });
    box.addEventListener("change", () => {
      this.notesChosen = true;
      this.#toggle("note");
    });
    return el("label.check.graph-notes", { title: "Without notes, entities that share one are linked" },
      box, sign("note"), `Notes ${number(many)}`);
  }

  #chip(type, many) {
    const shown = !this.#picture.hidden.has(type);
    return el("button.chip", { type: "button", "aria-pressed": String(shown), "data-type": type,
      onclick: () => this.#toggle(type) }, sign(type), typeName(type), el("span.graph-count", {}, number(many)));
  }

  #toggle(type) {
    this.#picture.toggle(type);
    this.#changed(type);
  }

  #all() {
    const notes = this.#picture.hidden.has("note");
    this.#picture.hidden.clear();
    if (notes) this.#picture.hidden.add("note");
    this.#changed();
  }
}
