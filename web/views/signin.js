// Signs in: a page at first, a dialog when a session has ended.

import { providers, sessionOf, workspacesOf } from "../console/provider.js";
import { askTabs, begin, isSame, signOut, who } from "../console/session.js";
import { ApiError, sentence } from "../lib/client.js";
import { el, fill, uniqueId } from "../lib/dom.js";
import { duration } from "../lib/format.js";
import { choice, field } from "../lib/parts.js";

/** Shows the page until somebody has signed in. */
export async function signIn(main, api) {
  const body = document.body;
  body.classList.add("signed-out");
  document.title = "Sign in · threat-memory";
  const over = new AbortController();
  let entered;
  const entrance = new Promise((done) => {
    entered = (session) => { begin(session.who, session.headers); over.abort(); done(); };
  });
  await Promise.race([entrance, askTabs(api, entered, over.signal)]);
  if (!over.signal.aborted) {
    const form = el("div");
    const show = (way) => {
      const other = way === byPassword ? [byKey, "Sign in with an API key"] : [byPassword, "Sign in with a password"];
      const inputs = way(api);
      fill(form, formOf(inputs, entered),
        el("p", {}, el("button.link", { type: "button", onclick: () => show(other[0]) }, other[1])));
      inputs.first.focus();
    };
    fill(main, el("div.card.sign-in", {}, el("h1", {}, "Sign in"), form, providers(api, entered),
      el("p.hint", {}, "One sign-in serves all tabs. It ends when you sign out or close them, and after ",
        "24 hours at most.")));
    show(byPassword);
  }
  await entrance;
  body.classList.remove("signed-out");
}

/** Asks the same caller again once the session has ended. Resolves to whether that was successful. */
export function signInAgain(api) {
  const before = who();
  const inputs = before.user ? byPassword(api, before) : byKey(api);
  const title = el("h2", { id: uniqueId("again") }, "Sign in again");
  const cancel = el("button", { type: "button" }, "Not now");
  const leave = el("button.link", { type: "button", onclick: signOut }, "Sign out");
  const dialog = el("dialog.sign-in", { "aria-labelledby": title.id });
  const over = new AbortController();
  return new Promise((resolve) => {
    const entered = (session) => {
      if (!isSame(session.who, before)) throw new Error("These belong to somebody else. Sign out to change the user.");
      begin(session.who, session.headers);
      dialog.returnValue = "done";
      dialog.close("done");
    };
    cancel.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => {
      over.abort();
      dialog.remove();
      resolve(dialog.returnValue === "done");
    }, { once: true });
    fill(dialog, title, el("p", {}, "The session has ended. What is on the page stays."), formOf(inputs, entered, cancel),
      before.user && providers(api, entered, before.workspace.id), leave);
    document.body.append(dialog);
    dialog.showModal();
    inputs.first.focus();
    // Another tab may have signed in again already.
    askTabs(api, (session) => { if (isSame(session.who, before)) entered(session); }, over.signal);
  });
}

/**
 * A way to sign in.
 *
 * @typedef {Object} Way
 * @property {Node} fields
 * @property {HTMLElement} first The field to begin with.
 * @property {() => Promise<{who: object, headers: object}|null>} enter `null` if something has to be chosen first.
 */

/** @returns {Way} */
function byPassword(api, before) {
  const email = el("input", {
    type: "email", name: "email", autocomplete: "username", required: true, spellcheck: "false",
    value: before?.user.email ?? "", readonly: Boolean(before),
  });
  const password = el("input", {
    type: "password", name: "password", autocomplete: "current-password", required: true,
  });
  const where = el("div");
  let workspace = () => before?.workspace.id;
  email.addEventListener("input", () => { fill(where); workspace = () => undefined; });
  const enter = async () => {
    try {
      const given = { email: email.value.trim(), password: password.value, workspace: workspace() };
      return sessionOf(await api.signIn(given));
    } catch (error) {
      if (error.status === 429) throw tooMany(error);
      const several = error.status === 400 ? workspacesOf(error.message) : [];
      if (several.length === 0) throw error;
      const select = choice(several, several[0][0], { name: "workspace" });
      workspace = () => select.value;
      fill(where, field("Workspace", select, "You have an account in several. Choose the one to work in."));
      select.focus();
      return null;
    }
  };
  const fields = [field("E-mail", email), field("Password", password), where];
  return { fields, first: before ? password : email, enter };
}

function tooMany({ status, retryAfter }) {
  const end = retryAfter > 0 ? ` Try again in ${duration(retryAfter)}.` : "";
  return new ApiError(status, `Too many failed attempts for this address.${end}`, { retryAfter });
}

/** @returns {Way} */
function byKey(api) {
  const key = el("input", { type: "password", name: "key", autocomplete: "off", spellcheck: "false", required: true });
  const enter = async () => {
    // A header holds visible ASCII only; another key can't be valid.
    const headers = { "x-api-key": key.value.trim().replace(/[^\x21-\x7e]/g, "?") };
    return { who: await api.who(headers), headers };
  };
  const hint = "What works depends on its scopes: “read” to search, “ingest” to review.";
  return { fields: field("API key", key, hint), first: key, enter };
}

/** A form that enters by a way and hands on what comes of it. */
function formOf(way, entered, cancel) {
  const problem = el("div", { role: "alert" });
  const submit = el("button.primary", {}, "Sign in");
  return el("form.stack", {
    onsubmit: async (event) => {
      event.preventDefault();
      if (submit.disabled) return;
      submit.disabled = true;
      fill(problem);
      try {
        const session = await way.enter();
        if (session) entered(session);
      } catch (error) {
        fill(problem, el("p.notice.bad", {}, sentence(error.message)));
      } finally {
        submit.disabled = false;
      }
    },
  }, way.fields, problem, el("div.actions", {}, cancel, submit));
}
