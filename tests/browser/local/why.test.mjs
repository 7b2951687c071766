// The reasons of a result, made of what a service may tell and not of what one tells in a test.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, fits, settled, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

const WHY = {
  shares: { words: 0.6, meaning: 0.3, graph: 0.098, evidence: 0.002 },
  matched: { kind: "identifier", text: "G0007" },
  path: [
    { id: "one", name: "Credential Dumping" },
    { id: "two", name: "APT28", relationship: "uses", outgoing: false },
    { id: "three", name: `Tool${"o".repeat(200)}`, relationship: `delivers${"-s".repeat(100)}` },
  ],
  passages: ["<b>first</b> page", "second", "third", "fourth page", "fifth ".repeat(200)].map((text, at) => ({
    id: String(at),
    text,
    share: 0.01,
  })),
};
const UNDERSTOOD = {
  names: [{ text: "Fancy Bear", id: "two", name: "APT28" }, { text: "Turla", nodes: ["three", "four"] }],
  wanted: ["software"],
  through: ["course_of_action"],
  period: { since: "2016-01-01T00:00:00Z", until: "2017-01-01T00:00:00Z" },
};

/** Shows the reasons in the page, and resolves to where they stand. */
async function shown(page, why, question = {}) {
  await page.evaluate(
    async ([why, question]) => {
      const script = document.querySelector("script[src]").src;
      const { reasons, understood } = await import(script.replace(/(\/assets\/[^/]+\/).*/, "$1lib/why.js"));
      const { styled } = await import(script.replace(/(\/assets\/[^/]+\/).*/, "$1lib/shell.js"));
      await styled("search.css");
      const link = (id) => `#/graph?around=${id}`;
      const parts = [understood(question, link), reasons(why, "node", ["page"], ({ id }) => link(id))];
      document.querySelector("main .view").replaceChildren(...parts.filter(Boolean));
    },
    [why, question],
  );
  return page.locator("main .view");
}

describe("the reasons of a result", () => {
  const held = serviceOf("local");
  const at = (work) => () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await settled(page);
      await work(page);
    });

  test(
    "mark the words of the question, and not what only begins with a short one or a number",
    at(async (page) => {
      const marks = await page.evaluate(async () => {
        const script = document.querySelector("script[src]").src;
        const { marked } = await import(script.replace(/(\/assets\/[^/]+\/).*/, "$1lib/marks.js"));
        const text = "They live off the office: APT2, APT28, FIN7, attacks.";
        return marked(text, ["off", "apt2", "fin", "attack"]).map((node) => node.textContent).filter(Boolean);
      });
      assert.deepEqual(marks, ["off", "APT2", "FIN", "attack"]);
    }),
  );

  test(
    "are told whole, with what is minor left out or folded",
    at(async (page) => {
      const place = await shown(page, WHY);
      const shares = await place.getByRole("img").getAttribute("aria-label");
      assert.equal(shares, "Shares of the score: words 60 %, meaning 30 %, graph 10 %");
      await place.getByText("G0007 is its identifier.").waitFor();
      const path = place.getByRole("list", { name: "Path" });
      const seen = (await path.innerText()).replace(/by the relationship|\b(from|to)\b/g, "").replace(/\s+/g, " ");
      assert.match(seen, /^Credential Dumping ←uses— APT28 —delivers[-s]*— Tool/);
      assert.match(await path.ariaSnapshot(), /by the relationship uses from\b/);
      assert.equal(await path.getByRole("link").count(), 3);
      assert.equal(await path.getByRole("link", { name: "APT28" }).getAttribute("href"), "#/graph?around=two");
      const quotes = place.locator("q:visible");
      assert.equal(await quotes.count(), 4, "the identifier and three passages");
      assert.equal(await quotes.nth(1).innerText(), "<b>first</b> page");
      assert.equal(await quotes.nth(1).locator("mark").innerText(), "page");
      await accessible(page, "reasons");
      await place.getByText("2 more passages").press("Enter");
      assert.equal(await quotes.count(), 6);
      assert.ok((await quotes.last().innerText()).length <= 402, "a long passage is cut");
      await page.setViewportSize({ width: 360, height: 740 });
      await fits(page, "reasons");
    }),
  );

  test(
    "of a service that tells none are nothing",
    at(async (page) => {
      for (const why of [undefined, {}, { shares: { words: 0, meaning: 0, graph: 0, evidence: 0 } }]) {
        const place = await shown(page, why, undefined);
        assert.equal(await place.locator("*").count(), 0);
      }
    }),
  );

  test(
    "come with how the question was understood",
    at(async (page) => {
      const line = async (question) => (await (await shown(page, {}, question)).innerText()).trim();
      assert.equal(
        await line(UNDERSTOOD),
        "Asked for: software — by way of course of action — related to Fancy Bear (APT28), Turla" +
          " — 2016-01-01 to 2016-12-31",
      );
      assert.equal(await page.getByRole("link", { name: "Fancy Bear" }).getAttribute("href"), "#/graph?around=two");
      const known = [{ text: "Turla" }, { text: "APT 28", id: "two", name: "apt28" }];
      assert.equal(await line({ names: known, period: null }), "Recognized: Turla, APT 28");
      const since = { since: "2024-03-01T00:00:00Z", until: null };
      assert.equal(await line({ wanted: ["tool"], period: since }), "Asked for: tool — since 2024-03-01");
      assert.equal(await line({ wanted: ["tool"], period: { until: "2015-01-01T00:00:00Z" } }),
        "Asked for: tool — before 2015-01-01");
      assert.equal(await line({ wanted: [], names: [], through: [] }), "");
    }),
  );
});
