// Who is signed in, in all tabs of this browser session.

import { ApiError } from "../lib/client.js";
import { Kept, answersWaited } from "../lib/tabs.js";

let headers = {};
let user = null;
let asking = null;
let askAgain = async () => null;
let watch = () => {};
let quota = null;

/** The headers that carry the credential. Whoever signs out leaves all tabs that are signed in with it. */
const kept = new Kept("threat-memory.session", () => leave());

/** How long signing out waits for the service. */
const LOGOUT_MS = 3000;

const ALL = ["recall:read", "recall:write", "audit:read", "audit:export", "admin"];
/** docs/api.md, "Credentials". */
const OF_ROLE = {
  admin: ALL,
  analyst: ["recall:read", "recall:write"],
  audit: ["recall:read", "audit:read", "audit:export"],
  viewer: ["recall:read"],
};
const OF_SCOPE = { read: ["recall:read"], ingest: ["recall:write"] };

/**
 * Who is signed in.
 *
 * @typedef {Object} Who
 * @property {{id: string, email: string, role: string}} [user]
 * @property {{id: string, scopes: string[]}} [api_key] Instead of a user.
 * @property {{id: string, name: string, tier: string}} workspace
 */

/** The headers that carry the credential. */
export const credential = () => headers;

/** @returns {Who|null} */
export const who = () => user;

/** Whether the caller may do this. What is refused anyway need not be shown. */
export function may(permission) {
  if (user?.api_key) return user.api_key.scopes.some((scope) => OF_SCOPE[scope]?.includes(permission));
  return OF_ROLE[user?.user?.role]?.includes(permission) ?? false;
}

/** Begins a session. */
export function begin(signedIn, carried) {
  user = signedIn;
  headers = carried;
  kept.keep(carried);
}

/**
 * Goes on with the session that this tab had before a reload. Tells whether there is one.
 *
 * @throws {ApiError} Whether it has ended is not known.
 */
export async function resume(api) {
  const carried = kept.get();
  if (carried === null) return false;
  const signedIn = await known(api, carried);
  if (signedIn) begin(signedIn, carried);
  else kept.forget();
  return signedIn !== null;
}

/** Who holds a credential; `null` if the service refuses it. */
async function known(api, carried) {
  try {
    return await api.who(carried);
  } catch (error) {
    if (error.status === 401) return null;
    throw error;
  }
}

/**
 * Asks the other tabs who is signed in, and takes up to a moment for it. `entered` is called with the first session that
 * still holds, even if it comes later.
 */
export function askTabs(api, entered, signal) {
  const offered = async (carried) => {
    if (signal.aborted || JSON.stringify(carried) === JSON.stringify(headers)) return;
    const signedIn = await known(api, carried).catch(() => null);
    if (signedIn && !signal.aborted) entered({ who: signedIn, headers: carried });
  };
  kept.ask(offered, signal);
  return answersWaited();
}

/** Whether two answers are about the same caller. */
export function isSame(one, other) {
  const id = (of) => `${of.workspace.id} ${of.user?.id ?? of.api_key?.id}`;
  return id(one) === id(other);
}

/**
 * Says what to do when a session has ended, and who is to see the rate limit.
 *
 * @param {{again: () => Promise<boolean>, limit: (left: number, of: number, reset: number) => void}} by
 */
export function attend({ again, limit }) {
  askAgain = again;
  watch = limit;
}

/**
 * Asks for the credential again after a refusal; all who ask meanwhile share the answer.
 *
 * @throws {ApiError} Nobody signed in.
 */
export async function signInAgain(_error, sent) {
  if (sent !== headers) return true;
  asking ??= askAgain().finally(() => { asking = null; });
  if (await asking) return true;
  throw new ApiError(401, "The session has ended. Sign in to go on.");
}

/** Notes how many requests an answer says are left. */
export function answered(response) {
  const [left, of, reset] = ["remaining", "limit", "reset"].map((name) => response.headers.get(`ratelimit-${name}`));
  if (left === null) return;
  quota = { left: Number(left), until: Date.now() + Number(reset) * 1000 };
  watch(quota.left, Number(of), Number(reset));
}

/** How many requests are left, as far as is known, and in how many seconds there are more: `{left, reset}` or `null`. */
export function requestsLeft() {
  if (!quota || quota.until <= Date.now()) return null;
  return { left: quota.left, reset: Math.ceil((quota.until - Date.now()) / 1000) };
}

/** Signs out: the service refuses the token from now on, and every tab forgets everything that it holds. */
export async function signOut() {
  kept.giveUp();
  if (user?.user) await revoke();
  leave();
}

function leave() {
  history.replaceState(null, "", location.pathname);
  location.reload();
}

/** Asks the service to revoke the token. Who wants to leave is not kept by a service that does not answer. */
async function revoke() {
  const request = { method: "POST", headers, credentials: "omit", cache: "no-store", redirect: "error" };
  await fetch("/api/auth/logout", { ...request, signal: AbortSignal.timeout(LOGOUT_MS) }).catch(() => {});
}
