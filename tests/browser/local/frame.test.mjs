// What holds for every view of the management page: empty, with data, and with data that is up to no good.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, fits, readable, settled, sizesOf, viewsOf, visit, visiting } from "../support/page.mjs";
import { MARKER, notes } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const VIEWS = ["Overview", "Search", "Look-up", "Graph", "Ingest", "Entities", "Changes", "History", "Logs", "Configuration"];
const PHONE = { width: 360, height: 740 };
const MOST_BYTES = 200_000;
// Some ten times what it takes on an idle machine; the real figure is printed.
const FIRST_PAINT_MS = 1000;

/** Goes through all views, in light and dark, on a screen and on a phone. */
async function throughAll(service) {
  for (const size of [undefined, PHONE]) {
    await visiting(service, { size }, async ({ page }) => {
      await page.goto(service.base);
      assert.deepEqual(await viewsOf(page), VIEWS);
      for (const name of VIEWS) {
        await visit(page, name);
        await fits(page, name);
        await readable(page, name);
        if (!size) await accessible(page, name);
        assert.equal(await page.evaluate((marker) => window[marker], MARKER), undefined, `${name} ran a text`);
      }
    });
  }
}

describe("an empty memory", () => {
  const held = serviceOf("local");

  test("has accessible views that fit a phone", () => throughAll(held.service));

  test("is shown at once", () =>
    visiting(held.service, {}, async ({ page, service }) => {
      const paints = [];
      for (let time = 0; time < 5; time += 1) {
        await page.goto(service.base, { waitUntil: "load" });
        await page.getByRole("heading", { level: 1 }).waitFor();
        paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime));
      }
      console.log(`first paint: ${paints.map((ms) => ms?.toFixed(0)).join(", ")} ms`);
      assert.ok(Math.min(...paints) < FIRST_PAINT_MS, `${paints}`);
    }));

  test("is small", () =>
    visiting(held.service, {}, async ({ page, service }) => {
      await page.goto(service.base);
      await settled(page);
      const first = await sizesOf(page);
      for (const name of VIEWS) await visit(page, name);
      const all = await sizesOf(page);
      console.log(`first view: ${JSON.stringify(first)}; all views: ${JSON.stringify(all)}`);
      assert.ok(first.plain < MOST_BYTES, `${first.plain} bytes before the first view`);
      assert.ok(all.transferred < MOST_BYTES, `${all.transferred} bytes for all views`);
    }));

  test("shows the description of the API in the dark and on a phone", () =>
    visiting(held.service, { size: PHONE, dark: true }, async ({ page, service }) => {
      await page.goto(`${service.base}/docs`);
      await page.getByText("/api/recall", { exact: true }).first().click();
      await page.getByRole("main", { name: "threat-memory: local API" }).waitFor();
      await fits(page, "the description");
      const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(background, "rgb(25, 25, 25)");
    }));

  test("shows where one is in the navigation of a phone", () =>
    visiting(held.service, { size: PHONE }, async ({ page, service }) => {
      await page.goto(`${service.base}/#/config`);
      await settled(page);
      const box = await page.getByRole("link", { name: "Configuration", exact: true }).first().boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= PHONE.width, JSON.stringify(box));
      assert.equal(await page.evaluate(() => scrollY), 0);
    }));

  test("can be used with the keyboard", () =>
    visiting(held.service, {}, async ({ page, service }) => {
      await page.goto(service.base);
      await settled(page);
      const focused = () => page.evaluate(() => document.activeElement.textContent.trim());
      await page.keyboard.press("Tab");
      assert.equal(await focused(), "Skip to the content");
      assert.ok(
        await page.getByRole("link", { name: "Skip to the content" }).evaluate((link) => {
          const box = link.getBoundingClientRect();
          return box.top >= 0 && box.left >= 0 && box.width > 20;
        }),
        "the link is visible while it has the focus",
      );
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate(() => document.activeElement.id), "main");
      assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "Overview", "the view is still shown");
      await page.reload();
      await settled(page);
      const reached = [];
      for (let press = 0; press < VIEWS.length + 2; press += 1) {
        await page.keyboard.press("Tab");
        reached.push(await focused());
      }
      assert.deepEqual(reached.slice(-VIEWS.length), VIEWS);
      await page.keyboard.press("Shift+Tab");
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { level: 1, name: "Logs" }).waitFor();
      assert.equal(await page.evaluate(() => document.activeElement.id), "main", "the focus is on the new view");
      await page.getByRole("link", { name: "Skip to the content" }).focus();
      await page.keyboard.press("Enter");
      assert.equal(await page.evaluate(() => document.activeElement.id), "main");
      assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "Logs", "the view is still shown");
      assert.equal(await page.title(), "Logs · threat-memory");
      await page.goBack();
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    }));
});

describe("a service that is not well", () => {
  const held = serviceOf("local");
  const main = (page) => page.getByRole("main");

  test("lets a view be loaded that did not arrive", () =>
    visiting(held.service, { expected: [/net::ERR_FAILED/] }, async ({ page, service }) => {
      await page.goto(service.base);
      await settled(page);
      await page.route("**/views/history.js", (route) => route.abort());
      await page.getByRole("link", { name: "History" }).click();
      await main(page).getByText("This view could not be loaded").waitFor();
      await page.unroute("**/views/history.js");
      await main(page).getByRole("button", { name: "Reload the page" }).click();
      await main(page).getByLabel("Period").waitFor();
    }));

  test("is told from another one that answers", () =>
    visiting(held.service, {}, async ({ page, service }) => {
      await page.route("**/api/stats", (route) => route.fulfill({ contentType: "text/html", body: "<p>Welcome" }));
      await page.goto(service.base);
      await main(page).getByText("The answer is not from this service.").waitFor();
    }));

  test("is not overrun when its streams end at once", () =>
    visiting(held.service, {}, async ({ page, service }) => {
      const asked = [];
      await page.route("**/api/logs/stream", (route) => {
        asked.push(Date.now());
        return route.fulfill({ contentType: "text/event-stream", body: 'id: 1\ndata: {"message":"again"}\n\n' });
      });
      await page.goto(`${service.base}/#/logs`);
      await until(() => asked.length === 4, "it is followed again");
      assert.ok(asked[3] - asked[0] >= 3000, "each pause is longer than the one before");
    }));

  test("may send a leap second", () =>
    visiting(held.service, {}, async ({ page, service }) => {
      await page.goto(service.base);
      const shown = await page.evaluate(async () => {
        const main = document.querySelector("script[type=module]").src;
        const { when } = await import(new URL("../lib/parts.js", main).href);
        return when("2016-12-31T23:59:60Z").textContent;
      });
      assert.equal(shown, "2016-12-31T23:59:60Z");
    }));
});

describe("a memory with notes", () => {
  const held = serviceOf("local", {}, (service) => notes(service, 150));

  test("has accessible views that fit a phone", () => throughAll(held.service));
});
