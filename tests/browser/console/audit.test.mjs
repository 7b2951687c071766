// The audit log.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

const QUERY = "what an auditor looks for";
const rows = (page) => page.getByRole("table", { name: "Entries of the audit log" }).locator("tbody tr");

describe("the audit log", () => {
  const held = serviceOf("hosted", {}, (service) =>
    service.ask("GET", `/api/recall/search?q=${encodeURIComponent(QUERY)}`),
  );
  const at = (work) => () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, "#/audit");
      await rows(page).first().waitFor();
      await work(page, visit);
    });

  test(
    "shows who did what",
    at(async (page) => {
      const entry = rows(page).filter({ hasText: "recall.search" }).first();
      assert.match(await entry.innerText(), /admin@example\.com/);
      await accessible(page, "the audit log");
      await entry.getByRole("button", { name: /^Details of recall\.search/ }).click();
      const dialog = page.getByRole("dialog", { name: "recall.search" });
      await dialog.getByText(QUERY).first().waitFor();
      await accessible(page, "an entry of the audit log");
      await dialog.getByRole("button", { name: "Close" }).click();
      await page.getByLabel("Find in the entries below").fill("auth.login");
      await rows(page).filter({ hasText: "auth.login" }).first().waitFor();
      assert.equal(await rows(page).filter({ hasText: "recall.search" }).count(), 0);
    }),
  );

  test(
    "is verified",
    at(async (page, { service }) => {
      await page.getByRole("button", { name: "Verify the log" }).click();
      await page.getByText("The log is whole.").waitFor();
      const { valid } = await service.ask("GET", "/api/audit/verify");
      assert.equal(valid, true);
    }),
  );

  test(
    "is exported as CSV",
    at(async (page) => {
      const coming = page.waitForEvent("download");
      await page.getByRole("button", { name: "Export as CSV" }).click();
      const file = await coming;
      const text = await readFile(await file.path(), "utf8");
      assert.match(text.split("\n")[0], /^\ufeff?id,tenant_id,user_id,user_email,action,resource/);
      assert.match(text, /recall\.search/);
    }),
  );
});
