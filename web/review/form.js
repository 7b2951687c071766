// Forms that are sent by script. A refusal shows at the field that it names.

import { isAbort } from "../lib/client.js";
import { el, uniqueId } from "../lib/dom.js";
import { failure } from "../lib/shell.js";

/**
 * A form.
 *
 * @param {Object} attributes
 * @param {Array} content Holds its submit button.
 * @param {(values: FormData, form: HTMLFormElement) => Promise<void>} send What throws here is shown in the form.
 */
export function form(attributes, content, send) {
  return el("form", { ...attributes, onsubmit: (event) => submitted(event, send) }, content);
}

async function submitted(event, send) {
  event.preventDefault();
  const made = event.currentTarget;
  const submit = made.querySelector("[type=submit]");
  if (submit.getAttribute("aria-disabled") === "true") return;
  forget(made);
  submit.setAttribute("aria-disabled", "true");
  try {
    await send(new FormData(made), made);
  } catch (error) {
    if (!isAbort(error)) refuse(made, error);
  } finally {
    submit.removeAttribute("aria-disabled");
  }
}

/** Shows a refusal: at the field if its text begins with the name of one, as in `name: is required`. */
export function refuse(made, error) {
  const [, name, rule] = /^([a-z_]+)[^:\s]*: (.*)$/s.exec(error.message) ?? [];
  const control = name && made.elements.namedItem(name);
  if (!(control instanceof HTMLElement)) {
    const shown = failure(error);
    shown.classList.add("form-failure");
    made.append(shown);
    return;
  }
  const said = `${rule[0].toUpperCase()}${rule.slice(1)}`;
  const text = el("p.field-error", { id: uniqueId("error"), role: "alert" }, said);
  const before = control.getAttribute("aria-describedby");
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-describedby", before ? `${before} ${text.id}` : text.id);
  control.closest(".field").append(text);
  control.focus();
}

function forget(made) {
  for (const shown of made.querySelectorAll(".field-error, .form-failure")) {
    for (const control of made.querySelectorAll(`[aria-describedby~="${shown.id}"]`)) {
      const others = control.getAttribute("aria-describedby").split(" ").filter((id) => id !== shown.id);
      control.setAttribute("aria-describedby", others.join(" "));
      control.removeAttribute("aria-invalid");
    }
    shown.remove();
  }
}

/** The filled-in values by name, without the empty ones. */
export function valuesOf(data) {
  return Object.fromEntries([...data].filter(([, value]) => typeof value === "string" && value.trim() !== ""));
}
