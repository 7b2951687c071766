// The frame around the views: navigation by the URL's fragment, notices, errors.

import { isAbort } from "./client.js";
import { el, fill, uniqueId } from "./dom.js";

/**
 * A view of the page.
 *
 * @typedef {Object} View
 * @property {string} id Its name in the URL: `#/id?parameters`.
 * @property {string} title
 * @property {string} [style] Its style sheet, relative to `style/`.
 * @property {boolean} [hidden] Whether it is left out of the navigation.
 * @property {string} [parent] The view in the navigation that a hidden one belongs to.
 * @property {(root: HTMLElement, at: At) => void|Promise<void>} show Fills the root. Called anew at each visit.
 *
 * What a view is given.
 *
 * @typedef {Object} At
 * @property {URLSearchParams} params Parameters of the URL.
 * @property {AbortSignal} signal Ends when the view is left: pass it to requests and listeners.
 * @property {(id: string, params?: Object<string, unknown>) => void} go Visits a view.
 * @property {(params: Object<string, unknown>, asNew?: boolean) => void} keep Records parameters in the URL without a
 *   visit; `asNew` so that Back leads to those before them.
 * @property {boolean} returned Whether the user came back to this view. What `show` resolves after is then scrolled to
 *   where it was left.
 * @property {(text: string) => void} name Names what is shown, for the title of the window.
 * @property {(text: string, kind?: "good"|"warn"|"bad") => void} notify Tells the user, for a few seconds.
 * @property {(guard: (() => boolean|string)|null) => void} guard While set, it is asked before the view is left. If it
 *   answers `true` or a question, the user is asked too.
 */

