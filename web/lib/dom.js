// Builds elements. Texts become text nodes and never HTML.

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
  return element;
}

/** Appends nodes and texts; lists are flattened, and nothing is made of `null`, `false` and `undefined`. */
export function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replaces everything in an element. */
export function fill(element, ...children) {
  const fresh = document.createDocumentFragment();
  append(fresh, children);
  element.replaceChildren(fresh);
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
