// A service for the tests of a file or of a `describe`.

import { after, before } from "node:test";
import { closeChromium } from "./page.mjs";
import { running } from "./service.mjs";

/**
 * Starts a service before the tests and ends it, and Chromium, after them.
 *
 * @param {"local"|"hosted"} kind
 * @param {object} [options] Those of `Service`.
 * @param {(service: Service) => Promise<unknown>} [seed] Fills it.
 * @returns {{service: Service}} Filled once the tests run.
 */
export function serviceOf(kind, options = {}, seed = () => null) {
  const held = { service: null, seeded: null };
  before(async () => {
    held.service = await running(kind, options);
    held.seeded = await seed(held.service);
  });
  after(async () => {
    await closeChromium();
    await held.service?.end();
  });
  return held;
}
