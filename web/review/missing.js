// What is said of a batch that is not there.

import { fill } from "../lib/dom.js";
import { emptiness } from "../lib/shell.js";

/** Resolves to the answer, or to `null` if there is no such batch: then `root` says so, with what to do `next`. */
export async function unlessMissing(read, root, next) {
  try {
    return await read;
  } catch (error) {
    if (error.status !== 404) throw error;
    fill(root, emptiness("There is no such batch", "Its id is mistyped, or its marking hides it. ", next, "."));
    return null;
  }
}
