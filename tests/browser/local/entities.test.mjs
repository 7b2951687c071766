// The table of entities.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { settled, visiting } from "../support/page.mjs";
import { notes } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const rows = (page) => page.getByRole("table", { name: "Entities" }).getByRole("row");

/** The texts of a column. */
async function column(page, title) {
  const titles = await page.getByRole("columnheader").allInnerTexts();
  const at = titles.findIndex((text) => text.trim().startsWith(title));
  return page.locator(`tbody tr td:nth-child(${at + 1})`).allInnerTexts();
}

describe("an empty memory", () => {
  const held = serviceOf("local");

  test("says what to do next", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/entities", "Entities");
      await page.getByText("No entities yet").waitFor();
      await page.getByRole("link", { name: "Add notes or files" }).click();
      await page.getByRole("heading", { level: 1, name: "Ingest" }).waitFor();
    }));
});

describe("a memory with notes", () => {
  const held = serviceOf("local", {}, (service) => notes(service, 150));
  const at = (work) => () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/entities", "Entities");
      await rows(page).nth(1).waitFor();
      await work(page, visit);
    });

  test(
    "is sorted by the column that is pressed",
    at(async (page, { service }) => {
      const header = (name) => page.getByRole("columnheader", { name: new RegExp(`^${name}`) });
      assert.equal(await header("Notes").getAttribute("aria-sort"), "descending");
      const numbers = (await column(page, "Notes")).map(Number);
      assert.deepEqual(
        numbers,
        [...numbers].sort((a, b) => b - a),
      );
      await header("Name").getByRole("button").click();
      await until(async () => (await header("Name").getAttribute("aria-sort")) === "ascending", "it is sorted by name");
      await settled(page);
      const { entities } = await service.ask("GET", "/api/entities?sort=name&order=asc&limit=50");
      assert.deepEqual(
        await column(page, "Name"),
        entities.map(({ name }) => name),
      );
      await header("Name").getByRole("button").press("Enter");
      await until(async () => (await header("Name").getAttribute("aria-sort")) === "descending", "it is turned round");
      assert.ok(
        await header("Name")
          .getByRole("button")
          .evaluate((button) => button === document.activeElement),
      );
    }),
  );

  test(
    "is filtered by name and type",
    at(async (page, { service }) => {
      const { entities: bears } = await service.ask("GET", "/api/entities?q=bear&sort=notes&order=desc");
      assert.ok(bears.length > 1);
      await page.getByLabel("Name contains").fill("bear");
      await page.getByRole("status").getByText(`${bears.length} entities.`).waitFor();
      assert.deepEqual(
        await column(page, "Name"),
        bears.map(({ name }) => name),
      );
      await page.getByLabel("Name contains").fill("");
      await page.getByLabel("Type").selectOption("actor");
      const { total } = await service.ask("GET", "/api/entities?type=actor");
      await page.getByRole("status").getByText(`${total} entities.`).waitFor();
      assert.deepEqual([...new Set(await column(page, "Type"))], ["actor"]);
      await page.reload();
      await page.getByRole("status").getByText(`${total} entities.`).waitFor();
      await page.getByLabel("Name contains").fill("no such name");
      await page.getByText("No entity fits the filters").waitFor();
      await page.getByRole("button", { name: "Clear the filters" }).click();
      await rows(page).nth(1).waitFor();
      assert.equal(await page.getByLabel("Type").inputValue(), "");
    }),
  );

  test(
    "is shown in pages",
    at(async (page, { service }) => {
      const { total } = await service.ask("GET", "/api/entities");
      const pages = page.getByRole("navigation", { name: "Pages" });
      await page.getByLabel("Per page").selectOption("25");
      // With 50 per page it is a first page too, but of fewer.
      await pages.getByText(`Page 1 of ${Math.ceil(total / 25)}`).waitFor();
      const first = await column(page, "Name");
      assert.equal(first.length, 25);
      assert.ok(await pages.getByRole("button", { name: "Previous" }).isDisabled());
      await pages.getByRole("button", { name: "Next" }).click();
      await pages.getByText("Page 2 of").waitFor();
      const second = await column(page, "Name");
      assert.deepEqual(
        second.filter((name) => first.includes(name)),
        [],
      );
      await pages.getByRole("button", { name: "Last" }).click();
      await pages.getByText(`Page ${Math.ceil(total / 25)} of`).waitFor();
      assert.equal((await column(page, "Name")).length, total % 25 || 25);
      assert.ok(await pages.getByRole("button", { name: "Next" }).isDisabled());
      await page.reload();
      await pages.getByText(`Page ${Math.ceil(total / 25)} of`).waitFor();
    }),
  );

  test(
    "leads to the search and to the graph",
    at(async (page) => {
      await page.getByLabel("Type").selectOption("actor");
      await until(async () => (await column(page, "Type")).every((type) => type === "actor"), "only actors");
      await page.getByRole("link", { name: /APT28 in the graph/ }).click();
      await page.getByRole("heading", { level: 1, name: "Graph" }).waitFor();
      await page.getByRole("heading", { level: 2, name: "APT28" }).waitFor();
      await page.goBack();
      await page.getByRole("link", { name: "APT28", exact: true }).click();
      await page.waitForFunction(() => document.querySelector("#question")?.value === "APT28");
    }),
  );
});
