// The direction in which a text runs.
//
// Browsers take that of the first letter (`dir="auto"`), which is wrong for an Arabic sentence that begins with the name of
// a group or a tool in Latin letters.

const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}]/u;
/** A word of a running text. Names of threats have capitals, digits or points in them. */
const RUNNING = /^\p{P}*(?:\p{Ll}|\p{Lo})[\p{Ll}\p{Lo}\p{M}]*\p{P}*$/u;
/** Most characters that are looked at; those after them run as the text begins. */
const ENOUGH = 2000;

/** Whether a text has letters that run from right to left. */
export const runsLeft = (text) => RIGHT_TO_LEFT.test(text);

/**
 * The value of `dir` for a text: `auto`, unless the words that are no names tell of another direction than the first letter.
 *
 * @param {string} text
 * @returns {"auto"|"rtl"|"ltr"}
 */
export function directionOf(text) {
  if (!runsLeft(text)) return "auto";
  const words = text.slice(0, ENOUGH).split(/\s+/);
  const left = words.filter(runsLeft).length;
  const right = words.filter((word) => RUNNING.test(word) && !runsLeft(word)).length;
  const first = /\p{L}/u.exec(text)?.[0] ?? "";
  if (left === right || (left > right) === runsLeft(first)) return "auto";
  return left > right ? "rtl" : "ltr";
}
