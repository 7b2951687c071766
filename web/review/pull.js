// Pulls of threat feeds: what a batch says, and following one that still runs.

import { waited } from "../lib/client.js";
import { el } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { badge } from "../lib/parts.js";
import { linkTo } from "../lib/shell.js";

const OFTEN = 5000;
const SELDOM = 15_000;
/** After so long, a pull is asked for less often. */
const LONG = 60_000;

const KINDS = { pulling: "accent", review: "warn", failed: "bad", committed: "good" };

/** The badge of a batch's state. */
export const batchBadge = (batch) => badge(batch.status, KINDS[batch.status] ?? "");

export const kindOf = (batch) => (batch.input_kind === "stix_bundle" ? "uploaded bundle" : "pull");

/** What a batch has received, as facts. */
export function received(batch) {
  return [count(batch.pages, "page"), count(batch.objects, "object"), `${number(Math.ceil(batch.bytes / 1024))} KiB`,
    batch.unchanged > 0 && `${number(batch.unchanged)} known already`,
    batch.unreadable > 0 && `${number(batch.unreadable)} unreadable`];
}

/** A link to the batch that an error names, if it names one. */
export function batchOf(error) {
  const named = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(`${error.message} ${error.body?.details ?? ""}`);
  return named && el("a", { href: linkTo("batch", { id: named[0] }) }, "Open its batch");
}

/** Reads a batch now and then until its pull has ended. Does nothing while the page is not looked at. */
export async function follow(read, seen, signal) {
  const begun = Date.now();
  for (;;) {
    await waited(Date.now() - begun < LONG ? OFTEN : SELDOM, signal);
    await visible(signal);
    if (signal.aborted) return;
    try {
      const answer = await read();
      seen(answer);
      if (answer.batch.status !== "pulling") return;
    } catch (error) {
      if (error.status !== 429) throw error;
      await waited(error.retryAfter * 1000, signal);
    }
  }
}

function visible(signal) {
  if (!document.hidden || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    document.addEventListener("visibilitychange", resolve, { once: true, signal });
    signal.addEventListener("abort", resolve, { once: true });
  });
}
