// The text that somebody is about to have read. It is kept while the page is open, and in memory only.

let draft = { values: {}, batch: null };

/** What was filled in by name, and the `batch` that was made of it. */
export const drafted = () => draft;

export function keepDraft(values, batch = null) {
  draft = { values, batch };
}

/** Forgets a text that is in a batch already. */
export function forgetRead() {
  if (draft.batch) keepDraft({});
}
