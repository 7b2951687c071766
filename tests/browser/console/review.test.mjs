// The review of staged entities.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, fits, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const TEXT =
  "TLP:GREEN Sandworm Team uses Industroyer. It was seen at hxxp://198.51.100[.]7/a and exploits CVE-2014-4114.";
const decision = (page, name) => page.getByRole("group", { name: `Decision on ${name}` });
const status = (page, name) => page.getByRole("main").getByRole("button", { name });

async function names(service, query) {
  const { results } = await service.ask("GET", `/api/recall/search?mode=structured&q=${encodeURIComponent(query)}`);
  return results.map(({ name }) => name);
}

describe("review", () => {
  const held = serviceOf("hosted");

  test("turns what was accepted into nodes, and nothing else", () =>
    visiting(held.service, {}, async (visit) => {
      const { service } = visit;
      const page = await signedIn(visit, "#/review");
      await page.getByLabel("Text", { exact: true }).fill(TEXT);
      await page.getByRole("button", { name: "Find the entities" }).click();
      await decision(page, "Sandworm Team").waitFor();
      await accessible(page, "a batch");
      await page.setViewportSize({ width: 360, height: 740 });
      await fits(page, "a batch on a phone");
      await page.setViewportSize({ width: 1280, height: 800 });
      assert.deepEqual(await names(service, "Sandworm Team"), [], "nothing is a node before the commit");

      await decision(page, "Sandworm Team").getByRole("button", { name: "Accept" }).click();
      await decision(page, "Industroyer").getByRole("button", { name: "Reject" }).click();
      await status(page, "accepted 1").waitFor();
      await status(page, "rejected 1").waitFor();
      await decision(page, "CVE-2014-4114").getByRole("button", { name: "Accept" }).focus();
      await page.keyboard.press("a");
      await status(page, "accepted 2").waitFor();
      await page.reload();
      await page.getByLabel("E-mail").waitFor();
      const batch = new URLSearchParams(page.url().split("?")[1]).get("batch");

      const again = await signedIn(visit, `#/review?batch=${batch}`);
      await status(again, "accepted 2").waitFor();
      await again.getByRole("button", { name: "Commit …" }).click();
      const dialog = again.getByRole("dialog");
      await dialog.getByText(/2 accepted entities become nodes/).waitFor();
      await accessible(again, "the commit");
      await dialog.getByRole("button", { name: "Commit", exact: true }).click();
      await again.getByText(/Committed: 2 nodes created/).waitFor();
      assert.deepEqual(await names(service, "Sandworm Team"), ["Sandworm Team"]);
      assert.deepEqual(await names(service, "Industroyer"), []);
      await until(async () => (await status(again, /^committed 2/).count()) === 1, "what is committed is shown so");
    }));

  test("says what is wrong with a text", () =>
    visiting(held.service, { expected: [/status of 400/] }, async (visit) => {
      const page = await signedIn(visit, "#/review");
      await page.getByLabel("Text", { exact: true }).fill("nothing to be found in here at all");
      await page.getByRole("button", { name: "Find the entities" }).click();
      await page.getByText("The text names nothing known").waitFor();
      await page.getByRole("link", { name: "Read another text" }).first().click();
      await page.getByLabel("Text", { exact: true }).fill("Sandworm Team uses Industroyer.");
      await page.getByLabel("Marking", { exact: true }).selectOption("TLP:RED");
      await page.getByRole("button", { name: "Find the entities" }).click();
      await page.getByRole("alert").filter({ hasText: /TLP/ }).waitFor();
      assert.equal(await page.getByLabel("Marking", { exact: true }).getAttribute("aria-invalid"), "true");
    }));
});
