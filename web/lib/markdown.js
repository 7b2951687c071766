// Takes the Markdown out of descriptions such as those of MITRE ATT&CK.

const LINK = /!?\[([^[\]]*)\]\((?:https?:|\/)[^()\s]*(?:\([^()\s]*\)[^()\s]*)*\)/gi;
const CITATION = / ?\(Citation:[^()]*(?:\([^()]*\)[^()]*)*\)/g;
const CODE = /<\/?code>/gi;

/** A text with the texts of its links only, and without citations. */
export const plain = (text) => text.replace(LINK, "$1").replace(CITATION, "").replace(CODE, "").trim();
