// Builds elements. Texts become text nodes and never HTML. Text runs in its own direction, wherever it is shown or taken.

import { directionOf, runsLeft } from "./direction.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * An element.
 *
 * @param {string} tag Its name, with classes after dots: `"p.muted"`.
 * @param {Object<string, unknown>} [attributes] `on…` with a function is a listener; `false`, `null` and `undefined` are
 *   left out; `true` is an attribute without a value; `value`, `checked`, `disabled` and `selected` are set as
 *   properties; `vars` sets CSS variables.
 * @param {...(Node|string|number|null|false|undefined|Array)} children
 */
export function el(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return filled(document.createElement(name), classes, attributes, children);
}

/** An SVG element, with the parameters of `el`. */
export function svg(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  return filled(document.createElementNS(SVG, name), classes, attributes, children);
}

const PROPERTIES = new Set(["value", "checked", "disabled", "selected", "indeterminate"]);

function filled(element, classes, attributes, children) {
  if (classes.length > 0) element.classList.add(...classes);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (name === "vars") {
      for (const [variable, setting] of Object.entries(value)) element.style.setProperty(variable, String(setting));
    } else if (name.startsWith("on") && typeof value === "function") {
      element.addEventListener(name.slice(2), value);
    } else if (PROPERTIES.has(name)) {
      element[name] = value;
    } else if (name === "class") {
      element.classList.add(...String(value).split(" ").filter(Boolean));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  append(element, children);
  if (takesText(element)) turn(element);
  return element;
}

/** Types of inputs in which people write. */
const WRITTEN = new Set(["text", "search"]);
const takesText = (element) => element instanceof HTMLTextAreaElement
  || (element instanceof HTMLInputElement && WRITTEN.has(element.type));

/** Turns a field to the direction of what is written in it. */
const turn = (control) => { control.dir = directionOf(control.value); };
addEventListener("input", ({ target }) => { if (takesText(target)) turn(target); });

/** Lines from which a paste is written at once. Browsers insert it line by line, in a time that grows with their square. */
const LONG_PASTE = 200;
addEventListener("paste", (event) => {
  const { target, clipboardData } = event;
  if (event.defaultPrevented || !(target instanceof HTMLTextAreaElement) || target.readOnly || target.maxLength >= 0) return;
  const text = (clipboardData?.getData("text/plain") ?? "").replaceAll("\r\n", "\n");
  if (text.split("\n", LONG_PASTE).length < LONG_PASTE) return;
  event.preventDefault();
  target.setRangeText(text, target.selectionStart, target.selectionEnd, "end");
  target.dispatchEvent(new InputEvent("input", { bubbles: true, inputType: "insertFromPaste" }));
});

/** Gives an element the direction of the text that it holds itself, if that may run from right to left. */
function direct(element) {
  const own = [...element.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE || node.localName === "mark");
  const text = own.map((node) => node.textContent).join("");
  if (runsLeft(text)) element.dir = directionOf(text);
  else if (element.dir) element.dir = "auto";
}

/** Appends nodes and texts; lists are flattened, and nothing is made of `null`, `false` and `undefined`. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  // A mark belongs to the text around it.
  if (element instanceof HTMLElement && element.localName !== "mark") direct(element);
}

/** Replaces everything in an element. */
export function fill(element, ...children) {
  const fresh = document.createDocumentFragment();
  append(fresh, children);
  element.replaceChildren(fresh);
  if (element instanceof HTMLElement) direct(element);
  return element;
}

let last = 0;

/** An id that no other element of this page has. */
export function uniqueId(prefix = "id") {
  last += 1;
  return `${prefix}-${last}`;
}

/** Calls `action` once the calls have ceased for `ms` milliseconds. */
export function debounced(ms, action) {
  let timer;
  return (...parameters) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...parameters), ms);
  };
}
