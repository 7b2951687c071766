// The log, live.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const lines = (page) => page.getByRole("region", { name: "Lines of the log" }).getByRole("listitem");
const live = (page) => page.getByRole("status").getByText("Live", { exact: true }).waitFor();
const route = (page, path) => lines(page).filter({ hasText: path });

describe("the log", () => {
  const held = serviceOf("local");
  const at = (work, options) => () =>
    visiting(held.service, options ?? {}, async (visit) => {
      const page = await visit.open("/#/logs", "Logs");
      await live(page);
      await work(page, visit);
    });

  test(
    "grows as it is written, and can be paused",
    at(async (page, { service }) => {
      await lines(page).first().waitFor();
      const before = await route(page, "/api/edition").count();
      await service.ask("GET", "/api/edition");
      await until(async () => (await route(page, "/api/edition").count()) > before, "the request is shown");
      await page.getByRole("button", { name: "Pause" }).click();
      const paused = await lines(page).count();
      for (let time = 0; time < 3; time += 1) await service.ask("GET", "/api/storage");
      await page.getByRole("button", { name: /Continue \(\d+ new\)/ }).waitFor();
      assert.equal(await lines(page).count(), paused, "nothing moves while it is paused");
      await page.getByRole("button", { name: /Continue/ }).click();
      await until(async () => (await route(page, "/api/storage").count()) >= 3, "what came meanwhile is shown");
    }),
  );

  test(
    "is filtered by level and text",
    at(async (page, { service }) => {
      await service.send("POST", "/api/recall", { query: "" });
      await service.ask("GET", "/api/edition");
      await route(page, "/api/edition").first().waitFor();
      await page.getByLabel("Text", { exact: true }).fill("route=/api/edition");
      await until(async () => {
        const shown = await lines(page).allInnerTexts();
        return shown.length > 0 && shown.every((line) => line.includes("/api/edition"));
      }, "only lines with the text");
      await page.getByLabel("Text", { exact: true }).fill("");
      await page.getByLabel("Level").selectOption("error");
      await until(
        async () => (await lines(page).allInnerTexts()).every((line) => /error|No line fits/i.test(line)),
        "only errors",
      );
      await page.getByLabel("Level").selectOption("");
      await route(page, "/api/edition").first().waitFor();
    }),
  );

  test(
    "shows everything of a line",
    at(async (page, { service }) => {
      await service.ask("GET", "/api/edition");
      const line = route(page, "/api/edition").last();
      await line.waitFor();
      await line.locator("summary").focus();
      await page.keyboard.press("Enter");
      await line.getByRole("term").filter({ hasText: "span.request_id" }).waitFor();
      assert.match(await line.innerText(), /target/);
    }),
  );

  test(
    "is read again with the next stream if that failed at first",
    at(
      async (page, { service }) => {
        await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Overview" }).click();
        await page.route("**/api/logs?*", (route) => route.abort(), { times: 1 });
        await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Logs" }).click();
        await page.getByRole("button", { name: "Try again" }).waitFor();
        await service.restart();
        await lines(page).first().waitFor();
        await page.getByRole("button", { name: "Try again" }).waitFor({ state: "detached" });
      },
      { expected: [/net::ERR|status of 502/] },
    ),
  );

  test(
    "goes on after the service was restarted",
    at(
      async (page, { service }) => {
        await service.stop();
        await page
          .getByRole("status")
          .getByText(/Reconnecting since/)
          .waitFor();
        await service.start();
        await live(page);
        const before = await route(page, "/api/edition").count();
        await service.ask("GET", "/api/edition");
        await until(async () => (await route(page, "/api/edition").count()) > before, "a new line is shown");
      },
      { expected: [/net::ERR|status of 502/] },
    ),
  );
});
