// Sign-in with a provider in a window of its own. The answer comes back over a channel that only this origin can use,
// so that the token is never in a URL or a cookie.

import { ApiError, isAbort, sentence } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { button } from "../lib/parts.js";

/** Begins the name of a channel; the service accepts 32 hexadecimal digits after it (src/http/hosted/oauth.rs). */
const CHANNEL = "threat-memory.sign-in.";

/** The service's answer to a sign-in at the provider's page: `{status, body}`. The signal ends the wait. */
function signInWith(provider, workspace, signal) {
  const random = crypto.getRandomValues(new Uint8Array(16));
  const id = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  const query = new URLSearchParams({ console: id, ...(workspace && { workspace }) });
  const channel = new BroadcastChannel(CHANNEL + id);
  const answered = new Promise((resolve, reject) => {
    channel.addEventListener("message", ({ data }) => {
      channel.postMessage("received");
      resolve(data);
    }, { once: true });
    signal.addEventListener("abort", () => reject(new DOMException("Cancelled", "AbortError")), { once: true });
  });
  const begin = `/api/auth/oauth/${encodeURIComponent(provider)}?${query}`;
  const opened = window.open(begin, "_blank", "popup,width=520,height=720");
  if (opened === null) {
    channel.close();
    return Promise.reject(new ApiError(0, "The browser blocked the sign-in window. Allow pop-ups for this page."));
  }
  return answered.finally(() => channel.close());
}

/** What a sign-in answers, as a session. */
export function sessionOf({ user, workspace, access_token: token }) {
  return { who: { user, workspace }, headers: { authorization: `Bearer ${token}` } };
}

/** The workspaces that a refusal names, as `[id, name]`: `… fit NAME (ID), …`, of a provider `… has accounts in …`. */
export function workspacesOf(message) {
  const named = message.replace(/^.*?(?: fit | has accounts in )/, "");
  const pairs = named.matchAll(/(.+?) \(([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\)(?:, |\.?$)/g);
  return [...pairs].map(([, name, id]) => [id, name]);
}

/** Buttons for the configured providers; nothing, if there are none. `entered` takes the session. */
export function providers(api, entered, workspace = "") {
  const place = el("div.stack");
  const choices = el("div.row");
  const said = el("div.stack", { role: "status" });
  const start = (name, of) => attempt(name, of, said, entered);
  api.providers().then(({ providers: known }) => {
    if (known.length === 0) return;
    fill(choices, known.map(({ name }) => button(`Sign in with ${name}`, () => start(name, workspace))));
    fill(place, el("p.or", {}, "or"), choices, said);
  }, () => {});
  return place;
}

/** One sign-in: waits, then enters, or says what is wrong or has to be chosen. */
async function attempt(name, workspace, said, entered) {
  const cancelled = new AbortController();
  fill(said, el("p", {}, "Go on in the window of the provider. "),
    el("button.link", { type: "button", onclick: () => cancelled.abort() }, "Cancel"));
  try {
    const { status, body } = await signInWith(name, workspace, cancelled.signal);
    fill(said);
    if (status === 200) return entered(sessionOf(body));
    const several = status === 400 ? workspacesOf(body.error) : [];
    if (several.length === 0) throw new ApiError(status, body.error);
    fill(said, el("p", {}, "You have an account in several workspaces. Choose the one to work in."),
      several.map(([id, of]) => button(of, () => attempt(name, id, said, entered))));
  } catch (error) {
    fill(said, !isAbort(error) && el("p.notice.bad", {}, sentence(error.message)));
  }
}
