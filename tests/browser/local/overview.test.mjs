// The overview of the management page.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { settled, visiting } from "../support/page.mjs";
import { notes } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

/** The value below a term. */
function figure(page, term) {
  return page
    .locator("dl > div", { has: page.locator("dt", { hasText: new RegExp(`^\\s*${term}\\s*$`) }) })
    .locator("dd")
    .first();
}

const numberOf = async (locator) => Number((await locator.innerText()).replace(/[^\d.]/g, ""));
const card = (page, title) => page.locator("section", { has: page.getByRole("heading", { level: 2, name: title }) });
const live = (page) => page.getByRole("status").getByText("Live", { exact: true }).waitFor();

describe("an empty memory", () => {
  const held = serviceOf("local");

  test("says what to do next", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/", "Overview");
      await settled(page);
      assert.equal(await numberOf(figure(page, "Notes")), 0);
      await page.getByText("The memory is empty").waitFor();
      await card(page, "Questions today").getByText("Nothing was asked today").waitFor();
      await page.getByRole("link", { name: "Add notes or files" }).click();
      await page.getByRole("heading", { level: 1, name: "Ingest" }).waitFor();
    }));
});

describe("a memory with notes", () => {
  const held = serviceOf("local", {}, (service) => notes(service, 40));

  test("is counted as the API counts it", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/", "Overview");
      await settled(page);
      const { service } = visit;
      const stored = await service.ask("GET", "/api/storage");
      const shown = {
        total_notes: await numberOf(figure(page, "Notes")),
        entity_count: await numberOf(figure(page, "Entities")),
        graph_node_count: await numberOf(figure(page, "Graph nodes")),
        graph_edge_count: await numberOf(figure(page, "Graph edges")),
      };
      assert.deepEqual(shown, stored);
      const { version, embedding_model: model } = await service.ask("GET", "/api/health");
      assert.match(
        await card(page, "Service").innerText(),
        new RegExp(`${version.replaceAll(".", "\\.")}[\\s\\S]*${model}`),
      );
      assert.equal(await page.getByRole("banner").getByText(`${version} · community`).count(), 1);
    }));

  test("shows questions as they are asked", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/", "Overview");
      await settled(page);
      await live(page);
      const { service } = visit;
      for (const query of ["Which actors attack hospitals?", "When was Snake seen?"])
        await service.ask("POST", "/api/recall", { query });
      await card(page, "Latest questions").getByRole("link", { name: "When was Snake seen?" }).waitFor();
      await until(async () => (await numberOf(figure(page, "Asked"))) === 2, "both questions are counted");
      await page.getByRole("img", { name: /Latency of the last 2 questions/ }).waitFor();
      const { top_intents: intents } = await service.ask("GET", "/api/telemetry");
      for (const intent of Object.keys(intents)) {
        await card(page, "Questions today").getByText(intent.replaceAll("_", " "), { exact: true }).first().waitFor();
      }
      await card(page, "Latest questions").getByRole("link", { name: "When was Snake seen?" }).click();
      await page.waitForFunction(() => document.querySelector("#question")?.value === "When was Snake seen?");
    }));

  test("goes on after the service was restarted", () =>
    visiting(
      held.service,
      { expected: [/ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|net::ERR|status of 502/] },
      async (visit) => {
        const page = await visit.open("/", "Overview");
        await settled(page);
        await live(page);
        await visit.service.stop();
        await page
          .getByRole("status")
          .getByText(/Reconnecting since/)
          .waitFor();
        await visit.service.start();
        await live(page);
        await visit.service.ask("POST", "/api/recall", { query: "What came after the restart?" });
        await card(page, "Latest questions").getByRole("link", { name: "What came after the restart?" }).waitFor();
        const asked = await card(page, "Latest questions").getByRole("link").allInnerTexts();
        assert.equal(new Set(asked).size, asked.length, `nothing is counted twice: ${asked}`);
      },
    ));
});
