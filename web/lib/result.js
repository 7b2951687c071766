// What a search finds, in the shape that both services share, and the card that shows it.

import { el } from "./dom.js";
import { percent } from "./format.js";
import { marked } from "./marks.js";
import { badge, when } from "./parts.js";
import { reasons } from "./why.js";

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
 * @property {import("./why.js").Why} [why]
 * @property {Links} links
 *
 * @typedef {Object} Links
 * @property {string} [open] Shows all of the result.
 * @property {(entity: string) => string} [entity]
 * @property {(step: import("./why.js").Step) => string} [step]
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
    reasons(result.why, result.type ? "node" : "note", words, links.step, score),
    seen(result, question, words),
    foot.length > 0 && el("p.result-foot", {}, foot));
}

/** The names and words of the question that stand in a result. */
function matches({ title, text, entities, names = [], why }, question, words) {
  const all = [...named(entities, question), ...(why?.matched ? [] : named(names, question))];
  const told = new Set([...all, why?.matched?.text ?? ""].flatMap(partsOf));
  const found = standing(`${title} ${text}`, words).filter((word) => !partsOf(word).every((part) => told.has(part)));
  return [["name", all], ["word", found]].filter(([, list]) => list.length > 0);
}

/** Whether a result was found by more than its meaning, as far as one can tell. */
export function isReasoned(result, question, words) {
  const { shares = {}, matched, path = [], passages = [] } = result.why ?? {};
  return Boolean(matched) || path.length > 0 || shares.words > 0 || shares.graph > 0
    || passages.some(({ text }) => standing(text, words).length > 0)
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
