// The review of staged entities.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, fits, settled, visit as goTo, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const TEXT =
  "TLP:GREEN Sandworm Team uses Industroyer. It was seen at hxxp://198.51.100[.]7/a and exploits CVE-2014-4114.";
const decision = (page, name) => page.getByRole("group", { name: `Decision on ${name}` });
const status = (page, name) => page.getByRole("main").getByRole("button", { name });

async function names(service, query) {
  const { results } = await service.ask("GET", `/api/recall/search?mode=structured&q=${encodeURIComponent(query)}`);
  return results.map(({ name }) => name);
}

describe("review", () => {
  const held = serviceOf("hosted");

  test("turns what was accepted into nodes, and nothing else", () =>
    visiting(held.service, {}, async (visit) => {
      const { service } = visit;
      const page = await signedIn(visit, "#/review");
      await page.getByLabel("Text", { exact: true }).fill(TEXT);
      await page.getByRole("button", { name: "Find the entities" }).click();
      await decision(page, "Sandworm Team").waitFor();
      await accessible(page, "a batch");
      await page.setViewportSize({ width: 360, height: 740 });
      await fits(page, "a batch on a phone");
      await page.setViewportSize({ width: 1280, height: 800 });
      assert.deepEqual(await names(service, "Sandworm Team"), [], "nothing is a node before the commit");

      await decision(page, "Sandworm Team").getByRole("button", { name: "Accept" }).click();
      await decision(page, "Industroyer").getByRole("button", { name: "Reject" }).click();
      await status(page, "accepted 1").waitFor();
      await status(page, "rejected 1").waitFor();
      await decision(page, "CVE-2014-4114").getByRole("button", { name: "Accept" }).focus();
      await page.keyboard.press("a");
      await status(page, "accepted 2").waitFor();
      await page.reload();
      await status(page, "accepted 2").waitFor();
      await page.getByRole("button", { name: "Commit …" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText(/2 accepted entities become nodes/).waitFor();
      await accessible(page, "the commit");
      await dialog.getByRole("button", { name: "Commit", exact: true }).click();
      await page.getByText(/Committed: 2 nodes created/).waitFor();
      assert.deepEqual(await names(service, "Sandworm Team"), ["Sandworm Team"]);
      assert.deepEqual(await names(service, "Industroyer"), []);
      await until(async () => (await status(page, /^committed 2/).count()) === 1, "what is committed is shown so");
    }));

  test("keeps what was decided while many are marked", () =>
    visiting(held.service, {}, async (visit) => {
      const { service } = visit;
      const cves = Array.from({ length: 60 }, (_, at) => `CVE-2021-${10000 + at}`);
      const { batch_id: batch } = await service.ask("POST", "/api/ingest/preview", { text: cves.join(", ") });
      const page = await signedIn(visit, `#/review?batch=${batch}`);
      await decision(page, cves[40]).waitFor();
      await page.route("**/api/ingest/staging/*", async (route) => {
        await new Promise((resolve) => {
          setTimeout(resolve, 150);
        });
        await route.continue();
      });
      await page.getByRole("checkbox", { name: "All" }).check();
      await page.getByLabel("Mark the selected").selectOption("TLP:GREEN");
      await decision(page, cves[40]).getByRole("button", { name: "Reject" }).click();
      await status(page, "rejected 1").waitFor();
      await page.getByText("50 entities marked TLP:GREEN.").waitFor();
      const { entities } = await service.ask("GET", `/api/ingest/batch/${batch}`);
      const found = entities.find(({ name }) => name === cves[40]);
      assert.equal(found.status, "rejected");
      assert.equal(found.resolved_tlp, "TLP:GREEN");

      const focused = () => page.evaluate(() => document.activeElement.innerText.split("\n")[0]);
      for (const name of ["Load again", "pending 59", "all 60"]) {
        await status(page, name).focus();
        await page.keyboard.press("Enter");
        await settled(page);
        assert.equal(await focused(), name, "the focus stays where it was");
      }
      await status(page, "Next").focus();
      await page.keyboard.press("Enter");
      await decision(page, cves[55]).waitFor();
      assert.equal(await page.evaluate(() => document.activeElement.tagName), "ARTICLE", "a page begins at its first");
    }));

  test("takes its question away when it is left", () =>
    visiting(held.service, {}, async (visit) => {
      const text = "Turla was named in another text.";
      const { batch_id: batch } = await visit.service.ask("POST", "/api/ingest/preview", { text });
      const page = await signedIn(visit, `#/review?batch=${batch}`);
      await decision(page, "Turla").getByRole("button", { name: "Accept" }).click();
      await page.getByRole("button", { name: "Commit …" }).click();
      await page.getByRole("dialog", { name: "Commit the decisions?" }).waitFor();
      await page.evaluate(() => {
        location.hash = "#/search";
      });
      await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assert.deepEqual(await names(visit.service, "Turla"), [], "nothing is committed");
    }));

  test("keeps a text that was not read yet, and says when it was", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, "#/review");
      const text = page.getByLabel("Text", { exact: true });
      await text.fill("Gamaredon was named in a pasted report.");
      await goTo(page, "Search");
      await goTo(page, "Review");
      assert.equal(await text.inputValue(), "Gamaredon was named in a pasted report.");
      await page.getByRole("button", { name: "Find the entities" }).click();
      await decision(page, "Gamaredon Group").waitFor();
      await page.goBack();
      await page.getByText("This text is in the batch").waitFor();
      await accessible(page, "a text that was read");
      await page.getByRole("button", { name: "Clear it" }).click();
      assert.equal(await text.inputValue(), "");
    }));

  test("says that a commit without an answer may have happened, and where a commit left it", () =>
    visiting(held.service, { expected: [/ERR_CONNECTION_RESET/] }, async (visit) => {
      const text = "Wizard Spider was named in a report of its own.";
      const { batch_id: batch } = await visit.service.ask("POST", "/api/ingest/preview", { text });
      const page = await signedIn(visit, `#/review?batch=${batch}`);
      await decision(page, "Wizard Spider").getByRole("button", { name: "Accept" }).click();
      await status(page, "accepted 1").click();
      await page.route("**/commit", (route) => route.abort("connectionreset"), { times: 1 });
      const commit = async () => {
        await page.getByRole("button", { name: "Commit …" }).focus();
        await page.keyboard.press("Enter");
        await page.getByRole("dialog").waitFor();
        await page.keyboard.press("Enter");
      };
      await commit();
      await page.getByText("It may be committed or not").waitFor();
      await accessible(page, "a lost answer");
      await page.locator(".notice").getByRole("button", { name: "Load again" }).click();
      await page.getByText("It may be committed or not").waitFor({ state: "detached" });
      await commit();
      await page.getByText(/Committed: 1 node created/).waitFor();
      assert.match(await page.evaluate(() => document.activeElement.innerText), /^Committed: 1 node created/);
      assert.equal(await status(page, "all 1").getAttribute("aria-pressed"), "true", "what was committed is shown");
      await page.getByText("open the node").waitFor();
    }));

  test("names what its text marks more strictly, and takes it only when told so", () =>
    visiting(held.service, {}, async (visit) => {
      const { service } = visit;
      const text = "TLP:RED\n\nCVE-2020-10187, CVE-2020-10188 and CVE-2020-10189 were named.";
      const { batch_id: batch } = await service.ask("POST", "/api/ingest/preview", { text });
      const page = await signedIn(visit, `#/review?batch=${batch}`);
      const dialog = page.getByRole("dialog");
      await decision(page, "CVE-2020-10187").getByRole("button", { name: "Accept" }).click();
      await dialog.getByText("Take 1 entity as marked?").waitFor();
      await dialog.getByText("CVE-2020-10187").waitFor();
      await accessible(page, "a question about a marking");
      await dialog.getByRole("button", { name: "Cancel" }).click();
      await status(page, "pending 3").waitFor();

      await page.getByLabel("Marking of CVE-2020-10189").selectOption("TLP:GREEN");
      await page.getByRole("checkbox", { name: "All" }).check();
      await page.locator(".many").getByRole("button", { name: "Accept" }).click();
      await dialog.getByText("Take 2 entities as marked?").waitFor();
      for (const name of ["CVE-2020-10187", "CVE-2020-10188"]) await dialog.getByText(name).waitFor();
      assert.equal(await dialog.getByText("CVE-2020-10189").count(), 0, "its marking is decided on");
      await dialog.getByRole("button", { name: "Only the other 1 entity" }).click();
      await status(page, "accepted 1").waitFor();
      await status(page, "pending 2").waitFor();

      await decision(page, "CVE-2020-10188").getByRole("button", { name: "Accept" }).click();
      await dialog.getByRole("button", { name: "Take as marked" }).click();
      await status(page, "accepted 2").waitFor();
      await page.getByRole("button", { name: "Commit …" }).click();
      await dialog.getByText("The text asks for a stricter marking of:").waitFor();
      await dialog.getByText("CVE-2020-10188").waitFor();
      await dialog.getByRole("button", { name: "Commit", exact: true }).click();
      await page.getByText(/Committed: 2 nodes created/).waitFor();
    }));

  test("asks before many decisions take more requests than are left", () =>
    visiting(held.service, {}, async (visit) => {
      const cves = Array.from({ length: 12 }, (_, at) => `CVE-2022-${10000 + at}`);
      const { batch_id: batch } = await visit.service.ask("POST", "/api/ingest/preview", { text: cves.join(", ") });
      const page = await signedIn(visit);
      let left = 6;
      await page.route("**/api/ingest/**", async (route) => {
        const response = await route.fetch();
        left -= 1;
        const rate = { "ratelimit-limit": "100", "ratelimit-remaining": String(left), "ratelimit-reset": "1200" };
        await route.fulfill({ response, headers: { ...response.headers(), ...rate } });
      });
      await page.evaluate((hash) => {
        location.hash = hash;
      }, `#/review?batch=${batch}`);
      await page.getByRole("checkbox", { name: "All 12 shown" }).check();
      await page.getByText("12 selected: a request each, and 5 left of this hour").waitFor();
      await page.locator(".many").getByRole("button", { name: "Reject" }).click();
      await page.getByRole("dialog").getByText("This takes 12 requests; 5 of this hour are left").waitFor();
      await accessible(page, "too few requests");
      await page.getByRole("button", { name: "Decide on the first 3" }).click();
      await page.getByText("3 entities rejected.").waitFor();
      await page.getByRole("button", { name: "Go on with the 9 left" }).waitFor();
      const { entities } = await visit.service.ask("GET", `/api/ingest/batch/${batch}`);
      assert.equal(entities.filter((entity) => entity.status === "rejected").length, 3);
    }));

  test("tells nodes of the same name apart, and takes the only one for granted", () =>
    visiting(held.service, {}, async (visit) => {
      const { service } = visit;
      const time = "2024-01-01T00:00:00.000Z";
      const store = async (name, ...described) => {
        const objects = described.map((description, at) => ({
          type: "intrusion-set",
          spec_version: "2.1",
          id: `intrusion-set--00000000-0000-4000-8000-${String(name.length * 10 + at).padStart(12, "0")}`,
          created: time,
          modified: time,
          name,
          description,
        }));
        const bundle = { type: "bundle", id: "bundle--00000000-0000-4000-8000-000000000099", objects };
        const body = { input_kind: "stix_bundle", bundle, default_tlp: "TLP:GREEN" };
        const { batch } = await service.ask("POST", "/api/threat-intel/batches", body);
        const { items } = await service.ask("GET", `/api/threat-intel/batches/${batch.id}`);
        await service.ask("POST", `/api/threat-intel/batches/${batch.id}/commit`, { item_ids: items.map(({ id }) => id) });
      };
      await store("Lazarus Group", "The one of the first report.", "The one of the second report.");
      await store("Kimsuky", "The only one.");
      const text = "Lazarus Group and Kimsuky were named together.";
      const { batch_id: batch } = await service.ask("POST", "/api/ingest/preview", { text });
      const page = await signedIn(visit, `#/review?batch=${batch}`);
      await page.getByRole("button", { name: "Compare …" }).click();
      const second = page.getByRole("radio", { name: /The one of the second report/ });
      await second.waitFor();
      await accessible(page, "nodes of the same name");
      await second.check();
      await page.keyboard.press("Enter");
      await status(page, "merged 1").waitFor();
      await decision(page, "Kimsuky").getByRole("button", { name: "Accept" }).focus();
      await page.keyboard.press("m");
      await page.getByRole("dialog", { name: "What is Kimsuky?" }).waitFor();
      await page.keyboard.press("Enter");
      await status(page, "merged 2").waitFor();
    }));

  test("says that a batch is not there", () =>
    visiting(held.service, { expected: [/status of 404/] }, async (visit) => {
      const page = await signedIn(visit, "#/review?batch=mistyped");
      await page.getByText("There is no such batch").waitFor();
      await page.getByRole("link", { name: "Read a text or open another batch" }).click();
      await page.getByRole("heading", { name: "Open batches" }).waitFor();
      await page.evaluate(() => {
        location.hash = "#/batch?id=mistyped";
      });
      await page.getByRole("link", { name: "List the batches" }).waitFor();
      await page.getByText("There is no such batch").waitFor();
    }));

  test("lists the batches that wait", () =>
    visiting(held.service, {}, async (visit) => {
      const { service } = visit;
      const text = "Turla uses Carbon against 198.51.100.77.";
      const made = await service.ask("POST", "/api/ingest/preview", { text, session_id: "case 4711" });
      const page = await signedIn(visit, "#/review");
      await page.getByRole("table", { name: "Open batches" }).waitFor();
      await accessible(page, "open batches");
      await page.getByRole("link", { name: "case 4711" }).first().click();
      await page.getByText("198.51.100.77").first().waitFor();
      assert.ok(page.url().includes(made.batch_id), page.url());
    }));

  test("says what is wrong with a text", () =>
    visiting(held.service, { expected: [/status of 400/] }, async (visit) => {
      const page = await signedIn(visit, "#/review");
      await page.getByLabel("Text", { exact: true }).fill("nothing to be found in here at all");
      await page.getByRole("button", { name: "Find the entities" }).click();
      await page.getByText("Nothing was found in this text").waitFor();
      await page.getByRole("link", { name: "Read another text" }).first().click();
      await page.getByLabel("Text", { exact: true }).fill("Sandworm Team uses Industroyer.");
      await page.getByLabel("Marking", { exact: true }).selectOption("TLP:RED");
      await page.getByRole("button", { name: "Find the entities" }).click();
      await page.getByRole("alert").filter({ hasText: /TLP/ }).waitFor();
      assert.equal(await page.getByLabel("Marking", { exact: true }).getAttribute("aria-invalid"), "true");
    }));
});
