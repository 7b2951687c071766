// The collections of the TAXII server: those that every workspace has, and those that administrators define.

import { el, fill } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { badge, button, joined } from "../lib/parts.js";
import { emptiness } from "../lib/shell.js";
import { who } from "../console/session.js";
import { form } from "../review/form.js";
import { collectionForm } from "./collections-form.js";

export const collections = (api) => ({
  id: "collections",
  title: "Collections",
  style: "review.css",
  show: (root, at) => showAll(api, root, at),
});

/** What every workspace has. */
const ALL = { id: "all", title: "All", description: "Everything that the client's key may see.", filter: {},
  readable_by: "everyone", writable_by: [] };

async function showAll(api, root, at) {
  fill(root, el("p.muted", { role: "status" }, "Loading the collections …"));
  const options = { signal: at.signal };
  const [{ collections: defined }, { api_keys: keys }, { feeds }, { sessions }] = await Promise.all([
    api.collections(options), api.apiKeys(options), feedsOf(api, options), api.sessions({ limit: 50 }, options)]);
  const known = { keys, feeds, sessions };
  const list = el("div.stack");
  const place = el("div");
  const add = button("Define a collection", () => {
    fill(place, collectionForm(api, at, known, null, (made) => {
      defined.push(made);
      at.notify(`${made.title} is defined.`);
      close();
      draw();
    }, close));
    add.hidden = true;
    place.querySelector("input").focus();
  }, { class: "primary" });
  const close = () => {
    fill(place);
    add.hidden = false;
    add.focus();
  };
  const draw = () => fill(list, defined.length === 0
    ? emptiness("No collection is defined yet", "Clients can read “All”. Define one to give out less, or to take objects in.")
    : defined.map((collection, place) => card(api, at, known, collection, (changed) => {
      if (changed) defined[place] = changed;
      else defined.splice(place, 1);
      draw();
      add.focus();
    })), overall());
  const overall = () => el("article.card", { "aria-label": ALL.title },
    described(known, ALL), el("div.row.feed-actions", {}, settings(at, ALL)));
  draw();
  fill(root, el("div.stack", {},
    el("div.spread", {}, el("h2", {}, "Collections of the TAXII server"), el("div.row", {}, add)),
    el("p.muted", {}, "TAXII 2.1 clients read them, each with an API key of this workspace."), place, list));
}

/** The feeds, if the workspace may have any. */
async function feedsOf(api, options) {
  try {
    return await api.feeds(options);
  } catch (error) {
    if (error.status === 403) return { feeds: [] };
    throw error;
  }
}

/** A collection. `replaced` gets what stands in its place, or nothing if it is deleted. */
function card(api, at, known, collection, replaced) {
  const root = el("article.card", { "aria-label": collection.title });
  const back = () => {
    draw();
    root.querySelector("button").focus();
  };
  const draw = () => fill(root, described(known, collection), el("div.row.feed-actions", {},
    settings(at, collection), button("Change …", change), button("Delete …", remove)));
  const change = () => {
    fill(root, collectionForm(api, at, known, collection, (changed, warnings) => {
      at.notify(warnings.length > 0
        ? `${changed.title} is changed. Clients that read it before get what it adds only if they read from the start.`
        : `${changed.title} is changed.`, warnings.length > 0 ? "warn" : "good");
      replaced(changed);
    }, back));
    root.querySelector("input").focus();
  };
  const remove = () => {
    const content = [el("p", {}, "Delete this collection? Its clients can't read it any more. What it holds stays in the workspace."),
      el("div.actions", {}, el("button.danger", { type: "submit" }, "Delete the collection"), button("Keep it", back))];
    fill(root, described(known, collection), form({ class: "stack" }, content, async () => {
      await api.removeCollection(collection.id, { signal: at.signal });
      at.notify(`${collection.title} is deleted.`);
      replaced(null);
    }));
    root.querySelector("form button").focus();
  };
  draw();
  return root;
}

/** How a client reads a collection, to be copied. */
function settings(at, collection) {
  const root = `${location.origin}/taxii2/${who().workspace.id}/`;
  const name = collection.alias ?? collection.id;
  const text = [
    "TAXII version: 2.1",
    `Discovery URL: ${location.origin}/taxii2/`,
    `API root: ${root}`,
    `Collection: ${collection.title}`,
    `Collection id: ${name}`,
    `Objects URL: ${root}collections/${name}/objects/`,
    "User name: any",
    "Password: an API key of the workspace with the scope read",
    collection.writable_by.length > 0 && "To hand objects in: an API key with the scope ingest",
  ].filter(Boolean).join("\n");
  const copy = button("Copy client settings", async () => {
    await navigator.clipboard.writeText(text).then(
      () => at.notify(`The settings for ${collection.title} are in the clipboard.`),
      () => at.notify("The browser does not allow copying: open the settings, mark and copy them.", "bad"),
    );
  });
  const shown = el("details", {}, el("summary", {}, "Client settings"), el("pre.object", { tabindex: 0 }, text));
  // Without TLS the browser offers no clipboard.
  return [navigator.clipboard && copy, shown];
}

function described(known, collection) {
  const { filter, readable_by: readers, writable_by: writers } = collection;
  return [
    el("div.decision-title", {}, el("h3", {}, collection.title), collection.alias && badge(collection.alias),
      writers.length > 0 && badge(collection.hand_in === "ingest" ? "takes objects in" : "takes objects for review", "good")),
    collection.description && el("p", {}, collection.description),
    el("p.decision-facts", {}, joined([...conditions(known, filter), `read by ${users(known, readers)}`,
      `written by ${users(known, writers)}`])),
  ];
}

function users({ keys }, users) {
  if (users === "everyone") return "everyone";
  if (users.length === 0) return "nobody";
  return users.map((id) => keys.find((key) => key.id === id)?.name ?? id).join(", ");
}

function conditions({ feeds, sessions }, filter) {
  const named = filter.feeds?.map((id) => feeds.find((feed) => feed.id === id)?.name ?? id);
  const session = filter.session && sessions.find(({ id }) => id === filter.session);
  const all = [
    filter.types && count(filter.types.length, "type") + `: ${filter.types.join(", ")}`,
    filter.sources && `from ${filter.sources.join(" or ")}`,
    named && `brought by ${named.join(" or ")}`,
    filter.markings && filter.markings.join(" or "),
    filter.min_confidence !== undefined && `confidence at least ${filter.min_confidence}`,
    filter.session && (session ? `results of “${session.query}”` : "results of a search"),
  ].filter(Boolean);
  return all.length > 0 ? all : ["everything"];
}
