// Threat feeds, and the review of their batches.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, fits, visiting } from "../support/page.mjs";
import { demoBundle } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";

const decision = (page, name) => page.getByRole("group", { name: `Decision on ${name}` });
const status = (page, name) => page.getByRole("main").getByRole("button", { name });

async function found(service, name) {
  const { results } = await service.ask("GET", `/api/recall/search?mode=structured&q=${encodeURIComponent(name)}`);
  return results.filter((node) => node.name === name).length;
}

describe("feeds", () => {
  const held = serviceOf("hosted", { environment: { TAXII_ALLOWED_HOSTS: "taxii.example.com" } });
  const at = (path, work, expected) => () =>
    visiting(held.service, { expected }, async (visit) => work(await signedIn(visit, path), visit));

  test(
    "are registered, and a refused address says so at its field",
    at(
      "#/feeds",
      async (page, { service }) => {
        await page.getByText("No feed is registered yet").waitFor();
        await accessible(page, "no feeds");
        await page.getByRole("button", { name: "Register a feed" }).click();
        await page.getByLabel("Name", { exact: true }).fill("A sector's feed");
        const address = page.getByLabel("URL of the collection's objects");
        await address.fill("https://elsewhere.example.org/collections/1/objects/");
        await page.getByLabel("Marking for objects that have none").selectOption("TLP:GREEN");
        await page.getByLabel("Redistribution").selectOption("internal_only");
        await page.getByRole("button", { name: "Register", exact: true }).click();
        await page
          .getByRole("alert")
          .filter({ hasText: /host|allow/i })
          .waitFor();
        assert.equal(await address.getAttribute("aria-invalid"), "true");
        await accessible(page, "a refused feed");
        await address.fill("https://taxii.example.com/collections/1/objects/");
        await page.getByRole("button", { name: "Register", exact: true }).click();
        await page.getByRole("article", { name: "A sector's feed" }).getByText("internal only").waitFor();
        const { feeds } = await service.ask("GET", "/api/threat-intel/feeds");
        assert.deepEqual(
          feeds.map(({ name }) => name),
          ["A sector's feed"],
        );
        const feed = page.getByRole("article", { name: "A sector's feed" });
        await feed.getByRole("button", { name: "Change …" }).click();
        await page.getByRole("switch", { name: "May be pulled" }).uncheck();
        await page.getByRole("button", { name: "Save" }).click();
        await page.getByText("switched off").waitFor();
        assert.ok(await page.getByRole("button", { name: "Pull now" }).isDisabled());
        await page.setViewportSize({ width: 360, height: 740 });
        await fits(page, "feeds on a phone");
        await feed.getByRole("button", { name: "Delete …" }).click();
        await accessible(page, "a feed that may be deleted");
        await page.getByRole("button", { name: "Keep it" }).click();
        await feed.getByRole("button", { name: "Delete …" }).click();
        await page.getByRole("button", { name: "Delete the feed" }).click();
        await page.getByText("No feed is registered yet").waitFor();
        assert.deepEqual((await service.ask("GET", "/api/threat-intel/feeds")).feeds, []);
      },
      [/status of 400/],
    ),
  );

  test(
    "count right what is decided while many are marked",
    at("", async (page, { service }) => {
      const time = "2024-01-01T00:00:00.000Z";
      const id = (at) => `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;
      const objects = Array.from({ length: 30 }, (_, at) => ({
        type: "malware",
        spec_version: "2.1",
        id: `malware--${id(at)}`,
        created: time,
        modified: time,
        is_family: true,
        name: `Sample ${at}`,
      }));
      const bundle = { type: "bundle", id: `bundle--${id(99)}`, objects };
      const { batch } = await service.ask("POST", "/api/threat-intel/batches", {
        input_kind: "stix_bundle",
        bundle,
        default_tlp: "TLP:GREEN",
      });
      await page.evaluate((hash) => {
        location.hash = hash;
      }, `#/batch?id=${batch.id}`);
      await decision(page, "Sample 29").waitFor();
      await page.route("**/items/*", async (route) => {
        await new Promise((resolve) => {
          setTimeout(resolve, 150);
        });
        await route.continue();
      });
      await page.getByRole("checkbox", { name: "All" }).check();
      await page.getByLabel("Mark the selected").selectOption("TLP:AMBER");
      await decision(page, "Sample 25").getByRole("button", { name: "Reject" }).click();
      await page.getByText("30 items marked TLP:AMBER.").waitFor();
      await status(page, "pending 29").waitFor();
      await status(page, "rejected 1").waitFor();
      assert.equal((await service.ask("GET", `/api/threat-intel/batches/${batch.id}`)).batch.rejected, 1);
    }),
  );

  test(
    "are reviewed item by item before anything is a node",
    at("#/feeds", async (page, { service }) => {
      const bundle = await demoBundle();
      await page.getByRole("tab", { name: "Upload a bundle" }).click();
      const file = (text) => ({ name: "bundle.json", mimeType: "application/json", buffer: Buffer.from(text) });
      await page.getByLabel("File").setInputFiles(file("{ no JSON"));
      await page.getByRole("button", { name: "Stage the bundle" }).click();
      await page.getByRole("alert").filter({ hasText: "The file bundle.json holds no JSON." }).waitFor();
      const named = ["Sandworm Team", "APT28"];
      const objects = bundle.objects.filter(({ name, type }) => named.includes(name) || type === "marking-definition");
      await page.getByLabel("File").setInputFiles(file(JSON.stringify({ ...bundle, objects })));
      await page.getByRole("button", { name: "Stage the bundle" }).click();
      await page.getByRole("heading", { level: 1, name: "Feed batch" }).waitFor();
      await decision(page, "Sandworm Team").waitFor();
      await accessible(page, "a batch of a feed");
      assert.equal(await found(service, "APT28"), 0);
      await decision(page, "APT28").getByRole("button", { name: "Accept" }).click();
      await decision(page, "Sandworm Team").getByRole("button", { name: "Reject" }).click();
      await status(page, "accepted 1").waitFor();
      await status(page, "rejected 1").waitFor();
      await page
        .getByRole("button", { name: /^Commit/ })
        .first()
        .click();
      await page
        .getByRole("dialog")
        .getByRole("button", { name: /^Commit/ })
        .click();
      await page.getByText(/Committed 1 item: 1 node created/).waitFor();
      assert.equal(await found(service, "APT28"), 1);
      assert.equal(await found(service, "Sandworm Team"), 0);
      assert.match(await page.evaluate(() => document.activeElement.innerText), /Committed 1 item/);
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Feeds" }).click();
      await page.getByRole("tab", { name: "Batches" }).click();
      await page.getByRole("tabpanel", { name: "Batches" }).getByRole("link").first().waitFor();
      await accessible(page, "batches");
    }),
  );
});
