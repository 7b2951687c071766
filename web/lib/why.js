// How a question was understood and why a result was found, as far as the service tells. What is missing is not shown.

import { el } from "./dom.js";
import { count, percent } from "./format.js";
import { marked } from "./marks.js";
import { joined } from "./parts.js";

/**
 * Why a result was found.
 *
 * @typedef {Object} Why
 * @property {{words?: number, meaning?: number, graph?: number, evidence?: number}} [shares] Each 0 to 1, together 1.
 * @property {{kind: "name"|"alias"|"identifier", text: string}} [matched] What of it the question names.
 * @property {Step[]} [path] From what the question names to what was found.
 * @property {{id: string, text: string, share?: number}[]} [passages] Texts that speak for it, strongest first.
 *
 * A step of a path. The `relationship` is that between the step before and this one; it leads to this one if it is
 * `outgoing`.
 *
 * @typedef {{id: string, name: string, relationship?: string, outgoing?: boolean}} Step
 *
 * How a question was understood. The `period` has its first instant and the first one after it.
 *
 * @typedef {Object} Understood
 * @property {{text: string, nodes?: string[], id?: string, name?: string}[]} [names] As the question has them, with the
 *   nodes that have them, or the one, which may have another `name`.
 * @property {string[]} [wanted] Kinds of what is asked for.
 * @property {string[]} [through] Kinds of what leads to it.
 * @property {{since?: string|null, until?: string|null}} [period]
 */

/** Most passages that are shown unasked, and most characters of one. */
const PASSAGES = 3;
const PASSAGE = 400;
const SHARES = ["words", "meaning", "graph", "evidence"];
/** Shares below half a percent are no reason. */
const LEAST = .005;
const MATCHES = {
  node: {
    name: (text) => [text, " is its name."],
    alias: (text) => [text, " is another name of it."],
    identifier: (text) => [text, " is its identifier."],
  },
  note: {
    name: (text) => ["It mentions ", text, "."],
    alias: (text) => ["It mentions what is also called ", text, "."],
    identifier: (text) => ["It mentions what ", text, " identifies."],
  },
};

/**
 * The reasons for a result.
 *
 * @param {Why} [why]
 * @param {"node"|"note"} kind
 * @param {string[]} words Those to be marked.
 * @param {(step: Step) => string} [link]
 * @param {number} [score] Of which the shares are parts.
 */
export function reasons({ shares, matched, path = [], passages = [] } = {}, kind, words, link, score = 1) {
  const parts = [
    shares && shareBar(shares, score),
    MATCHES[kind][matched?.kind] && el("p", {}, MATCHES[kind][matched.kind](el("q", {}, matched.text))),
    path.length > 0 && pathLine(path, link),
    passages.length > 0 && passageList(passages, words),
  ].filter(Boolean);
  return parts.length > 0 && el("div.why", { role: "group", "aria-label": "Why it was found" }, parts);
}

function shareBar(shares, score) {
  const given = SHARES.filter((name) => shares[name] >= LEAST);
  if (given.length === 0) return null;
  const parts = given.map((name) => `${name} ${percent(shares[name] * score)}`);
  return el("div.shares", {},
    el("div.share-bar", { role: "img", "aria-label": `Shares of the score: ${parts.join(", ")}` },
      given.map((name) => el(`span.share-${name}`, { vars: { "--share": shares[name] } }))),
    el("ul.plain-list.share-legend", { "aria-hidden": "true" },
      given.map((name, at) => el("li", {}, el(`span.swatch.share-${name}`), parts[at]))));
}

function pathLine(path, link) {
  return el("ol.plain-list.path", { "aria-label": "Path" }, path.map((step) => el("li", {},
    step.relationship && relation(step),
    link ? el("a", { href: link(step) }, step.name) : el("span", {}, step.name))));
}

/** `—uses→`, or `←uses—` if the relationship points back. */
function relation({ relationship, outgoing }) {
  const line = (text) => el("span", { "aria-hidden": "true" }, text);
  return el("span.relation", {}, el("span.unseen", {}, "by the relationship "),
    line(outgoing === false ? "←" : "—"), el("bdi", {}, relationship), line(outgoing === true ? "→" : "—"),
    el("span.unseen", {}, outgoing === false ? " from " : " to "));
}

function passageList(passages, words) {
  const item = ({ text }) => el("li", {}, el("q", {}, marked(cut(text), words)));
  const more = passages.slice(PASSAGES);
  return [
    el("ul.passages", {}, passages.slice(0, PASSAGES).map(item)),
    more.length > 0 && el("details.more-passages", {},
      el("summary", {}, `${count(more.length, "more passage")}`), el("ul.passages", {}, more.map(item))),
  ];
}

function cut(text) {
  if (text.length <= PASSAGE) return text;
  const space = text.lastIndexOf(" ", PASSAGE);
  return `${text.slice(0, space > PASSAGE / 2 ? space : PASSAGE).toWellFormed()} …`;
}

/**
 * How the question was understood, in one line.
 *
 * @param {Understood} [question]
 * @param {(node: string) => string} link To a node that the question names.
 */
export function understood(question, link) {
  const { names = [], wanted = [], through = [], period } = question ?? {};
  const kinds = (list) => joined(list.map((kind) => kind.replaceAll("_", " ")));
  const name = ({ text, nodes = [], id = nodes.length === 1 ? nodes[0] : "", name: own = text }) => [
    id ? el("a", { href: link(id) }, text) : text, folded(own) !== folded(text) && ` (${own})`,
  ];
  const time = period && timeOf(period);
  const parts = [
    wanted.length > 0 && ["Asked for: ", kinds(wanted)],
    through.length > 0 && ["by way of ", kinds(through)],
    names.length > 0 && [wanted.length > 0 && "related to ", joined(names.map(name))],
    time,
  ].filter(Boolean);
  if (parts.length === 0) return null;
  if (wanted.length === 0) parts[0] = ["Recognized: ", parts[0]];
  return el("p.understood", {}, parts.map((part, at) => [at > 0 && " — ", part]));
}

/** A name without what people write differently in it. */
const folded = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

const DAY_MS = 86_400_000;

/** A period in days of UTC. */
function timeOf({ since, until }) {
  const day = (time) => (Number.isNaN(time) ? "" : new Date(time).toISOString().slice(0, 10));
  const first = since ? day(Date.parse(since)) : "";
  // The period ends before this instant, so that a whole day in it is the one before.
  const last = until ? day(Date.parse(until) - 1) : "";
  return first && last ? (first === last ? first : `${first} to ${last}`)
    : first ? `since ${first}` : last && `before ${day(Date.parse(last) + DAY_MS)}`;
}
