// Waiting for a condition.

import assert from "node:assert/strict";

// The machine may be busy; nothing takes so long unless something is wrong.
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 30_000);

/** Waits until `found` resolves to something true, and resolves to it. */
export async function until(found, what, ms = PATIENCE_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await found();
    if (value) return value;
    if (Date.now() > end) assert.fail(`after ${ms} ms: ${what}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
  }
}
