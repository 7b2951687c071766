// Texts that run from right to left, alone and with names in Latin letters, where they are written and where they are shown.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { settled, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

/** Texts with the direction in which a reader begins each. */
const TEXTS = [
  ["استخدمت مجموعة APT29 أداة Cobalt Strike", "rtl"],
  ["APT29 و APT28 استخدمتا Cobalt Strike", "rtl"],
  ["Sandworm הפיצה את NotPetya דרך עדכון תוכנה", "rtl"],
  ["The group signs as سايبر", "ltr"],
  ["سايبر is how the group signs its posts in the forum", "ltr"],
  ["Sandworm used NotPetya", "ltr"],
];
const directionOf = (element) => element.evaluate((shown) => getComputedStyle(shown).direction);

describe("a text that runs from right to left", () => {
  const held = serviceOf("local", {}, async (service) => {
    for (const [content] of TEXTS) await service.ask("POST", "/api/remember", { content, source_type: "manual" });
  });

  for (const [text, direction] of TEXTS) {
    test(`runs ${direction} wherever it is written and shown: ${text}`, () =>
      visiting(held.service, {}, async ({ page, service }) => {
        await page.goto(`${service.base}/#/search`);
        const question = page.getByLabel("Question");
        await question.fill(text);
        assert.equal(await directionOf(question), direction, "as it is written");
        await question.press("Enter");
        await settled(page);
        const title = page.getByRole("heading", { level: 3, name: text }).first();
        const shown = title.getByRole("link");
        assert.equal(await directionOf(shown), direction, "as a result");
        await shown.click();
        await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
        assert.equal(await directionOf(page.getByRole("main").getByText(text).last()), direction, "as a note");
        await page.goto(`${service.base}/#/search?q=${encodeURIComponent(text)}`);
        assert.equal(await directionOf(page.getByLabel("Question")), direction, "as the URL has it");
      }));
  }

  test("turns every field in which people write by what is written", () =>
    visiting(held.service, {}, async ({ page, service }) => {
      for (const view of ["search", "ingest", "entities", "graph", "history", "logs"]) {
        await page.goto(`${service.base}/#/${view}`);
        await settled(page);
        for (const field of await page.locator("textarea, input[type=search], input[type=text]").all()) {
          assert.ok(await field.getAttribute("dir"), `${view}: ${await field.evaluate((it) => it.outerHTML)}`);
        }
      }
    }));
});
