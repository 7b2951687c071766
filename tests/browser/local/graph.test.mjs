// The picture of the graph.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, frameTimes, settled, visiting } from "../support/page.mjs";
import { largeGraph, notes } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const MOST_MS = 50;
const ATTEMPTS = 3;

const picture = (page) => page.getByRole("application", { name: "Picture of the graph" });
const details = (page) => page.getByRole("complementary", { name: "Selected node" });
const legend = (page) => page.getByRole("group", { name: "Types shown" });
const still = (page) =>
  until(async () => (await picture(page).getAttribute("data-state")) === "still", "the picture rests", 60_000);

/** How many nodes and links the page says it shows. */
async function shown(page) {
  const text = await page
    .getByText(/nodes? and .* links? shown/)
    .first()
    .innerText();
  const [, nodes, links] = /([\d,]+) nodes? and ([\d,]+) links? shown/.exec(text);
  return { nodes: Number(nodes.replace(",", "")), links: Number(links.replace(",", "")) };
}

describe("an empty memory", () => {
  const held = serviceOf("local");

  test("says what to do next", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/graph", "Graph");
      await page.getByText("The graph is empty.").waitFor();
      await page
        .getByRole("main")
        .getByRole("link", { name: /ingest/i })
        .click();
      await page.getByRole("heading", { level: 1, name: "Ingest" }).waitFor();
    }));
});

describe("a memory with notes", () => {
  const held = serviceOf("local", {}, (service) => notes(service, 60));
  const at = (path, work) => () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open(path, "Graph");
      await page
        .getByText(/nodes? and .* links? shown/)
        .first()
        .waitFor();
      await still(page);
      await work(page, visit);
    });

  test(
    "is walked through with the keyboard",
    at("/#/graph", async (page) => {
      await picture(page).focus();
      await page.keyboard.press("n");
      const first = await details(page).getByRole("heading", { level: 2 }).innerText();
      await page.keyboard.press("n");
      await until(
        async () => (await details(page).getByRole("heading", { level: 2 }).innerText()) !== first,
        "the next node",
      );
      await page.keyboard.press("p");
      await details(page).getByRole("heading", { level: 2, name: first }).waitFor();
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate(() => document.activeElement.tagName), "H2");
      await accessible(page, "the graph with details");
      await details(page).getByRole("button", { name: "Close the details" }).click();
      await details(page).waitFor({ state: "hidden" });
    }),
  );

  test(
    "shows what is clicked, and the notes behind it",
    at("/#/graph?around=actor%3Aapt28", async (page, { service }) => {
      await details(page).getByRole("heading", { level: 2, name: "APT28" }).waitFor();
      await picture(page).focus();
      // The selected node is brought into the middle.
      await page.keyboard.press("n");
      await page.keyboard.press("p");
      const name = await details(page).getByRole("heading", { level: 2 }).innerText();
      await details(page).getByRole("button", { name: "Close the details" }).click();
      const box = await picture(page).boundingBox();
      await picture(page).click({ position: { x: box.width / 2, y: box.height / 2 } });
      await details(page).getByRole("heading", { level: 2, name }).waitFor();
      await page.goto(`${service.base}/#/graph?around=actor%3Aturla`);
      await details(page).getByRole("heading", { level: 2, name: "Turla" }).waitFor();
      await details(page).getByRole("heading", { level: 3, name: "Notes behind it" }).waitFor();
      await details(page).getByRole("link", { name: /Turla/ }).first().click();
      await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
    }),
  );

  test(
    "grows around a node",
    at("/#/graph?around=actor%3Aapt28&depth=1", async (page) => {
      const before = await shown(page);
      await details(page)
        .getByRole("button", { name: /X-Agent/ })
        .first()
        .click();
      await details(page).getByRole("heading", { level: 2, name: "X-Agent" }).waitFor();
      await details(page)
        .getByRole("button", { name: /Expand/ })
        .click();
      await until(async () => (await shown(page)).nodes > before.nodes, "there are more nodes");
    }),
  );

  test(
    "is filtered by type and text",
    at("/#/graph", async (page) => {
      const before = await shown(page);
      const actors = legend(page).getByRole("button", { name: /^actor/i });
      const many = Number(/\d+$/.exec(await actors.innerText())[0]);
      await actors.click();
      assert.equal(await actors.getAttribute("aria-pressed"), "false");
      await until(async () => (await shown(page)).nodes === before.nodes - many, "actors are hidden");
      await page.reload();
      await until(async () => (await shown(page)).nodes === before.nodes - many, "actors are still hidden");
      await legend(page).getByRole("button", { name: "Show all types" }).click();
      await until(async () => (await shown(page)).nodes === before.nodes, "they are shown again");
      await page.getByLabel("Find in the graph").fill("turla");
      await page
        .getByText(/with “turla”/)
        .first()
        .waitFor();
      await page.getByLabel("Find in the graph").press("Enter");
      await details(page).getByRole("heading", { level: 2, name: "Turla" }).waitFor();
    }),
  );

  test(
    "is also a list",
    at("/#/graph", async (page) => {
      await page.getByRole("tab", { name: "List" }).click();
      const table = page.getByRole("table", { name: "Nodes of the picture" });
      await table.waitFor();
      await accessible(page, "the list");
      await table.getByRole("columnheader", { name: /^Node/ }).getByRole("button").click();
      const row = table.getByRole("row").nth(1);
      const name = await row.getByRole("button").first().innerText();
      await row.getByRole("button").first().click();
      await details(page).getByRole("heading", { level: 2, name, exact: true }).waitFor();
      await row.getByRole("button", { name: /in the picture/ }).click();
      await picture(page).waitFor();
    }),
  );

  test("says that a node does not exist", () =>
    visiting(held.service, { expected: [/status of 404/] }, async (visit) => {
      const page = await visit.open("/#/graph?around=actor%3Anobody", "Graph");
      await page.getByText("There is no such node.").waitFor();
      await page.getByRole("link", { name: "Show the graph" }).click();
      await page
        .getByText(/nodes? and .* links? shown/)
        .first()
        .waitFor();
    }));
});

