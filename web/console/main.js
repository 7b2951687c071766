// The console of the hosted service.

import { fill } from "../lib/dom.js";
import { Shell, emptiness, styled } from "../lib/shell.js";
import { audit } from "../views/audit.js";
import { node } from "../views/node.js";
import { search } from "../views/search.js";
import { signIn, signInAgain } from "../views/signin.js";
import { api } from "./api.js";
import { header } from "./header.js";
import { may, who } from "./session.js";

/** Views in the order of the navigation, with the permission that they need. */
const views = [
  ["recall:read", search(api)],
  ["recall:read", node(api)],
  ["audit:read", audit(api)],
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

const status = document.getElementById("status");
api.health().then(({ version }) => who() || fill(status, version), () => {});
await styled("console.css");
await signIn(document.getElementById("main"), api);
header(status, api, (error) => signInAgain(api, error));
const shown = views.map(admitted);
new Shell({ views: shown, home: (shown.find((view) => !view.hidden) ?? shown[0]).id }).start();
