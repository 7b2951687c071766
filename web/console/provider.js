// Sign-in with a provider in a window of its own. The answer comes back over a channel that only this origin can use,
// so that the token is never in a URL or a cookie.

import { ApiError } from "../lib/client.js";

/** Begins the name of a channel; the service accepts 32 hexadecimal digits after it (src/http/hosted/oauth.rs). */
const CHANNEL = "threat-memory.sign-in.";

/**
 * Opens the provider's sign-in page and waits for its end.
 *
 * @param {string} provider
 * @param {{workspace?: string, signal: AbortSignal}} options `signal` ends the wait.
 * @returns {Promise<{status: number, body: object}>} The service's answer to the sign-in.
 */
export function signInWith(provider, { workspace = "", signal }) {
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
  const opened = window.open(`/api/auth/oauth/${encodeURIComponent(provider)}?${query}`, "_blank", "popup,width=520,height=720");
  if (opened === null) {
    channel.close();
    return Promise.reject(new ApiError(0, "The browser blocked the sign-in window. Allow pop-ups for this page."));
  }
  return answered.finally(() => channel.close());
}
