// The history of questions.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { visiting } from "../support/page.mjs";
import { notes } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";

const QUESTIONS = ["Which actors attack hospitals?", "When was Snake seen?", "How is APT28 related to X-Agent?"];
const rows = (page) => page.getByRole("table", { name: "Questions" }).locator("tbody tr");

describe("nothing was asked", () => {
  const held = serviceOf("local");

  test("and the page says what to do", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/history", "History");
      await page.getByText(/Nothing was asked/).waitFor();
      assert.ok(await page.getByRole("button", { name: "Export as JSON" }).isDisabled());
      await page.getByRole("main").getByRole("link", { name: "Ask a question" }).click();
      await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
    }));
});

describe("questions were asked", () => {
  const held = serviceOf("local", {}, async (service) => {
    await notes(service, 20);
    for (const query of QUESTIONS) await service.ask("POST", "/api/recall", { query });
    await service.ask("POST", "/api/synthesize", { query: "Who uses Snake?" });
  });
  const at = (work) => () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/history", "History");
      await rows(page).nth(3).waitFor();
      await work(page, visit);
    });

  test(
    "and are filtered",
    at(async (page) => {
      assert.equal(await rows(page).count(), 4);
      await page.getByLabel("Text of the question").fill("hospital");
      await page.getByRole("status").getByText("1 of 4 questions.").waitFor();
      assert.match(await rows(page).first().innerText(), /Which actors attack hospitals/);
      await page.getByLabel("Text of the question").fill("");
      await page.getByLabel("Kind").selectOption("synthesis");
      await page.getByRole("status").getByText("1 of 4 questions.").waitFor();
      assert.match(await rows(page).first().innerText(), /Who uses Snake/);
      await page.reload();
      await page.getByRole("status").getByText("1 of 4 questions.").waitFor();
    }),
  );

  test(
    "and are asked again",
    at(async (page) => {
      await page.getByRole("link", { name: /again: When was Snake seen/ }).click();
      await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
      await page.waitForFunction(() => document.querySelector("#question")?.value === "When was Snake seen?");
      await page.getByText(/\d+ notes? in/).waitFor();
    }),
  );

  test(
    "and are exported as JSON",
    at(async (page, { service }) => {
      const coming = page.waitForEvent("download");
      await page.getByRole("button", { name: "Export as JSON" }).click();
      const file = await coming;
      assert.match(file.suggestedFilename(), /^history-\d{4}-\d\d-\d\d\.json$/);
      const exported = JSON.parse(await readFile(await file.path(), "utf8"));
      const known = await service.ask("GET", "/api/history");
      const times = (entries) => entries.map(({ timestamp, query }) => `${timestamp} ${query}`).sort();
      assert.ok(exported.length >= 4);
      assert.deepEqual(times(exported), times(known));
      await page.getByText(/Exported \d+ questions/).waitFor();
    }),
  );
});
