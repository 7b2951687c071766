// What holds for every view of the console: empty, with data, and with texts that are up to no good.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, fits, readable, settled, sizesOf, viewsOf, visit, visiting } from "../support/page.mjs";
import { demoBundle, HOSTILE_NAME, LONG_WORD, MARKER, SCRIPT_NOTE } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const VIEWS = ["Search", "Look-up", "Graph", "Changes", "Review", "Feeds", "Collections", "Load", "Audit log"];
const PHONE = { width: 360, height: 740 };
const MOST_BYTES = 200_000;

/** Goes through all views, on a screen and on a phone. */
async function throughAll(service, work = async () => {}) {
  for (const size of [undefined, PHONE]) {
    await visiting(service, { size }, async (of) => {
      const page = await signedIn(of);
      assert.deepEqual(await viewsOf(page), VIEWS);
      const good = async (name) => {
        await settled(page);
        await fits(page, name);
        await readable(page, name);
        if (!size) await accessible(page, name);
      };
      for (const name of VIEWS) {
        await visit(page, name);
        await good(name);
      }
      await work(page, good);
    });
  }
}

describe("an empty workspace", () => {
  const held = serviceOf("hosted");

  test("has accessible views that fit a phone", () => throughAll(held.service));

  test("is small", () =>
    visiting(held.service, {}, async (of) => {
      const page = await signedIn(of);
      const first = await sizesOf(page);
      for (const name of VIEWS) await visit(page, name);
      const all = await sizesOf(page);
      console.log(`first view: ${JSON.stringify(first)}; all views: ${JSON.stringify(all)}`);
      assert.ok(first.plain < MOST_BYTES, `${first.plain} bytes before the first view`);
      assert.ok(all.transferred < MOST_BYTES, `${all.transferred} bytes for all views`);
    }));

  test("can be used with the keyboard", () =>
    visiting(held.service, {}, async ({ page, service }) => {
      await page.goto(`${service.base}/console`);
      await page.getByLabel("E-mail").waitFor();
      await page.keyboard.type("admin@example.com");
      await page.keyboard.press("Tab");
      await page.keyboard.type("a long enough password");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
      await settled(page);
      assert.equal(await page.evaluate(() => document.activeElement.id), "question", "the cursor is where one types");
    }));
});

describe("texts that are up to no good", () => {
  const name = `${HOSTILE_NAME} \u202Egpj.exe`;
  const held = serviceOf("hosted", {}, async (service) => {
    await service.ask("POST", "/api/ingest/stix", { bundle: await demoBundle() });
    const node = {
      name,
      node_type: "actor",
      description: `${SCRIPT_NOTE} ${LONG_WORD}`,
      properties: { aliases: ["al\"i'as<i>"], link: `javascript:window.${MARKER}=7` },
    };
    await service.ask("POST", "/api/ingest/analyst", { nodes: [node] });
    const block = {
      entity_name: name,
      node_type: "actor",
      excerpt: SCRIPT_NOTE,
      source_url: `javascript:window.${MARKER}=8`,
    };
    await service.ask("POST", "/api/ingest/report", {
      title: SCRIPT_NOTE,
      source_name: HOSTILE_NAME,
      content_blocks: [block],
    });
    const { results } = await service.ask("GET", `/api/recall/search?q=${encodeURIComponent(HOSTILE_NAME)}`);
    const bundle = {
      type: "bundle",
      id: "bundle--6d2c6f0e-4f6f-4a52-9b1c-3b6d1c7a2f10",
      objects: [
        {
          type: "threat-actor",
          spec_version: "2.1",
          id: "threat-actor--6d2c6f0e-4f6f-4a52-9b1c-3b6d1c7a2f11",
          created: "2024-01-01T00:00:00.000Z",
          modified: "2024-01-01T00:00:00.000Z",
          name,
          description: SCRIPT_NOTE,
        },
      ],
    };
    const { batch } = await service.ask("POST", "/api/threat-intel/batches", { input_kind: "stix_bundle", bundle });
    const session = HOSTILE_NAME;
    const staged = await service.ask("POST", "/api/ingest/preview", {
      text: `${SCRIPT_NOTE} used X-Agent`,
      session_id: session,
    });
    return { node: results.find((found) => found.name === name).id, batch: batch.id, staged: staged.batch_id };
  });

  test("stay texts in every view", async () => {
    const { node, batch, staged } = held.seeded;
    await throughAll(held.service, async (page, good) => {
      const places = [
        ["search", { q: SCRIPT_NOTE }, "<script>"],
        ["node", { id: node }, SCRIPT_NOTE],
        ["graph", { around: node }, HOSTILE_NAME],
        ["batch", { id: batch }, HOSTILE_NAME],
        ["review", { batch: staged }, HOSTILE_NAME],
      ];
      for (const [view, params, text] of places) {
        await page.evaluate(
          (hash) => {
            location.hash = hash;
          },
          `#/${view}?${new URLSearchParams(params)}`,
        );
        await until(async () => (await page.getByRole("main").innerText()).includes(text), `${view} shows ${text}`);
        if (view === "node") {
          for (const record of await page.locator("main details summary").all()) await record.click();
          await until(
            async () => !(await page.getByRole("main").innerText()).includes("Loading"),
            "the evidence is read",
          );
        }
        await good(view);
      }
      await visit(page, "Audit log");
      await until(
        async () => (await page.getByRole("main").innerText()).includes("<img src=x"),
        "the audit log shows it",
      );
      await good("the audit log");
      const became = await page.evaluate(
        (marker) => ({
          ran: window[marker],
          links: [...document.querySelectorAll("a[href]")].filter(({ protocol }) => !/^https?:$/.test(protocol)).length,
        }),
        MARKER,
      );
      assert.deepEqual(became, { ran: undefined, links: 0 });
    });
  });
});
