// What a search finds, in the shape that both services share, and the card that shows it.

import { el } from "./dom.js";
import { percent } from "./format.js";
import { marked } from "./marks.js";
import { badge, when } from "./parts.js";

/**
 * Something found.
 *
 * @typedef {Object} Result
 * @property {string} id
 * @property {string} title
 * @property {string} text What follows the title.
 * @property {string} [type] Of a node.
 * @property {Node[]} badges
 * @property {number} [confidence] 0 to 1.
 * @property {number} [score] Orders the results of one answer.
 * @property {string} [createdAt]
 * @property {string[]} entities What it mentions.
 * @property {string[]} [names] Other names of what was found.
 * @property {(Node|string)[]} [facts] What else the foot of the card says.
 * @property {Why} [why]
 * @property {Links} links
 *
 * Why it was found, as far as the service tells. What is missing is not shown.
 *
 * @typedef {Object} Why
 * @property {{words?: number, meaning?: number, graph?: number, evidence?: number}} [shares] Each 0 to 1, together 1.
 * @property {{name: string, of?: string}} [alias] The name in the question, and what it is a name of.
 * @property {Step[]} [path] From what the question names to what was found.
 * @property {string[]} [passages] The parts of the text that fit.
 *
 * A step of a path; `relation` leads to it from the step before.
 *
 * @typedef {{id: string, name: string, relation?: string}} Step
 *
 * @typedef {Object} Links
 * @property {string} [open] Shows all of the result.
 * @property {(entity: string) => string} [entity]
 * @property {(step: Step) => string} [step]
 */

const TIERS = {
  a: ["good", "Entered by a person"],
  b: ["accent", "From a report or a feed"],
  c: ["", "Written by a model, or without a known source"],
};

/** The badge of a tier. */
export function tierBadge(tier) {
  const [kind, title] = TIERS[tier] ?? ["", ""];
  return badge(`Tier ${String(tier).toUpperCase()}`, kind, title);
}

/** Names as links, or as texts. */
export function chips(names, link) {
  if (names.length === 0) return null;
  const chip = (name) => (link
    ? el("a.chip", { href: link(name), title: name }, name) : el("span.chip", { title: name }, name));
  return el("ul.chips.plain-list", {}, names.map((name) => el("li", {}, chip(name))));
}

/** Those of the words that stand in a text. */
const standing = (text, words) => words.filter((word) => marked(text, [word]).length > 1);

const slug = (text) => `-${text.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean).join("-")}-`;
const partsOf = (text) => text.toLowerCase().match(/\p{L}+|\p{N}+/gu) ?? [];

/** Those of the names that a question contains, however they are spaced and hyphenated: `APT 28`, `APT-28`, `APT28`. */
export function named(names, question) {
  const asked = slug(question);
  return names.filter((name) => {
    const parts = partsOf(name);
    return parts.length > 0 && new RegExp(`-${parts.join("-?")}-`, "u").test(asked);
  });
}

/**
 * A result as a card.
 *
 * @param {Result} result
 * @param {string} question
 * @param {string[]} words Those of the question that are marked.
 */
export function card(result, question, words) {
  const { title, text, links, confidence, score, createdAt } = result;
  const marks = [...words, ...named(result.entities, question)];
  const heading = marked(title, marks);
  const foot = [
    ...(result.facts ?? []).map((fact) => el("span", {}, fact)),
    confidence !== undefined && el("span", { title: "How far it can be relied on, not how well it fits the question" },
      `${result.type ? "node" : "note"} confidence ${percent(confidence)}`),
    score !== undefined && el("span", { title: "Orders the results of this answer only" }, `score ${score.toFixed(2)}`),
    createdAt && when(createdAt),
  ].filter(Boolean);
  return el("article.card.result", {},
    el("div.result-head", {},
      el("h3", {}, links.open ? el("a", { href: links.open }, heading) : heading),
      el("div.row", {}, result.badges)),
    text && el("p.result-text", {}, marked(text, marks)),
    chips(result.entities, links.entity),
    reasons(result, words),
    seen(result, question, words),
    foot.length > 0 && el("p.result-foot", {}, foot));
}

/** What the service tells. */
function reasons({ why = {}, links }, words) {
  const { shares, alias, path = [], passages = [] } = why;
  const parts = [
    shares && shareBar(shares),
    alias && el("p", {}, el("q", {}, alias.name),
      alias.of ? [" is a name of ", el("bdi", {}, alias.of)] : " is one of its names"),
    path.length > 0 && pathLine(path, links),
    passages.length > 0 && el("ul.passages", {}, passages.map((text) => el("li", {}, marked(text, words)))),
  ].filter(Boolean);
  return parts.length > 0 && el("div.why", { role: "group", "aria-label": "Why it was found" }, parts);
}

/** The names and words of the question that stand in a result. */
function matches({ title, text, entities, names = [], why }, question, words) {
  const all = [...named(entities, question), ...(why?.alias ? [] : named(names, question))];
  const told = new Set(all.flatMap(partsOf));
  const found = standing(`${title} ${text}`, words).filter((word) => !partsOf(word).every((part) => told.has(part)));
  return [["name", all], ["word", found]].filter(([, list]) => list.length > 0);
}

/** Whether a result was found by more than its meaning, as far as one can tell. */
export function isReasoned(result, question, words) {
  const { shares = {}, alias, path = [] } = result.why ?? {};
  return Boolean(alias) || path.length > 0 || shares.words > 0 || shares.graph > 0
    || matches(result, question, words).length > 0;
}

/** What the page itself can tell: what of the question stands here. */
function seen(result, question, words) {
  const parts = matches(result, question, words);
  if (parts.length === 0) return null;
  return el("p.result-match", {}, "Matched ", parts.map(([kind, list], at) => [
    at > 0 && " and ", `the ${kind}${list.length > 1 ? "s" : ""} `,
    list.map((name, position) => [position > 0 && ", ", el("strong", {}, name)]),
  ]));
}

const SHARES = [["words", "words"], ["meaning", "meaning"], ["graph", "graph"], ["evidence", "evidence"]];

function shareBar(shares) {
  const given = SHARES.filter(([key]) => shares[key] > 0);
  const parts = given.map(([key, label]) => `${label} ${percent(shares[key])}`);
  return el("div.shares", {},
    el("div.share-bar", { role: "img", "aria-label": `Shares of the score: ${parts.join(", ")}` },
      given.map(([key]) => el(`span.share-${key}`, { vars: { "--share": shares[key] } }))),
    el("ul.plain-list.share-legend", { "aria-hidden": "true" },
      given.map(([key], at) => el("li", {}, el(`span.swatch.share-${key}`), parts[at]))));
}

function pathLine(path, links) {
  return el("ol.plain-list.path", { "aria-label": "Path" }, path.map((step) => el("li", {},
    step.relation && el("span.relation", {}, el("bdi", {}, step.relation), el("span", { "aria-hidden": "true" }, " →")),
    links.step ? el("a", { href: links.step(step) }, step.name) : step.name)));
}
