// The feeds of a workspace, each as a card that can be changed and pulled.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { count, duration } from "../lib/format.js";
import { badge, button, choice, field, tlp, when } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { form, valuesOf } from "./form.js";
import { batchOf, received } from "./pull.js";
import { LEVELS, facts, keepingFocus } from "./row.js";

const TERMS = [["allowed", "Allowed: may leave in an export"], ["internal_only", "Internal only: never in an export"],
  ["prohibited", "Prohibited: never in an export"]];
const TERM_BADGES = { allowed: ["may be redistributed", "good"], internal_only: ["internal only", "warn"],
  prohibited: ["redistribution prohibited", "bad"] };

/** Shows all feeds. `known` holds them by id and is kept up to date. */
export function showFeeds(api, panel, at, known) {
  const list = el("div.stack");
  const place = el("div");
  const add = button("Register a feed", () => {
    fill(place, feedForm(api, at, null, (feed) => {
      known.set(feed.id, feed);
      at.notify(`${feed.name} is registered. Pull it to stage what it holds.`);
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
  const draw = () => fill(list, known.size === 0
    ? emptiness("No feed is registered yet", "Register the objects URL of a TAXII 2.1 collection, or ",
      el("a", { href: linkTo("feeds", { tab: "upload" }) }, "upload a STIX bundle"), " for the same review.")
    : [...known.values()].map((feed) => card(api, at, feed, known, () => { draw(); add.focus(); })));
  const again = async () => {
    try {
      const { feeds } = await api.feeds({ signal: at.signal });
      known.clear();
      for (const feed of feeds) known.set(feed.id, feed);
      draw();
    } catch (error) {
      if (!isAbort(error)) fill(list, failure(error, again));
    }
  };
  draw();
  const tools = el("div.row", {}, button("Load again", again), add);
  fill(panel, el("div.stack", {}, el("div.spread", {}, el("h2", {}, "Registered feeds"), tools), place, list));
}

function card(api, at, feed, known, gone) {
  const root = el("article.card", { "aria-label": feed.name });
  const draw = () => fill(root, described(feed), outcome, clock, el("div.row.feed-actions", {},
    button("Pull now", pullNow, { disabled: !feed.enabled,
      title: feed.enabled ? null : "The feed is switched off: “Change …” switches it on." }),
    button("Change …", change), button("Delete …", remove),
    el("a", { href: linkTo("feeds", { tab: "batches", feed: feed.id }) }, "Batches of this feed")));
  const outcome = el("div.feed-outcome", { role: "status" });
  const clock = el("p.muted", { "aria-hidden": "true", hidden: true });
  const pullNow = async () => {
    const batch = await pull(api, at, feed, outcome, clock);
    if (!batch?.ended_at || batch.error) return;
    feed = { ...feed, last_pull_at: batch.ended_at };
    known.set(feed.id, feed);
    if (!root.querySelector("form")) keepingFocus(draw, () => root.querySelector("button"));
  };
  const change = () => {
    const back = () => {
      draw();
      root.querySelector("button").focus();
    };
    fill(root, feedForm(api, at, feed, (changed) => {
      feed = changed;
      known.set(feed.id, feed);
      at.notify(`${feed.name} is changed.`);
      back();
    }, back));
    root.querySelector("input").focus();
  };
  const remove = () => {
    const keep = () => {
      draw();
      root.querySelector("button").focus();
    };
    const content = [el("p", {}, "Delete this feed? Its address and its place in the collection go, and a pull that runs ends. "
      + "What it brought stays, with its terms of redistribution; its batches can still be reviewed."),
    el("div.actions", {}, el("button.danger", { type: "submit" }, "Delete the feed"), button("Keep it", keep))];
    fill(root, described(feed), form({ class: "stack" }, content, async () => {
      await api.removeFeed(feed.id, { signal: at.signal });
      known.delete(feed.id);
      at.notify(`${feed.name} is deleted.`);
      gone();
    }));
    root.querySelector("form button").focus();
  };
  draw();
  return root;
}

function described(feed) {
  const [text, kind] = TERM_BADGES[feed.redistribution_state] ?? [feed.redistribution_state, ""];
  return [
    el("div.decision-title", {}, el("h3", {}, feed.name), tlp(feed.default_tlp), badge(text, kind),
      !feed.enabled && badge("switched off", "bad")),
    feed.description && el("p", {}, feed.description),
    el("p", {}, el("code", {}, feed.connector_config_ref)),
    facts(feed.last_pull_at ? ["last pulled ", when(feed.last_pull_at)] : "never pulled",
      feed.running_batch_id && el("a", { href: linkTo("batch", { id: feed.running_batch_id }) }, "a pull is running")),
  ];
}

/** Pulls a feed: resolves to its batch, if there is one. The request waits for the pull, but not for ever. */
async function pull(api, at, feed, outcome, clock) {
  const begun = Date.now();
  fill(outcome, el("p", {}, "Pulling …"));
  fill(clock).hidden = false;
  const ticking = setInterval(() => fill(clock, duration((Date.now() - begun) / 1000)), 1000);
  at.signal.addEventListener("abort", () => clearInterval(ticking), { once: true });
  try {
    const { batch } = await api.pullFeed(feed.id, { signal: at.signal });
    fill(outcome, pulled(batch));
    return batch;
  } catch (error) {
    if (!isAbort(error)) fill(outcome, failed(error));
    return null;
  } finally {
    clearInterval(ticking);
    clock.hidden = true;
  }
}

function pulled(batch) {
  const open = (text) => el("a", { href: linkTo("batch", { id: batch.id }) }, text);
  if (batch.status === "pulling") return el("div.notice", {}, "The pull takes longer. ", open("See its progress"));
  const isNews = batch.item_count > 0;
  const staged = isNews ? `${count(batch.item_count, "item")} staged for review.` : "Nothing new is staged.";
  return el("div.notice", { class: isNews ? "good" : "" }, el("p", {}, `${staged} `, open("Open the batch")),
    facts(...received(batch)));
}

function failed(error) {
  const shown = failure(error);
  const details = error.body?.details;
  if (details) shown.append(el("p", {}, details));
  const link = batchOf(error);
  if (link) shown.append(el("p", {}, link));
  return shown;
}

/** The form of a new feed, or of a change. */
function feedForm(api, at, feed, done, cancel) {
  const isNew = feed === null;
  const terms = isNew ? [["", "Choose …"], ...TERMS] : TERMS;
  const levels = isNew ? [["", "Choose …"], ...LEVELS] : LEVELS;
  const url = isNew
    ? field("URL of the collection's objects", el("input", { name: "connector_config_ref", type: "url", required: true,
      placeholder: "https://taxii.example.com/api1/collections/…/objects/" }),
    "TAXII 2.1. The operator lists the servers that may be reached.")
    : el("p", {}, el("code", {}, feed.connector_config_ref));
  const enabled = !isNew && el("label.check", {},
    el("input.switch", { type: "checkbox", role: "switch", name: "enabled", checked: feed.enabled }), "May be pulled");
  const content = [
    el("h3", {}, isNew ? "A new feed" : `Change ${feed.name}`),
    field("Name", el("input", { name: "name", required: true, value: feed?.name ?? "", autocomplete: "off" })),
    url,
    el("div.grid", {},
      field("Marking for objects that have none",
        choice(levels, feed?.default_tlp ?? "", { name: "default_tlp", required: true })),
      field("Redistribution", choice(terms, feed?.redistribution_state ?? "",
        { name: "redistribution_state", required: true }))),
    field("Description", el("input", { name: "description", value: feed?.description ?? "" })),
    enabled,
    el("div.actions", {}, button("Cancel", cancel),
      el("button.primary", { type: "submit" }, isNew ? "Register" : "Save")),
  ];
  return form({ class: "card stack" }, content, async (data) => {
    const answer = isNew
      ? await api.addFeed(valuesOf(data), { signal: at.signal })
      : await changed(api, at, feed, data);
    if (answer) done(answer.feed);
    else cancel();
  });
}

/** Sends what differs, if anything does. */
async function changed(api, at, feed, data) {
  const next = { ...Object.fromEntries(data), enabled: data.has("enabled") };
  const changes = Object.fromEntries(Object.entries(next).filter(([name, value]) => value !== feed[name]));
  if (Object.keys(changes).length === 0) {
    at.notify("Nothing was changed.");
    return null;
  }
  return api.changeFeed(feed.id, changes, { signal: at.signal });
}
