// The look-up of the management page.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, settled, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

describe("a memory with notes", () => {
  const held = serviceOf("local", {}, (service) =>
    service.ask("POST", "/api/remember", { content: "Beacons of Lathe Group go to 203.0.113.77 and evil.example." }),
  );

  test("shows which values it knows, with the notes that mention them", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/lookup", "Look-up");
      await page.getByLabel("Values", { exact: true }).fill("203.0.113[.]77\nwww.evil.example\n192.0.2.1");
      await page.getByRole("button", { name: "Look up", exact: true }).click();
      await settled(page);
      await page.getByText("3 values: 2 found.").waitFor();
      await accessible(page, "a look-up");
      const rows = page.getByRole("table", { name: "Values" }).locator("tbody tr");
      assert.match(await rows.nth(0).innerText(), /203\.0\.113\.77[\s\S]*known[\s\S]*the value itself/);
      await rows.nth(0).getByRole("link", { name: /^Beacons of Lathe Group/ }).click();
      await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
    }));
});
