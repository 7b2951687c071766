// Search, export, nodes with their evidence, and the graph of the console.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, fits, settled, visiting } from "../support/page.mjs";
import { demoBundle } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const results = (page) => page.getByRole("main").getByRole("article");

const filters = (page) => page.locator("details").filter({ has: page.getByText(/^Filters/) });
const openFilters = (page) => filters(page).locator("summary").click();

const LONG = "Strangekit starts by itself. ".repeat(1000);

/** Malware with an empty alias, many aliases, one that turns the writing direction, and a long description. */
function strangeBundle() {
  const time = "2024-01-01T00:00:00.000Z";
  const malware = {
    type: "malware",
    spec_version: "2.1",
    id: "malware--0f2b1d6e-6f0c-4f0e-9d3a-6b1f0a7c1e55",
    created: time,
    modified: time,
    name: "Strangekit",
    is_family: true,
    aliases: ["", " ", "turned\u202Eexe", ...Array.from({ length: 300 }, (_, at) => `Kit-${at}`)],
    description: `[Strangekit](https://example.org/kit) starts.(Citation: A (2024)) ${LONG}`,
    revoked: false,
  };
  return { type: "bundle", id: "bundle--5b0c1a52-3f5e-4c39-9d8b-0d1f5f5f7a10", objects: [malware] };
}

async function ask(page, text) {
  await page.getByLabel("Question").fill(text);
  await page.getByLabel("Question").press("Enter");
  await settled(page);
  await results(page).first().waitFor();
}

describe("an empty workspace", () => {
  const held = serviceOf("hosted");

  test("says what can be searched, and that nothing fits", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit);
      await page.getByText("Search the knowledge graph of your workspace.").waitFor();
      await page.getByLabel("Question").fill("anything");
      await page.getByLabel("Question").press("Enter");
      await page.getByText("No node fits.").waitFor();
      assert.equal(await page.getByRole("button", { name: /^Export/ }).count(), 0);
    }));
});

