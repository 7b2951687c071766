// The frame around the views: navigation by the URL's fragment, notices, errors.

import { isAbort } from "./client.js";
import { el, fill } from "./dom.js";

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
 * @property {(params: Object<string, unknown>) => void} keep Records parameters in the URL without a visit.
 * @property {(text: string, kind?: "good"|"bad") => void} notify Tells the user, for a few seconds.
 * @property {(guard: (() => boolean|string)|null) => void} guard While set, it is asked before the view is left. If it
 *   answers `true` or a question, the user is asked too.
 */

/** The URL of a view. */
export function linkTo(id, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#/${id}${query ? `?${query}` : ""}`;
}

/** What is wrong, in an element; with a button that tries again, if that can help. */
export function failure(error, again) {
  const text = error instanceof Error ? error.message : String(error);
  return el("div.notice.bad", { role: "alert" },
    el("p", {}, text),
    again && el("button", { type: "button", onclick: again }, "Try again"));
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

/** Runs the views of an application. */
export class Shell {
  #views;
  #home;
  #nav = document.getElementById("nav");
  #main = document.getElementById("main");
  #visit = new AbortController();
  #guard = null;
  #shown = "";

  /** @param {{views: View[], home?: string}} app The first view, or `home`, is shown without a fragment. */
  constructor({ views, home = views[0].id }) {
    this.#views = new Map(views.map((view) => [view.id, view]));
    this.#home = home;
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

  /** Shows the current view anew. */
  again() {
    this.#visited();
  }

  #changed() {
    if (location.hash === this.#shown) return;
    const reason = this.#guard?.();
    if (reason && !confirm(reason === true ? "There are changes that were not applied. Leave them?" : reason)) {
      history.replaceState(null, "", this.#shown || "#/");
      return;
    }
    this.#visited(true);
  }

  #visited(moved = false) {
    this.#visit.abort();
    this.#visit = new AbortController();
    this.#guard = null;
    this.#shown = location.hash;
    const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
    const view = this.#views.get(path || this.#home) ?? this.#views.get(this.#home);
    for (const link of this.#nav.querySelectorAll("a")) {
      if (link.dataset.view === view.id) link.setAttribute("aria-current", "page");
      else if (link.dataset.view === view.parent) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    document.title = `${view.title} · threat-memory`;
    const root = el("div.view", { class: `view-${view.id}` });
    this.#main.replaceChildren(el("h1", {}, view.title), root);
    if (moved) this.#main.focus({ preventScroll: true });
    scrollTo(0, 0);
    this.#show(view, root, new URLSearchParams(query), this.#visit.signal);
  }

  async #show(view, root, params, signal) {
    const at = {
      params,
      signal,
      notify,
      go: (id, next) => { location.hash = linkTo(id, next); },
      keep: (next) => {
        if (signal.aborted) return;
        this.#shown = linkTo(view.id, next);
        history.replaceState(null, "", this.#shown);
      },
      guard: (guard) => { if (!signal.aborted) this.#guard = guard; },
    };
    try {
      if (view.style) await styled(view.style);
      if (!signal.aborted) await view.show(root, at);
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      fill(root, failure(error, () => this.#visited()));
    }
  }
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
      throw new Error("This view can't be loaded. Reload the page.", { cause: error });
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
