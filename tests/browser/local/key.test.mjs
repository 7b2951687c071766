// The key of the local service: asked for, kept for the tab, and nowhere else.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, fits, settled, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const KEY = "a key of the tests";
const expected = [/status of 401/];

const dialogOf = (page) => page.getByRole("dialog", { name: "API key" });

async function give(page, key) {
  await dialogOf(page).getByLabel("Key", { exact: true }).fill(key);
  await dialogOf(page).getByRole("button", { name: "Open" }).click();
}

/** Waits for a page that the key has opened. */
const opened = (page) =>
  page
    .locator("#status")
    .getByText(/\d+\.\d+\.\d+/)
    .waitFor();

describe("the key", () => {
  const held = serviceOf("local", { key: KEY });
  const at =
    (work, options = {}) =>
    () =>
      visiting(held.service, { expected, ...options }, work);

  test(
    "is asked for in a dialog, which says when it is wrong",
    at(async ({ page, service, context }) => {
      const left = [];
      context.on("response", (response) => {
        if (response.status() === 401) left.push(Number(response.headers()["ratelimit-remaining"]));
      });
      await page.goto(service.base);
      await dialogOf(page).waitFor();
      await accessible(page, "the dialog");
      const before = left.length;
      await give(page, "not the key");
      await page.getByRole("alert").getByText("That key is not valid.").waitFor();
      assert.ok(
        await dialogOf(page)
          .getByLabel("Key", { exact: true })
          .evaluate((input) => input === document.activeElement),
      );
      assert.ok(left.length > before && left.at(-1) < left[0], `a wrong key counts in the rate window: ${left}`);
      await give(page, KEY);
      await opened(page);
      assert.equal(await dialogOf(page).count(), 0);
    }),
  );

  test(
    "is kept in the session storage of its tab only",
    at(async (visit) => {
      const { page, service, context } = visit;
      await page.goto(service.base);
      await give(page, KEY);
      await opened(page);
      const kept = await page.evaluate(() => ({
        session: Object.values(sessionStorage),
        local: Object.values(localStorage),
        cookies: document.cookie,
        url: location.href,
      }));
      assert.deepEqual(kept.session, [KEY]);
      assert.deepEqual(kept.local, []);
      assert.equal(kept.cookies, "");
      assert.deepEqual(await context.cookies(), []);
      assert.ok(!decodeURIComponent(kept.url).includes(KEY));
      await page.reload();
      await opened(page);
      assert.equal(await dialogOf(page).count(), 0, "a reload does not ask again");
      const other = await visit.tab();
      await other.goto(service.base);
      await dialogOf(other).waitFor();
    }),
  );

  test(
    "can be refused to the page, which says so and can ask again",
    at(async ({ page, service }) => {
      // One request is refused only after the user has declined.
      const late = [];
      await page.route("**/api/stats", (route) => late.push(route), { times: 1 });
      await page.goto(service.base);
      const alert = page.getByRole("main").getByRole("alert").filter({ hasText: /key/i });
      await until(() => late.length > 0, "the page asks for the numbers");
      await dialogOf(page).getByRole("button", { name: "Cancel" }).click();
      const refused = page.waitForResponse("**/api/stats");
      await late[0].continue();
      await (await refused).finished();
      await alert.waitFor();
      assert.equal(await dialogOf(page).count(), 0, "the page does not ask again by itself");
      await alert.getByRole("button", { name: "Try again" }).click();
      await give(page, KEY);
      await settled(page);
      assert.equal(await page.getByRole("alert").count(), 0);
    }),
  );

  test(
    "that was given is not called wrong because of a request before it",
    at(async ({ page, service }) => {
      const early = [];
      await page.route("**/api/stats", (route) => early.push(route), { times: 1 });
      await page.goto(service.base);
      await until(() => early.length > 0, "the page asks for the numbers");
      await give(page, KEY);
      await opened(page);
      await early[0].continue();
      await settled(page);
      assert.equal(await dialogOf(page).count(), 0);
    }),
  );

  test(
    "with characters that no header can carry is wrong, and not an error",
    at(async ({ page, service }) => {
      await page.goto(service.base);
      await give(page, "ключ\u202E");
      await page.getByText("That key is not valid.").waitFor();
    }),
  );

  test(
    "of a phone fits its window",
    at(
      async ({ page, service }) => {
        await page.goto(service.base);
        await dialogOf(page).waitFor();
        await fits(page, "the dialog");
      },
      { size: { width: 360, height: 740 } },
    ),
  );

  test(
    "given to the page opens the description at /docs, which says so without it",
    at(async ({ page, service }) => {
      await page.goto(`${service.base}/docs`);
      await page.getByText("The description is protected by a key.").waitFor();
      await page.getByRole("link", { name: "the page of this memory" }).click();
      assert.equal(page.url(), `${service.base}/`);
      await give(page, KEY);
      await opened(page);
      await page.goto(`${service.base}/docs`);
      await page.getByText("/api/recall", { exact: true }).first().waitFor();
    }),
  );

  test("guards /config: a page for a browser, JSON for others", async () => {
    const service = held.service;
    const html = await service.send("GET", "/config", undefined, { headers: { "x-api-key": "", accept: "text/html" } });
    assert.equal(html.status, 401);
    assert.match(html.headers.get("content-type"), /^text\/html/);
    assert.match(html.headers.get("content-security-policy"), /default-src 'none'/);
    const json = await service.send("GET", "/config", undefined, { headers: { "x-api-key": "", accept: "*/*" } });
    assert.equal(json.status, 401);
    assert.match(json.headers.get("content-type"), /^application\/json/);
    assert.deepEqual(await json.json(), { detail: "Valid API key required" });
  });

  test(
    "opens the editor at /config",
    at(async ({ page, service }) => {
      const answer = await page.goto(`${service.base}/config`);
      assert.equal(answer.status(), 401);
      await give(page, KEY);
      await page.getByRole("heading", { level: 1, name: "Configuration" }).waitFor();
      await until(
        async () => (await page.getByRole("main").getByRole("textbox").count()) > 0,
        "the editor shows the settings",
      );
      assert.ok(!(await page.content()).includes(KEY), "the key is not in the page");
    }),
  );
});