/** The URL of a view. */
export function linkTo(id, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${id}${query ? `?${query}` : ""}`;
}

/**
 * What is wrong, in an element; with a button that tries again, if that can help. After a rate limit the button counts the
 * seconds and then tries by itself.
 *
 * @param {unknown} error
 * @param {() => void} [again]
 * @param {{label?: string, signal?: AbortSignal}} [options] `signal` ends the wait.
 */
export function failure(error, again, { label = "Try again", signal } = {}) {
  const text = error instanceof Error ? error.message : String(error);
  const button = again && el("button", { type: "button", onclick: again }, label);
  const shown = el("div.notice.bad", { role: "alert" }, el("p", {}, text), button);
  if (again && error.retryAfter > 0) wait(button, error.retryAfter, label, again, signal);
  return shown;
}

function wait(button, seconds, label, again, signal) {
  const end = Date.now() + seconds * 1000;
  button.disabled = true;
  const tick = () => {
    const left = Math.ceil((end - Date.now()) / 1000);
    button.textContent = left > 0 ? `${label} in ${left} s` : label;
    if (left > 0) return;
    clearInterval(timer);
    button.disabled = false;
    if (button.isConnected && !signal?.aborted) again();
  };
  const timer = setInterval(tick, 1000);
  signal?.addEventListener("abort", () => clearInterval(timer));
  tick();
}

/** What an empty view says, with what to do next. */
export function emptiness(title, ...next) {
  return el("div.empty", {}, el("p.empty-title", {}, title), next.length > 0 && el("p", {}, next));
}

const NOTICE_MS = 6000;

/** Shows a text for a few seconds. */
export function notify(text, kind = "good") {
  const notice = el("div.notice", { class: kind }, text);
  document.getElementById("notices").append(notice);
  setTimeout(() => notice.remove(), NOTICE_MS);
}

/** A key that no other entry of the history has, not even one from before a reload. */
const freshEntry = () => uniqueId(String(Date.now()));

/** Scrolls a bar, and only it, to an item of it. */
function centre(bar, item) {
  const [frame, inner] = [bar.getBoundingClientRect(), item.getBoundingClientRect()];
  bar.scrollLeft += inner.left + inner.width / 2 - frame.left - frame.width / 2;
}

/** Runs the views of an application. */
export class Shell {
  #views;
  #home;
  #elsewhere;
  #nav = document.getElementById("nav");
  #main = document.getElementById("main");
  #visit = new AbortController();
  #guard = null;
  #shown = "";
  #entry = "";
  /** How far the entries of the history were scrolled when they were left. */
  #places = new Map();

  /**
   * @param {{views: View[], home?: string, elsewhere?: string}} app The first view, or `home`, is shown without a
   *   fragment. The page at the path `elsewhere` shows all other views, if it is given.
   */
  constructor({ views, home = views[0].id, elsewhere = "" }) {
    this.#views = new Map(views.map((view) => [view.id, view]));
    this.#home = home;
    this.#elsewhere = elsewhere;
    history.scrollRestoration = "manual";
    addEventListener("hashchange", () => this.#changed());
    // The fragment names the view, so the link must not change it.
    document.querySelector(".skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.#main.focus();
    });
    addEventListener("beforeunload", (event) => { if (this.#guard?.()) event.preventDefault(); });
  }

  /** Shows the navigation and the view that the URL names. */
  start() {
    const items = [...this.#views.values()].filter((view) => !view.hidden);
    fill(this.#nav, el("ul", {}, items.map((view) =>
      el("li", {}, el("a", { href: linkTo(view.id), "data-view": view.id }, view.title)))));
    this.#visited();
  }

  #changed() {
    if (location.hash === this.#shown) return;
    const reason = this.#guard?.();
    if (reason && !confirm(reason === true ? "There are changes that were not applied. Leave them?" : reason)) {
      history.replaceState({ entry: this.#entry }, "", this.#shown || "#/");
      return;
    }
    this.#places.set(this.#entry, scrollY);
    this.#visited(true);
  }

  #visited(moved = false) {
    this.#visit.abort();
    this.#visit = new AbortController();
    this.#guard = null;
    this.#shown = location.hash;
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
    const view = this.#views.get(path || this.#home) ?? unknown(path);
    if (this.#elsewhere && (view.id !== this.#home || this.#shown === "#/")) {
      location.replace(this.#elsewhere + this.#shown);
      return;
    }
    // The newest may be about what led here.
    [...document.getElementById("notices").children].slice(0, -1).forEach((notice) => notice.remove());
    for (const link of this.#nav.querySelectorAll("a")) {
      if (link.dataset.view === view.id) link.setAttribute("aria-current", "page");
      else if (link.dataset.view === view.parent) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    const current = this.#nav.querySelector("[aria-current]");
    if (current) centre(this.#nav, current);
    document.title = titled(view.title);
    const root = el("div.view", { class: `view-${view.id}` });
    this.#main.replaceChildren(el("h1", {}, view.title), root);
    if (moved) this.#main.focus({ preventScroll: true });
    scrollTo(0, 0);
    this.#show(view, root, new URLSearchParams(query), this.#enter());
  }

  /** Notes the current entry of the history. Returns how far it was scrolled, if it was left before. */
  #enter() {
    this.#entry = history.state?.entry ?? freshEntry();
    history.replaceState({ entry: this.#entry }, "");
    const place = this.#places.get(this.#entry);
    this.#places.delete(this.#entry);
    return place;
  }

  async #show(view, root, params, place) {
    const { signal } = this.#visit;
    const at = {
      params,
      signal,
      returned: place !== undefined,
      notify,
      go: (id, next) => { location.hash = linkTo(id, next); },
      keep: (next, asNew) => { if (!signal.aborted) this.#keep(linkTo(view.id, next), asNew); },
      name: (text) => { if (!signal.aborted) document.title = titled(`${shortened(text)} · ${view.title}`); },
      guard: (guard) => { if (!signal.aborted) this.#guard = guard; },
    };
    try {
      if (view.style) await styled(view.style);
      if (!signal.aborted) await view.show(root, at);
      if (!signal.aborted && at.returned) scrollTo(0, place);
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      if (error instanceof NotLoaded) fill(root, failure(error, reload, { label: "Reload the page" }));
      else fill(root, failure(error, () => this.#visited(), { signal }));
    }
  }

  #keep(hash, asNew) {
    if (asNew) {
      this.#places.set(this.#entry, scrollY);
      this.#entry = freshEntry();
    }
    this.#shown = hash;
    history[asNew ? "pushState" : "replaceState"]({ entry: this.#entry }, "", hash);
  }
}

const titled = (text) => `${text} · threat-memory`;

const TITLE = 60;
function shortened(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > TITLE ? `${line.slice(0, TITLE).toWellFormed()} …` : line;
}

/** What a URL shows that names no view. */
function unknown(path) {
  const show = (root) => fill(root, emptiness(`There is no view “${path}”.`,
    "The link may be mistyped or of another version. ", el("a", { href: "#/" }, "Go to the first view"), "."));
  return { id: "unknown", title: "Not found", show };
}

/** A view whose code did not arrive. A browser does not ask for the same code again. */
class NotLoaded extends Error {}

/** Reloads the page, unless there would be none. */
async function reload() {
  const answers = await fetch(location.pathname, { cache: "no-store" }).then(() => true, () => false);
  if (answers) location.reload();
  else notify("The service does not answer. Is it running?", "bad");
}

/**
 * A view whose code is loaded at the first visit.
 *
 * @param {string} id
 * @param {string} title
 * @param {() => Promise<View>} load
 * @param {string} [parent] The view in the navigation that this one belongs to, instead of being there itself.
 * @returns {View}
 */
export function later(id, title, load, parent) {
  let loading = null;
  const loadedView = () => {
    loading ??= load().catch((error) => {
      loading = null;
      // After an update the service has files of the new version only.
      throw new NotLoaded("This view could not be loaded: the service did not answer, or it was updated. Reloading the "
        + "page loads it; what was not saved is lost.", { cause: error });
    });
    return loading;
  };
  const show = async (root, at) => {
    const view = await loadedView();
    if (view.style) await styled(view.style);
    if (!at.signal.aborted) await view.show(root, at);
  };
  return { id, title, parent, hidden: Boolean(parent), show };
}

const loaded = new Map();

/** Loads a style sheet once. */
export function styled(name) {
  if (!loaded.has(name)) {
    const href = new URL(`../style/${name}`, import.meta.url).href;
    const link = el("link", { rel: "stylesheet", href });
    loaded.set(name, new Promise((resolve) => {
      link.addEventListener("load", resolve);
      link.addEventListener("error", resolve);
    }));
    document.head.append(link);
  }
  return loaded.get(name);
}
