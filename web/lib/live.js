// Says whether a stream is connected.

import { el, fill } from "./dom.js";
import { moment } from "./format.js";

/** An element that shows the state of a stream, and the `state` to hand to the client's `follow`. */
export function liveness() {
  const element = el("p.liveness", { role: "status" });
  let broken = null;
  let said = "";
  const say = (kind, text) => {
    if (text === said) return;
    said = text;
    fill(element, el("span.dot", { class: kind, "aria-hidden": "true" }), " ", text);
  };
  say("", "Connecting …");
  return {
    element,
    state(name, error) {
      if (name === "open") {
        broken = null;
        return say("good", "Live");
      }
      broken ??= moment(new Date()).slice(-8);
      const why = error ? ` ${error.message}` : "";
      return name === "ended"
        ? say("bad", `Disconnected since ${broken}.${why}`)
        : say("warn", `Reconnecting since ${broken} …${why}`);
    },
  };
}

/** Calls `action` at most once in `ms` milliseconds, as long as the signal lasts. */
export function throttled(ms, signal, action) {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    if (timer || signal.aborted) return;
    timer = setTimeout(() => { timer = 0; action(); }, ms);
  };
}
