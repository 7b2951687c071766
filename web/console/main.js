// The console of the hosted service.

import { fill } from "../lib/dom.js";
import { Shell, emptiness, failure, later, styled } from "../lib/shell.js";
import { signIn, signInAgain } from "../views/signin.js";
import { api } from "./api.js";
import { header } from "./header.js";
import { may, resume, who } from "./session.js";

/** Views in the order of the navigation, with the permission that they need. */
const views = [
  ["recall:read", later("search", "Search", async () => {
    const [{ search }, { hostedSource }] = await Promise.all([import("../views/search.js"), import("./source.js")]);
    return search(hostedSource(api));
  })],
  ["recall:read", later("lookup", "Look-up", async () => {
    const [{ lookup }, { lookupSource }] = await Promise.all([import("../views/lookup.js"), import("./lookup-source.js")]);
    return lookup(lookupSource(api));
  })],
  ["recall:read", later("graph", "Graph", async () => {
    const [{ graph }, { graphSource }] = await Promise.all([import("../views/graph.js"), import("./graph-source.js")]);
    return graph(graphSource(api));
  })],
  ["recall:read", later("changes", "Changes", async () => {
    const [{ changes }, { changesSource }] = await Promise.all([import("../views/changes.js"), import("./changes-source.js")]);
    return changes(changesSource(api));
  })],
  ["recall:write", later("review", "Review", async () => (await import("../views/review.js")).review(api))],
  ["recall:write", later("feeds", "Feeds", async () => (await import("../views/feeds.js")).feeds(api))],
  ["recall:write", later("batch", "Feed batch", async () => (await import("../views/batch.js")).batch(api), "feeds")],
  ["recall:read", later("node", "Node", async () => (await import("../views/node.js")).node(api), "search")],
  ["recall:write", later("duplicates", "Likely duplicates",
    async () => (await import("../views/duplicates.js")).duplicates(api), "review")],
  ["admin", later("collections", "Collections",
    async () => (await import("../views/collections.js")).collections(api))],
  ["admin", later("actors", "Load", async () => (await import("../views/actors.js")).actors(api))],
  ["audit:read", later("audit", "Audit log", async () => (await import("../views/audit.js")).audit(api))],
];

/** A view as this caller sees it. One that may not be used is left out of the navigation and says so. */
function admitted([permission, view]) {
  if (may(permission)) return view;
  const needs = `It needs the permission ${permission}, which `;
  const owner = who().user ? `the role ${who().user.role} does not have. Ask an administrator of the workspace.`
    : "this API key does not have.";
  const show = (root) => { fill(root, emptiness(`You may not use “${view.title}”.`, needs, owner)); };
  return { id: view.id, title: view.title, hidden: true, show };
}

/** Goes on where this browser session is signed in, or signs in. */
async function enter(main) {
  for (;;) {
    try {
      return await resume(api) || await signIn(main, api);
    } catch (error) {
      await new Promise((again) => { fill(main, failure(error, again)); });
    }
  }
}

const status = document.getElementById("status");
api.health().then(({ version }) => who() || fill(status, version), () => {});
await styled("console.css");
await enter(document.getElementById("main"));
header(status, api, () => signInAgain(api));
const shown = views.map(admitted);
new Shell({ views: shown, home: (shown.find((view) => !view.hidden) ?? shown[0]).id }).start();
