// One complete note.

import { el, fill } from "../lib/dom.js";
import { moment, percent } from "../lib/format.js";
import { literal, marked, wordsOf } from "../lib/marks.js";
import { badge, button } from "../lib/parts.js";
import { chips, tierBadge } from "../lib/result.js";
import { emptiness, linkTo } from "../lib/shell.js";
import { actions, versions } from "../local/corrections.js";

/** The part of a text that names its note, in characters. */
const NAMED = 100;

/** Shown with `id`, and optionally `quote` and `q` to be marked. */
export const note = (api) => ({
  id: "note",
  title: "Note",
  style: "search.css",
  hidden: true,
  show: (root, at) => showNote(api, root, at),
});

async function showNote(api, root, at) {
  const id = at.params.get("id");
  if (!id) {
    fill(root, emptiness("No note is chosen.", el("a", { href: linkTo("search") }, "Search for one")));
    return;
  }
  fill(root, el("p.muted", { role: "status" }, "Loading …"));
  const found = await api.note(id, { signal: at.signal }).catch((error) => {
    if (error.status !== 404) throw error;
    return null;
  });
  if (!found) return void fill(root, missing(at.params.get("q")));
  at.name(found.content.slice(0, NAMED));
  const text = el("div.note-text.pre", { tabindex: -1 });
  fill(root, el("div.stack", {}, warnings(found),
    el("article.card.stack", {},
      head(found, at), text, chips(found.entities, (q) => linkTo("search", { q })), facts(found),
      actions(api, found, at, { changed: () => showNote(api, root, at) })),
    versions(found)));
  showText(text, found.content, at.params.get("quote"), at.params.get("q"));
}

const missing = (q) => emptiness("There is no such note.", "It may have been removed. ",
  el("a", { href: linkTo("search", { q }) }, q ? "Search again" : "Search for one"), ".");

function head(found, at) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(found.content);
      at.notify("The text is copied.");
    } catch {
      at.notify("The browser does not allow copying.", "bad");
    }
  };
  const question = at.params.get("q");
  return el("div.spread", {},
    el("div.row", {}, tierBadge(found.tier), badge(found.domain), badge(`confidence ${percent(found.confidence)}`),
      found.flags.map((flag) => badge(flag, "warn"))),
    el("div.row", {},
      question && el("a.button", { href: linkTo("search", { q: question }) }, "Search again"),
      el("a.button", { href: linkTo("graph", { around: found.id }) }, "Show in the graph"),
      button("Copy the text", copy)));
}

const INJECTION = "prompt-injection";

function warnings({ flags, superseded_by: newer }) {
  return [
    newer && el("div.notice.warn", {}, el("p", {}, "A newer note says nearly the same and superseded this one. ",
      el("a", { href: linkTo("note", { id: newer }) }, "Open the newer note"))),
    flags.some((flag) => flag.startsWith(INJECTION)) && el("div.notice.bad", {}, el("p", {},
      "The text reads like instructions to a language model. It is treated as data, ",
      "and what reads so is not cited in answers.")),
  ];
}

/** The text with the quote marked and in view, or else with the words of the question marked. */
function showText(place, content, quote, question) {
  const range = quote ? rangeOf(content, quote) : null;
  if (!range) {
    fill(place, marked(content, wordsOf(question ?? "")));
    return;
  }
  const mark = el("mark.quote", {}, content.slice(...range));
  fill(place, content.slice(0, range[0]), mark, content.slice(range[1]));
  mark.scrollIntoView({ block: "center" });
}

/** Where a quote stands, whatever its white space. */
function rangeOf(content, quote) {
  const parts = quote.trim().split(/\s+/).map(literal);
  const found = new RegExp(parts.join("\\s+"), "iu").exec(content);
  return found && [found.index, found.index + found[0].length];
}

function facts(found) {
  const sources = found.source_refs.length > 0 ? found.source_refs : [found.source_ref].filter(Boolean);
  const entries = [
    ["Created", moment(found.created_at)],
    ["Kind of source", found.source_type],
    [sources.length > 1 ? "Sources" : "Source", sources.length > 0
      ? el("ul.plain-list", {}, sources.map((source) => el("li", {}, reference(source))))
      : el("span.muted", {}, "not stated")],
    ["Id", el("code", {}, found.id)],
  ];
  return el("dl.facts", {}, entries.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

/** A link if it is one to the web, otherwise a text. */
function reference(source) {
  const isLink = /^https?:\/\//i.test(source) && URL.canParse(source);
  return isLink ? el("a", { href: source, rel: "noopener noreferrer", target: "_blank" }, source) : source;
}
