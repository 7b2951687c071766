// Sends notes in batches, waits when the service is busy, and knows what became of each note.

import { ApiError, isAbort, waited } from "../lib/client.js";

/**
 * A note on its way.
 *
 * @typedef {Object} Item
 * @property {import("./items.js").Note} note
 * @property {string} from Where it comes from.
 * @property {"waiting"|"sending"|"created"|"duplicate"|"updated"|"failed"} state
 * @property {boolean} [isQueued] Whether it will be sent without being asked for.
 * @property {string} [error]
 * @property {boolean} [hopeless] Whether it was refused before it was sent, so that sending can't help.
 * @property {string} [id]
 * @property {string[]} [entities]
 */

export const STATES = ["waiting", "sending", "created", "duplicate", "updated", "failed"];
const MOST_ITEMS = 100;
const MOST_BYTES = 8 << 20;
const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 30_000;
const NO_CAPACITY = /^Write capacity exhausted/;

export class Sender {
  /** @type {Item[]} */
  items = [];
  counts = Object.fromEntries(STATES.map((state) => [state, 0]));
  isBusy = false;
  /** Whether it stops after the current batch. */
  isStopping = false;
  /** Why it waits, and until when. */
  pause = null;
  /** Why it stopped. */
  problem = null;
  #queue = [];
  #pauses = 0;
  #most = MOST_ITEMS;
  #halt = new AbortController();
  #leave = new AbortController();
  #ingest;
  /** Called after every change. */
  changed = () => {};

  /** @param {(notes: import("./items.js").Note[], signal: AbortSignal) => Promise<{results: any[]}>} ingest */
  constructor(ingest) {
    this.#ingest = ingest;
  }

  /** @param {Item[]} items They come before those that are on the list. */
  add(items) {
    this.items = items.concat(this.items);
    for (const item of items) this.counts[item.state] += 1;
    this.changed();
  }

  clear() {
    this.items = [];
    this.#queue = [];
    for (const state of STATES) this.counts[state] = 0;
    this.problem = null;
    this.changed();
  }

  /** Sends these items, after those that are being sent. */
  async start(items) {
    for (const item of items) this.#set(item, "waiting");
    for (const item of items) item.isQueued = true;
    this.#queue = this.#queue.concat(items);
    this.problem = null;
    if (this.isBusy) return;
    this.isBusy = true;
    this.isStopping = false;
    this.#halt = new AbortController();
    this.#leave = new AbortController();
    try {
      while (this.#queue.length > 0 && !this.isStopping) await this.#sendBatch(this.#nextBatch());
    } catch (error) {
      if (!isAbort(error)) this.problem = error;
    }
    for (const item of this.#queue) item.isQueued = false;
    this.#queue = [];
    this.isBusy = false;
    this.isStopping = false;
    this.changed();
  }

  /** Stops after the current batch. What was not sent goes on waiting. */
  stop() {
    if (!this.isBusy) return;
    this.isStopping = true;
    this.#halt.abort();
    this.changed();
  }

  /** Stops at once. */
  abandon() {
    this.stop();
    this.#leave.abort();
  }

  #set(item, state, error = "") {
    this.counts[item.state] -= 1;
    this.counts[state] += 1;
    item.state = state;
    item.error = error;
    if (state === "failed") item.isQueued = false;
  }

  #nextBatch() {
    const encoder = new TextEncoder();
    let bytes = 0;
    let size = 0;
    while (size < Math.min(this.#most, this.#queue.length)) {
      bytes += encoder.encode(JSON.stringify(this.#queue[size].note)).length;
      if (size > 0 && bytes > MOST_BYTES) break;
      size += 1;
    }
    return this.#queue.splice(0, size);
  }

  async #sendBatch(batch) {
    for (const item of batch) this.#set(item, "sending");
    this.changed();
    try {
      const { results } = await this.#ingest(batch.map(({ note }) => note), this.#leave.signal);
      await this.#settle(batch, results);
    } catch (error) {
      await this.#failed(batch, error);
    }
    this.changed();
  }

  /** What became of each item. What the service had no room for is sent again. */
  async #settle(batch, results) {
    const again = [];
    batch.forEach((item, at) => {
      const { success, status, note_id: id, entities, error = "The service does not say." } = results[at] ?? {};
      if (success) {
        this.#set(item, status);
        Object.assign(item, { id, entities });
      } else if (NO_CAPACITY.test(error)) {
        again.push(item);
      } else {
        this.#set(item, "failed", error);
      }
    });
    if (again.length < batch.length) this.#pauses = 0;
    if (again.length > 0) await this.#later(again, "The service is busy writing.", 0);
  }

  /** A request that failed as a whole. What can't be helped here stops everything. */
  async #failed(batch, error) {
    if (error instanceof ApiError && [429, 503].includes(error.status)) {
      await this.#later(batch, error.message.replace(/ Try again in .*$/, ""), error.retryAfter);
    } else if (error instanceof ApiError && error.status === 413 && batch.length > 1) {
      this.#most = Math.ceil(batch.length / 2);
      this.#back(batch);
    } else if (error instanceof ApiError && [400, 413, 422].includes(error.status)) {
      this.#blame(batch, error);
    } else {
      this.#back(batch);
      throw error;
    }
  }

  /** Fails the items that an error names, and sends the others again; all of them if it names none. */
  #blame(batch, error) {
    const faults = new Map(error.fields.map(({ path, message }) => {
      const [, at, field] = /^items\.(\d+)\.?(.*)$/.exec(path) ?? [];
      return [Number(at), field ? `${field}: ${message}` : message];
    }));
    const isNamed = batch.some((_, at) => faults.has(at));
    batch.forEach((item, at) => {
      if (!isNamed || faults.has(at)) this.#set(item, "failed", faults.get(at) ?? error.message);
    });
    this.#back(batch.filter(({ state }) => state === "sending"));
  }

  #back(items) {
    for (const item of items) this.#set(item, "waiting");
    this.#queue.unshift(...items);
  }

  async #later(items, why, seconds) {
    this.#back(items);
    const ms = seconds * 1000 || Math.min(FIRST_PAUSE * 2 ** this.#pauses, LONGEST_PAUSE);
    this.#pauses += 1;
    this.pause = { why, until: Date.now() + ms };
    this.changed();
    await waited(ms, this.#halt.signal);
    this.pause = null;
  }
}
