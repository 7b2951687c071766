// What the header says: who is signed in, and how many requests are left.

import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { badge, button, tlp } from "../lib/parts.js";
import { attend, credential, may, signInAgain, signOut, who } from "./session.js";

/** From this many requests on they are shown. */
const FEW = 50;

export function header(status, api, again) {
  const { user, api_key: key, workspace } = who();
  const requests = el("span.requests-left");
  const ceiling = el("span");
  const ended = button("Sign in again", () => signInAgain(null, credential()).catch(() => {}),
    { class: "primary", hidden: true });
  const name = el("span.who-name", { title: user?.email ?? key.id }, user?.email ?? "API key");
  const roles = user ? [user.role] : key.scopes;
  fill(status,
    requests,
    el("span.who", {}, name, roles.map((role) => badge(role, "accent")),
      el("span.workspace", { title: `Workspace ${workspace.name}, tier ${workspace.tier}` }, workspace.name), ceiling),
    ended, el("button", { type: "button", onclick: signOut }, "Sign out"));
  const asked = async () => {
    const isSignedIn = await again();
    ended.hidden = isSignedIn;
    return isSignedIn;
  };
  attend({ again: asked, limit: (left, of, reset) => fill(requests, limitText(left, of, reset)) });
  if (may("admin")) showCeiling(ceiling, api);
}

/** The strictest marking that the workspace sees. Only its administrators may ask for it. */
async function showCeiling(place, api) {
  const { workspace } = await api.workspace().catch(() => ({}));
  if (!workspace) return;
  fill(place, el("span", { title: "Nothing above this marking is shown here." }, "up to ", tlp(workspace.tlp_ceiling)));
}

function limitText(left, of, reset) {
  if (left > Math.min(FEW, of / 5)) return null;
  const text = left === 0 ? "No requests left" : `${number(left)} of ${number(of)} requests left`;
  const more = reset > 0 ? `, more in ${count(Math.ceil(reset / 60), "minute")}` : "";
  return badge(text + more, left === 0 ? "bad" : "warn",
    "All users and API keys of the workspace share the requests of an hour.");
}
