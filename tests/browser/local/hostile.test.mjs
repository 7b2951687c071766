// Texts that try to become HTML, or to break a layout, wherever the management page shows them.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, fits, settled, visit, visiting } from "../support/page.mjs";
import {
  HOSTILE_DOMAIN,
  HOSTILE_MODEL,
  HOSTILE_NAME,
  hostile,
  LONG_WORD,
  MARKER,
  SCRIPT_NOTE,
} from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const PHONE = { width: 360, height: 740 };

/** Fails unless the text is shown as it is written, and nothing in it ran or became an element. */
async function onlyText(page, text, what) {
  await until(async () => (await page.evaluate(() => document.body.innerText)).includes(text), `${what} shows ${text}`);
  const became = await page.evaluate(
    (marker) => ({
      ran: window[marker],
      elements: document.querySelectorAll(
        "main img, main script, main i, main b, main svg[onload], [onerror], [onload]",
      ).length,
      links: [...document.querySelectorAll("a[href]")].filter(({ protocol }) => !/^https?:$/.test(protocol)).length,
    }),
    MARKER,
  );
  assert.deepEqual(became, { ran: undefined, elements: 0, links: 0 }, what);
}

describe("texts that are up to no good", () => {
  const held = serviceOf("local", { model: HOSTILE_MODEL }, hostile);

  for (const size of [undefined, PHONE]) {
    const at = (work) => () =>
      visiting(held.service, { size }, async (visit) => {
        await visit.page.goto(visit.service.base);
        await settled(visit.page);
        await work(visit.page, visit);
      });
    const good = async (page, what) => {
      await fits(page, what);
      if (!size) await accessible(page, what);
    };
    const where = size ? "a phone" : "a screen";

    test(
      `stay texts on ${where}: overview, history, logs`,
      at(async (page) => {
        await onlyText(page, SCRIPT_NOTE, "the overview");
        await good(page, "the overview");
        await visit(page, "History");
        await onlyText(page, SCRIPT_NOTE, "the history");
        await good(page, "the history");
        await visit(page, "Logs");
        await page.getByLabel("Text", { exact: true }).fill(SCRIPT_NOTE);
        await onlyText(page, "0 lines", "the log");
        await good(page, "the log");
      }),
    );

    test(
      `stay texts on ${where}: search and notes`,
      at(async (page, { service }) => {
        await page.goto(`${service.base}/#/search?q=${encodeURIComponent(SCRIPT_NOTE)}`);
        const cards = page.getByRole("main").getByRole("article");
        await cards.first().waitFor();
        await settled(page);
        await onlyText(page, "<script>", "the results");
        await onlyText(page, HOSTILE_DOMAIN, "the results");
        await cards
          .filter({ hasText: LONG_WORD.slice(0, 40) })
          .first()
          .waitFor();
        await good(page, "the results");
        await cards.filter({ hasText: "onerror" }).getByRole("heading").getByRole("link").first().click();
        await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
        await settled(page);
        await onlyText(page, SCRIPT_NOTE, "the note");
        await good(page, "the note");
        await page.goto(`${service.base}/#/search?mode=synthesize&q=APT28`);
        await page.getByRole("region", { name: "Answer" }).waitFor();
        await onlyText(page, SCRIPT_NOTE, "the answer");
        await good(page, "the answer");
      }),
    );

    test(
      `stay texts on ${where}: entities and graph`,
      at(async (page, { service }) => {
        await visit(page, "Entities");
        await onlyText(page, HOSTILE_NAME, "the entities");
        await good(page, "the entities");
        await page.goto(`${service.base}/#/graph?q=evil`);
        await page.getByLabel("Find in the graph").press("Enter");
        await page
          .getByRole("complementary", { name: "Selected node" })
          .getByRole("heading", { level: 2, name: HOSTILE_NAME })
          .waitFor();
        await onlyText(page, HOSTILE_NAME, "the graph");
        await good(page, "the graph");
        await page.getByRole("tab", { name: "List" }).click();
        await onlyText(page, HOSTILE_NAME, "the list");
        await good(page, "the list");
      }),
    );

    test(
      `stay texts on ${where}: ingest`,
      at(async (page) => {
        await visit(page, "Ingest");
        await page.getByRole("tab", { name: "Files" }).click();
        const name = `<img src=x onerror=window.${MARKER}=6>"'.txt`;
        const buffer = Buffer.from(`${SCRIPT_NOTE} from ${where} ${LONG_WORD}`);
        await page.locator("input[type=file]").setInputFiles([{ name, mimeType: "text/plain", buffer }]);
        await onlyText(page, name, "the report of a file");
        await page.getByRole("button", { name: /^Send 1 note/ }).click();
        await page.getByText("1 of 1 note done").waitFor();
        await onlyText(page, "<img src=x onerror=", "the list of notes");
        await good(page, "the list of notes");
      }),
    );
  }
});