describe("a workspace with nodes", () => {
  const held = serviceOf("hosted", {}, async (service) => {
    await service.ask("POST", "/api/ingest/stix", { bundle: await demoBundle() });
    const block = {
      entity_name: "Sandworm Team",
      node_type: "actor",
      excerpt: "Sandworm used Industroyer2 in April 2022.",
    };
    await service.ask("POST", "/api/ingest/report", { title: "The report", content_blocks: [block] });
    await service.ask("POST", "/api/ingest/stix", { bundle: strangeBundle() });
  });
  const at = (work, path) => () =>
    visiting(held.service, {}, async (visit) => work(await signedIn(visit, path), visit));

  test(
    "is searched, and exported as a STIX bundle",
    at(async (page) => {
      await ask(page, "Sandworm Team");
      assert.match(await results(page).first().innerText(), /Sandworm Team/);
      const marks = (await results(page).first().locator("mark").allInnerTexts()).map((mark) => mark.toLowerCase());
      assert.ok(marks.includes("sandworm"), `${marks}`);
      await accessible(page, "results of the console");
      const count = await results(page).count();
      const coming = page.waitForEvent("download");
      await page.getByRole("button", { name: /^Export .* as STIX/ }).click();
      const file = await coming;
      assert.match(file.suggestedFilename(), /\.stix\.json$/);
      const bundle = JSON.parse(await readFile(await file.path(), "utf8"));
      assert.equal(bundle.type, "bundle");
      assert.match(bundle.id, /^bundle--/);
      assert.ok(bundle.objects.some(({ name }) => name === "Sandworm Team"));
      assert.ok(
        bundle.objects.filter(({ type }) => !["relationship", "marking-definition", "identity"].includes(type))
          .length >= count,
      );
      await page.getByText("The bundle was saved.").waitFor();
    }),
  );

  test(
    "is searched in three ways, and narrowed to a type",
    at(async (page) => {
      await ask(page, "ransomware against hospitals");
      await page.getByRole("group", { name: /type/i }).getByRole("button").first().click();
      await page.getByText(/(is|are) shown/).waitFor();
      for (const mode of ["Structured", "Semantic"]) {
        await page.getByRole("radio", { name: mode }).check({ force: true });
        await ask(page, "Sandworm Team");
      }
      assert.equal(
        await page.getByRole("button", { name: /^Export/ }).count(),
        0,
        "a semantic search can't be exported",
      );
    }),
  );

  test(
    "says why a node was found, and how the question was understood",
    at(async (page) => {
      await ask(page, "Which malware does Voodoo Bear use?");
      const understood = page.getByRole("main").getByText(/^Asked for: /);
      assert.match(await understood.innerText(), /Voodoo Bear|Sandworm Team/);
      const found = results(page).filter({ hasText: "Industroyer" }).first();
      const why = found.getByRole("group", { name: "Why it was found" });
      await why.getByRole("img", { name: /^Shares of the score: .*graph \d+ %/ }).waitFor();
      const path = why.getByRole("list", { name: "Path" });
      assert.match((await path.innerText()).replace(/\s+/g, " "), /^Sandworm Team .*—uses→.* Industroyer/);
      await accessible(page, "results with their reasons");
      await page.setViewportSize({ width: 360, height: 740 });
      await fits(page, "results with their reasons");
      await path.getByRole("link", { name: "Sandworm Team" }).click();
      await page.getByRole("heading", { level: 2, name: "Sandworm Team" }).waitFor();
      await page.goBack();
      await ask(page, "Seashell Blizzard");
      const first = results(page).filter({ hasText: "Sandworm Team" }).first();
      await first.getByText("Seashell Blizzard is another name of it.").waitFor();
    }),
  );

  test(
    "quotes the texts that speak for a node",
    at(async (page) => {
      await ask(page, "Which wiper was stopped before it could act in April 2022?");
      const quotes = results(page).locator(".passages q");
      await quotes.filter({ hasText: "Stopped before it could act, April 2022." }).first().waitFor();
    }),
  );

  test(
    "is filtered by type, source, time and confidence, which are in the address until they are cleared",
    at(async (page) => {
      await ask(page, "Sandworm Team");
      await openFilters(page);
      await filters(page).getByLabel("Indicators", { exact: true }).check();
      await page.waitForURL(/node_type=ioc/);
      await settled(page);
      const types = results(page).locator(".badge[class*=type-]");
      assert.deepEqual([...new Set(await types.allInnerTexts())], ["indicator"]);
      const source = filters(page).getByLabel("Source", { exact: true });
      const suggested = page.locator("datalist option");
      assert.ok((await suggested.count()) > 0, "sources that were seen are suggested");
      await source.fill((await suggested.first().getAttribute("value")).toUpperCase());
      await filters(page).getByLabel("Entered since").fill("2020-01-01");
      await filters(page).getByLabel("Entered until").fill("2999-12-31");
      await filters(page).getByLabel("Lowest confidence (%)").fill("5");
      await ask(page, "Sandworm Team");
      await page.waitForURL(/min_confidence=0\.05/);
      await filters(page).getByText("5 active").waitFor();
      await accessible(page, "filters of the console");
      await page.setViewportSize({ width: 360, height: 740 });
      await fits(page, "filters of the console");
      await results(page).first().getByRole("heading").getByRole("link").first().click();
      await page.getByRole("heading", { level: 1, name: "Node" }).waitFor();
      await page.goBack();
      await filters(page).getByText("5 active").waitFor();
      await openFilters(page);
      assert.ok(await filters(page).getByLabel("Indicators", { exact: true }).isChecked());
      assert.equal(await filters(page).getByLabel("Entered until").inputValue(), "2999-12-31");
      assert.equal(await filters(page).getByLabel("Lowest confidence (%)").inputValue(), "5");
      await filters(page).getByRole("button", { name: "Clear filters" }).press("Enter");
      await page.waitForURL((url) => !/node_type|source|since|until|min_confidence/.test(url.hash));
      assert.equal(await page.evaluate(() => document.activeElement.textContent), "Filters");
      await settled(page);
      await results(page).filter({ hasText: "Sandworm Team" }).first().waitFor();
    }),
  );

  test(
    "is not asked with filters that are wrong",
    at(async (page) => {
      await ask(page, "Sandworm Team");
      const asked = [];
      page.on("request", (request) => {
        if (request.url().includes("/api/")) asked.push(request.url());
      });
      await openFilters(page);
      await filters(page).getByLabel("Entered until").fill("2024-03-01");
      await filters(page).getByLabel("Entered since").fill("2024-03-02");
      await filters(page).getByText("This is before “Entered since”.").waitFor();
      assert.equal(await filters(page).getByLabel("Entered until").getAttribute("aria-invalid"), "true");
      await filters(page).getByLabel("Lowest confidence (%)").fill("101");
      await filters(page).getByText("A whole number from 0 to 100.").waitFor();
      await accessible(page, "filters that are wrong");
      await openFilters(page);
      await page.getByRole("button", { name: "Search", exact: true }).click();
      assert.ok(await filters(page).getByLabel("Entered until").isVisible(), "what is wrong is shown");
      assert.deepEqual(asked, []);
      await filters(page).getByLabel("Entered since").fill("2024-03-01");
      await filters(page).getByLabel("Lowest confidence (%)").fill("100");
      await page.getByRole("button", { name: "Search", exact: true }).click();
      await page.waitForURL(/since=2024-03-01.*until=2024-03-01.*min_confidence=1/);
      assert.equal(await filters(page).locator("[aria-invalid]").count(), 0);
      await settled(page);
    }),
  );

  test(
    "tells of a wrong filter in the address, and of filters that leave nothing",
    at(
      async (page) => {
        await page.getByText("Nothing was searched: a filter has to be changed.").waitFor();
        await filters(page).getByText("This is before “Entered since”.").waitFor();
        await filters(page).getByLabel("Entered since").fill("1999-01-01");
        await page.getByText("No node fits.").waitFor();
        await page.getByText("2 filters are set.").waitFor();
        await page.getByRole("button", { name: "Clear the filters" }).click();
        await results(page).first().waitFor();
      },
      "#/search?q=Industroyer&since=2000-01-02&until=2000-01-01",
    ),
  );

  test(
    "shows a node with its relationships and evidence",
    at(async (page) => {
      await ask(page, "Sandworm Team");
      await results(page).first().getByRole("heading").getByRole("link").first().click();
      await page.getByRole("heading", { level: 2, name: "Sandworm Team" }).waitFor();
      const record = page.locator("details", { hasText: "The report" }).first();
      await record.locator("summary").click();
      await record.getByText("Sandworm used Industroyer2 in April 2022.").first().waitFor();
      await accessible(page, "a node");
      const related = page.locator("section", { has: page.getByRole("heading", { level: 2, name: /^Relationships/ }) });
      const other = related.getByRole("listitem").getByRole("link").first();
      const name = await other.innerText();
      await other.click();
      await page.getByRole("heading", { level: 2, name, exact: true }).waitFor();
      await page.goBack();
      await page.getByRole("link", { name: "Show in the graph" }).click();
      await page
        .getByRole("complementary", { name: "Selected node" })
        .getByRole("heading", { name: "Sandworm Team" })
        .waitFor();
      await until(
        async () => (await page.getByText(/nodes? and .* links? shown/).count()) > 0,
        "the neighbourhood is drawn",
      );
      await accessible(page, "the graph of the console");
    }),
  );

  test(
    "shows a node whose aliases are many, empty or turned around",
    at(
      async (page) => {
        const foot = results(page).first().getByText(/^also /);
        await foot.waitFor();
        assert.deepEqual((await foot.locator("bdi").allInnerTexts()).slice(1, 3), ["Kit-0", "Kit-1"]);
        await results(page).first().getByRole("heading").getByRole("link").first().click();
        await page.getByRole("heading", { level: 2, name: "Strangekit" }).waitFor();
        const main = page.getByRole("main");
        assert.equal(await main.getByText("Kit-299").count(), 0);
        const text = await main.locator(".node-head").innerText();
        assert.match(text, /\nStrangekit starts\. Strangekit starts by itself\./);
        assert.ok(!/Citation|Revoked/.test(text), "no Markdown, and no flag that is not set");
        await main.getByRole("button", { name: "Show all 301", exact: true }).click();
        await main.getByText("Kit-299").waitFor();
        const focused = () => page.evaluate(() => document.activeElement.textContent.slice(0, 13));
        assert.equal(await focused(), "Also known as");
        await main.getByRole("button", { name: /^Show all 29,0\d\d characters/ }).first().click();
        assert.equal(await focused(), "Strangekit st");
        await main.locator("details summary").first().click();
        await main.getByRole("heading", { level: 3, name: /^Original/ }).waitFor();
      },
      "#/search?q=Strangekit&mode=structured",
    ),
  );

  test(
    "takes a long question whole, and says when it is too long for a search",
    at(async (page) => {
      const pasted = (length) => "Strangekit ".repeat(length).slice(0, length - 1).padEnd(length, "x");
      const question = page.getByLabel("Question");
      await question.fill(pasted(4000));
      assert.equal((await question.inputValue()).length, 4000);
      await question.press("Enter");
      await settled(page);
      await page.getByRole("main").getByRole("article").first().waitFor();
      await question.fill(pasted(5000));
      await question.press("Enter");
      await page.getByRole("alert").getByText("The question has 5,000 characters; a search takes 4,000.").waitFor();
      assert.equal((await question.inputValue()).length, 5000);
    }),
  );

  test("says that a node does not exist", () =>
    visiting(held.service, { expected: [/status of 404/] }, async (visit) => {
      const page = await signedIn(visit, "#/node?id=2c1a473a-e54c-4c90-8750-d90700bea7d0");
      await page.getByText("There is no such node, or its marking hides it from this workspace.").waitFor();
    }));
});
