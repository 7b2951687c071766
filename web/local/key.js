// The API key of the local service. It is kept for this tab only, never in a cookie or a URL.

import { el, uniqueId } from "../lib/dom.js";

const PLACE = "threat-memory.key";
let asking = null;
/** Whether the user closed the dialog without a key and has done nothing since: what the page sends by itself waits. */
let declined = false;
for (const act of ["click", "keydown", "popstate"]) addEventListener(act, () => { declined = false; }, { capture: true });

/** The headers that carry the key, if there is one. */
export function keyHeaders() {
  const key = sessionStorage.getItem(PLACE);
  return key ? { "x-api-key": key } : {};
}

/**
 * Asks for the key after a refusal. Resolves to whether one was given; all who ask meanwhile share the answer, and so
 * does whatever is refused after it until the user does something.
 */
export function askForKey(_error, sent) {
  // Refused before the key was given: it is sent again with the key.
  if (!asking && sent["x-api-key"] !== keyHeaders()["x-api-key"]) return Promise.resolve(true);
  if (declined) return Promise.resolve(false);
  asking ??= dialog(sessionStorage.getItem(PLACE) !== null).finally(() => { asking = null; });
  return asking;
}

function dialog(wrong) {
  const title = el("h2", { id: uniqueId("key") }, "API key");
  const input = el("input", {
    type: "password", id: uniqueId("key"), required: true, autocomplete: "off", spellcheck: "false",
    "aria-describedby": wrong ? "key-wrong" : null, "aria-invalid": wrong ? "true" : null,
  });
  const form = el("form", { method: "dialog" },
    title,
    el("p", {}, "This memory is protected by a key: the value of ", el("code", {}, "LOCAL_WEB_API_KEY"), "."),
    wrong && el("p.field-error", { id: "key-wrong", role: "alert" }, "That key is not valid."),
    el("div.field", {}, el("label", { for: input.id }, "Key"), input,
      el("span.hint", {}, "Kept in this tab until it is closed.")),
    el("div.actions", {},
      // Not a submit button: the first of those is what the Enter key presses.
      el("button", { type: "button", onclick: () => shown.close("cancel") }, "Cancel"),
      el("button.primary", { value: "open" }, "Open")));
  const shown = el("dialog", { "aria-labelledby": title.id }, form);
  document.body.append(shown);
  shown.showModal();
  input.focus();
  return new Promise((resolve) => {
    shown.addEventListener("close", () => {
      const given = shown.returnValue === "open" && input.value !== "";
      // Headers hold visible ASCII only, so another key can't be the right one; it must not make every request fail.
      if (given) sessionStorage.setItem(PLACE, input.value.replace(/[^\x21-\x7e ]/g, "?").trim());
      declined = !given;
      shown.remove();
      resolve(given);
    }, { once: true });
  });
}
