// Marks the words of a question in a text.

import { el } from "./dom.js";

const ORDINARY = new Set(("a an and are as at be by did do does for from had has have how in is it its of on or that "
  + "the their they this to use used uses using was were what when where which who whom whose why will with").split(" "));

/** Letters from which a word is marked in longer ones, such as its plural: "off" is no part of "office". */
const STEM = 4;

/** The words of a question that are worth marking, in lower case. */
export function wordsOf(question) {
  const words = question.toLowerCase().match(/[\p{L}\p{N}][\p{L}\p{N}._:/-]*[\p{L}\p{N}]|[\p{L}\p{N}]/gu) ?? [];
  return [...new Set(words)].filter((word) => word.length > 1 && !ORDINARY.has(word));
}

/** A text as the source of a regular expression that matches it. */
export const literal = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");

/** What may not follow a word, as the source of a regular expression: "fin" is marked in FIN7, "apt2" not in APT28. */
function endOf(word) {
  const letters = word.length < STEM ? "(?!\\p{L})" : "";
  return letters + (/\p{N}$/u.test(word) ? "(?!\\p{N})" : "");
}

/** A text as nodes, with these words in `<mark>` where they begin a word. */
export function marked(text, words) {
  const known = words.filter((word) => word.trim() !== "");
  if (known.length === 0) return [text];
  const longestFirst = known.sort((a, b) => b.length - a.length).map((word) => literal(word) + endOf(word));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${longestFirst.join("|")})`, "giu");
  const nodes = [];
  let end = 0;
  for (const found of text.matchAll(pattern)) {
    if (found.index > end) nodes.push(text.slice(end, found.index));
    nodes.push(el("mark", {}, found[0]));
    end = found.index + found[0].length;
  }
  nodes.push(text.slice(end));
  return nodes;
}
