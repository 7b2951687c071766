// The configuration editor.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { accessible, fits, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const SECRET = "sk-a-secret-of-the-tests";

/** The control of a setting. */
const setting = (page, path) => page.locator(".setting", { has: page.getByText(path, { exact: true }) });
const control = (page, path) => setting(page, path).locator("input, select").first();
const changes = (page) => page.getByRole("region", { name: "Unsaved changes" });
const apply = (page) => changes(page).getByRole("button", { name: "Apply" }).click();

async function tab(page, name) {
  await page.getByRole("tab", { name: "JSON and TOML" }).click();
  await page.getByRole("tab", { name, exact: true }).click();
  const area = page.getByLabel(`Settings as ${name}`);
  await until(async () => (await area.inputValue()) !== "", "the settings are shown");
  return area;
}

describe("the configuration", () => {
  const environment = { LOCAL_LLM_API_KEY: SECRET };
  const held = serviceOf("local", { environment });
  const at = (work, options) => () =>
    visiting(held.service, options ?? {}, async (visit) => {
      visit.record();
      const page = await visit.open("/config", "Configuration");
      await control(page, "retrieval.default_k").waitFor();
      await work(page, visit);
    });

  test(
    "shows every setting with its kind, and no secret",
    at(async (page, visit) => {
      const { fields } = await visit.service.ask("GET", "/api/config/meta");
      for (const { path } of fields) assert.equal(await setting(page, path).count(), 1, path);
      assert.equal(await control(page, "retrieval.default_k").getAttribute("type"), "number");
      assert.equal(await control(page, "governance.pii.enabled").getAttribute("role"), "switch");
      assert.deepEqual(await control(page, "governance.pii.action").getByRole("option").allInnerTexts(), [
        "log",
        "redact",
        "block",
      ]);
      const key = control(page, "llm.api_key");
      assert.deepEqual([await key.getAttribute("type"), await key.inputValue()], ["password", ""]);
      await accessible(page, "the settings");
      for (const name of ["JSON", "TOML"]) assert.ok(!(await (await tab(page, name)).inputValue()).includes(SECRET));
      await accessible(page, "the settings as text");
      assert.deepEqual(
        (await visit.answers()).filter((answer) => answer.includes(SECRET)),
        [],
      );
      assert.ok(!(await page.content()).includes(SECRET));
    }),
  );

  test(
    "is changed at once",
    at(async (page, { service }) => {
      await control(page, "retrieval.default_k").fill("7");
      await control(page, "governance.pii.action").selectOption("redact");
      await control(page, "governance.pii.enabled").check();
      await changes(page).getByText("3 changes not applied").waitFor();
      await accessible(page, "changes");
      await apply(page);
      await page.getByText(/In effect:/).waitFor();
      await changes(page).waitFor({ state: "hidden" });
      const { retrieval, governance } = await service.ask("GET", "/api/config");
      assert.deepEqual([retrieval.default_k, governance.pii], [7, { enabled: true, action: "redact" }]);
      await page.reload();
      await control(page, "retrieval.default_k").waitFor();
      assert.equal(await control(page, "retrieval.default_k").inputValue(), "7");
    }),
  );

  test(
    "keeps what is typed while changes are applied",
    at(async (page, { service }) => {
      const secret = "platform.token";
      await page.route("**/api/config", async (route) => {
        if (route.request().method() === "PUT") {
          await control(page, secret).fill("the second one");
          await control(page, "retrieval.default_k").fill(before);
        }
        await route.continue();
      });
      const before = await control(page, "retrieval.default_k").inputValue();
      await control(page, secret).fill("the first one");
      await control(page, "retrieval.default_k").fill("19");
      await apply(page);
      await page.getByText(/In effect:.*retrieval\.default_k/).waitFor();
      await changes(page).getByText("2 changes not applied").waitFor();
      assert.equal(await control(page, secret).inputValue(), "the second one");
      assert.equal(await control(page, "retrieval.default_k").inputValue(), before);
      assert.equal((await service.ask("GET", "/api/config")).retrieval.default_k, 19);
      await changes(page).getByRole("button", { name: "Revert" }).click();
    }),
  );

  test(
    "shows the edits that a filter hides",
    at(async (page) => {
      await control(page, "retrieval.default_k").fill("8");
      await changes(page).getByRole("button", { name: "Revert" }).click();
      await page.getByText("The changes were dropped.").waitFor();
      await control(page, "retrieval.default_k").fill("9");
      await page.getByText("The changes were dropped.").waitFor({ state: "hidden" });
      await page.getByRole("searchbox", { name: "Filter" }).fill("telemetry");
      await changes(page).getByRole("button", { name: "Show it" }).click();
      await until(() => control(page, "retrieval.default_k").isVisible(), "the edit is shown");
      await changes(page).getByRole("button", { name: "Revert" }).click();
    }),
  );

  test(
    "leads from /config to the page of the other views",
    at(async (page, { service }) => {
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Search" }).click();
      await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
      await until(() => page.url() === `${service.base}/#/search`, "the address is that of the page");
      await page.goto(`${service.base}/#/nonsense`);
      await page.getByText("There is no view “nonsense”.").waitFor();
      assert.match(await page.title(), /^Not found/);
    }),
  );

  test(
    "refuses a number that a page can't send exactly",
    at(async (page) => {
      const { fields } = await page.evaluate(() => fetch("/api/config/meta").then((answer) => answer.json()));
      const { path } = fields.find(({ type, maximum, set_by: by }) => type === "integer" && maximum > 2 ** 53 && !by);
      await control(page, path).fill("9007199254740993");
      await apply(page);
      await setting(page, path).getByText(/can't send this number exactly/).waitFor();
      await changes(page).getByRole("button", { name: "Revert" }).click();
    }),
  );

  test(
    "refuses a value at its field, and changes nothing",
    at(
      async (page, { service }) => {
        const before = await service.ask("GET", "/api/config");
        await control(page, "web.max_k").fill("33");
        await control(page, "retrieval.recency_half_life_days").fill("-1");
        await control(page, "web.rate_limit_per_minute").fill("0");
        await apply(page);
        await setting(page, "web.rate_limit_per_minute").locator(".field-error").waitFor();
        for (const path of ["retrieval.recency_half_life_days", "web.rate_limit_per_minute"]) {
          assert.equal(await control(page, path).getAttribute("aria-invalid"), "true", path);
          assert.match(await setting(page, path).locator(".field-error").innerText(), /\S/);
        }
        assert.equal(await control(page, "web.max_k").getAttribute("aria-invalid"), null);
        await page.getByText(/Nothing was changed/).waitFor();
        await accessible(page, "a refusal");
        assert.deepEqual(await service.ask("GET", "/api/config"), before);
        await changes(page).getByRole("button", { name: "Revert" }).click();
        await changes(page).waitFor({ state: "hidden" });
        assert.equal(await control(page, "web.max_k").inputValue(), String(before.web.max_k));
        assert.equal(await control(page, "web.rate_limit_per_minute").getAttribute("aria-invalid"), null);
      },
      { expected: [/status of 422/] },
    ),
  );

  test(
    "keeps what needs a restart until then",
    at(
      async (page, { service }) => {
        assert.match(await setting(page, "search.fresh_docs").innerText(), /restart/);
        await control(page, "search.fresh_docs").fill("128");
        await apply(page);
        await page.getByText(/Waits for the restart:.*search\.fresh_docs/).waitFor();
        await page.getByText("1 change waits for a restart of the service.").waitFor();
        assert.equal((await service.ask("GET", "/api/config")).search.fresh_docs, 2048);
        await accessible(page, "a change that waits");
        await service.restart();
        await page.reload();
        await control(page, "search.fresh_docs").waitFor();
        assert.equal(await control(page, "search.fresh_docs").inputValue(), "128");
        assert.equal((await service.ask("GET", "/api/config")).search.fresh_docs, 128);
        assert.equal(await page.getByText(/waits? for a restart of the service/).count(), 0);
      },
      { expected: [/net::ERR|status of 502/] },
    ),
  );

  test(
    "takes back what waits for the restart",
    at(async (page, { service }) => {
      await control(page, "web.workers").fill("3");
      await apply(page);
      await setting(page, "web.workers").getByRole("button", { name: "Withdraw" }).click();
      await page.getByText(/Taken back/).waitFor();
      assert.equal(await page.getByText(/waits? for a restart of the service/).count(), 0);
      const { fields } = await service.ask("GET", "/api/config/meta");
      assert.equal(fields.find(({ path }) => path === "web.workers").pending, undefined);
    }),
  );

  test(
    "takes a list with commas",
    at(async (page, { service }) => {
      const path = "web.admin_hosts";
      assert.equal(await control(page, path).inputValue(), "");
      assert.equal(await changes(page).isHidden(), true);
      await control(page, path).fill("memory.internal, , 2001:db8::1 ");
      await apply(page);
      await setting(page, path).getByText("memory.internal, 2001:db8::1").waitFor();
      const pending = async () => {
        const { fields } = await service.ask("GET", "/api/config/meta");
        return fields.find((field) => field.path === path).pending;
      };
      assert.deepEqual(await pending(), ["memory.internal", "2001:db8::1"]);
      await control(page, path).fill("memory.internal:9465");
      await apply(page);
      await setting(page, path).getByText(/must be a host name/).waitFor();
      await changes(page).getByRole("button", { name: "Revert" }).click();
      await setting(page, path).getByRole("button", { name: "Withdraw" }).click();
      await page.getByText(/Taken back/).waitFor();
      assert.equal(await pending(), undefined);
    }, { expected: [/status of 422/] }),
  );

  test(
    "says which variable of the environment sets a value",
    at(async (page) => {
      assert.match(await setting(page, "llm.api_key").innerText(), /LOCAL_LLM_API_KEY/);
      assert.ok(await control(page, "llm.api_key").isDisabled());
    }),
  );

  test(
    "is filtered",
    at(async (page) => {
      await page.getByRole("searchbox", { name: "Filter" }).fill("half_life");
      await until(async () => (await page.locator(".setting:visible").count()) === 1, "one setting is left");
      await page.getByRole("searchbox", { name: "Filter" }).fill("there is no such setting");
      await page.getByText("No setting fits the filter.").waitFor();
      await page.getByRole("button", { name: "Show all settings" }).click();
      await control(page, "web.max_k").waitFor();
    }),
  );

  test(
    "is changed as JSON and as TOML",
    at(
      async (page, { service }) => {
        const json = await tab(page, "JSON");
        const settings = JSON.parse(await json.inputValue());
        settings.retrieval.default_k = 11;
        await json.fill(JSON.stringify(settings, null, 2));
        await page.getByRole("button", { name: "Apply" }).click();
        await page.getByText(/In effect:.*retrieval\.default_k/).waitFor();
        assert.equal((await service.ask("GET", "/api/config")).retrieval.default_k, 11);

        const toml = await tab(page, "TOML");
        const text = await toml.inputValue();
        assert.match(text, /^default_k = 11$/m);
        await toml.fill(text.replace("default_k = 11", "default_k = 12"));
        await page.getByRole("button", { name: "Apply" }).click();
        await until(
          async () => (await service.ask("GET", "/api/config")).retrieval.default_k === 12,
          "the text is applied",
        );
        const coming = page.waitForEvent("download");
        await page.getByRole("button", { name: "Download local.toml" }).click();
        assert.match(await readFile(await (await coming).path(), "utf8"), /^default_k = 12$/m);

        await toml.fill("[retrieval]\ndefault_k = \n");
        await page.getByRole("button", { name: "Apply" }).click();
        await page.getByRole("alert").getByText("Nothing was changed.").waitFor();
        assert.equal(await toml.getAttribute("aria-invalid"), "true");
        assert.equal((await service.ask("GET", "/api/config")).retrieval.default_k, 12);
      },
      { expected: [/status of (400|422)/] },
    ),
  );

  test(
    "asks before a text undoes what was changed elsewhere",
    at(async (page, { service }) => {
      await service.ask("PUT", "/api/config", { "retrieval.default_k": 21, "web.max_k": 41 });
      const toml = await tab(page, "TOML");
      await page.getByRole("button", { name: "Load the current settings" }).click();
      await until(async () => /^default_k = 21$/m.test(await toml.inputValue()), "the text is new");
      await service.ask("PUT", "/api/config", { "retrieval.default_k": 22 });
      await toml.fill((await toml.inputValue()).replace(/^max_k = 41$/m, "max_k = 42"));
      const known = async () => {
        const { retrieval, web } = await service.ask("GET", "/api/config");
        return [retrieval.default_k, web.max_k];
      };
      const question = page.getByRole("dialog", { name: "The settings were changed meanwhile" });
      await page.getByRole("button", { name: "Apply" }).click();
      await question.getByText("default_k = 22").waitFor();
      await accessible(page, "the question");
      await question.getByRole("button", { name: "Cancel" }).click();
      assert.deepEqual(await known(), [22, 41]);
      await page.getByRole("button", { name: "Apply" }).click();
      await question.getByRole("button", { name: "Apply the text" }).click();
      await page.getByText(/In effect:.*retrieval\.default_k.*web\.max_k/).waitFor();
      assert.deepEqual(await known(), [21, 42]);
    }),
  );

  test(
    "asks before changes are lost",
    at(async (page, visit) => {
      await control(page, "web.max_k").fill("44");
      visit.confirming = true;
      const asked = page.waitForEvent("dialog");
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Overview" }).click();
      assert.match((await asked).message(), /not applied/);
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    }),
  );

  test(
    "fits a phone",
    at(
      async (page) => {
        await fits(page, "the settings");
        await control(page, "web.max_k").fill("44");
        await changes(page).waitFor();
        await fits(page, "changes");
        await tab(page, "JSON");
        await fits(page, "the settings as text");
      },
      { size: { width: 360, height: 740 } },
    ),
  );
});
