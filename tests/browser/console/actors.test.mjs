// How busy the service is.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, fits, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

describe("load", () => {
  const held = serviceOf("hosted");

  test("shows each actor's permits, and that nothing waits", () => visiting(held.service, {}, async (visit) => {
    const page = await signedIn(visit, "#/actors");
    await page.getByRole("heading", { name: "Load of the actors" }).waitFor();
    await page.getByText("Nothing waits long").waitFor();
    const rows = page.getByRole("row").filter({ hasText: "graph_store" });
    assert.equal(await rows.count(), 2, "reads and writes");
    await accessible(page, "load");
    await fits(page, "load");
    await page.getByRole("button", { name: "Refresh" }).click();
    await rows.first().waitFor();
  }));
});