describe("2,000 nodes with 4,000 edges", () => {
  const held = serviceOf("local", {}, largeGraph);

  /** Zooms and drags, in many small steps as a hand does. */
  async function play(page) {
    const box = await picture(page).boundingBox();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.move(x, y);
    for (let step = 0; step < 15; step += 1) await page.mouse.wheel(0, -60);
    for (const turn of [1, -1]) {
      await page.mouse.move(x, y);
      await page.mouse.down();
      await page.mouse.move(x + turn * 180, y + turn * 90, { steps: 25 });
      await page.mouse.up();
    }
    for (let step = 0; step < 20; step += 1) await page.mouse.wheel(0, 60);
    await page.getByRole("button", { name: /Fit|Show everything/ }).click();
  }

  for (const query of ["", "?notes=yes"]) {
    test(`moves calmly (${query || "without notes"})`, () =>
      visiting(held.service, { motion: true }, async (visit) => {
        const page = await visit.open(`/#/graph${query}`, "Graph");
        await page
          .getByText(/nodes? and .* links? shown/)
          .first()
          .waitFor();
        const { nodes, links } = await shown(page);
        assert.ok(nodes >= 1900, `${nodes} nodes`);
        if (query) assert.deepEqual({ nodes, links }, { nodes: 2000, links: 4000 });
        await still(page);
        const slowest = await picture(page).getAttribute("data-slowest-frame");
        console.log(`${nodes} nodes, ${links} links: slowest frame of the layout ${slowest} ms`);
        let times;
        // Other processes of the machine delay frames too, so one calm run of three is enough.
        for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
          await picture(page).evaluate((canvas) => {
            delete canvas.dataset.slowestFrame;
            delete canvas.dataset.frames;
          });
          times = await frameTimes(page, () => play(page));
          const work = await picture(page).getAttribute("data-slowest-frame");
          const [mean, p95, longest] = [times.mean, times.p95, times.longest].map((ms) => ms.toFixed(1));
          console.log(
            `${times.frames} frames: mean ${mean} ms, p95 ${p95} ms, longest ${longest} ms; slowest work ${work} ms`,
          );
          if (times.p95 < MOST_MS) break;
        }
        assert.ok(times.frames > 20, `${times.frames} frames`);
        assert.ok(times.mean < MOST_MS && times.p95 < MOST_MS, JSON.stringify(times));
        await settled(page);
      }));
  }
});
