// The collections of the TAXII server.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn, userOf } from "../support/console.mjs";
import { accessible, fits, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

describe("collections", () => {
  const held = serviceOf("hosted", {}, async (service) => {
    await service.ask("POST", "/api/admin/api-keys", { name: "Firewall north", scopes: ["read"] });
    await service.ask("GET", "/api/recall/search?q=Sandworm");
    return { analyst: await userOf(service, "analyst") };
  });

  test("are defined, changed and deleted, and their settings are copied", () =>
    visiting(held.service, { expected: [/status of 400/] }, async (visit) => {
      await visit.context.grantPermissions(["clipboard-read", "clipboard-write"]);
      const page = await signedIn(visit, "#/collections");
      await page.getByText("No collection is defined yet").waitFor();
      await accessible(page, "no collections");
      await page.getByRole("button", { name: "Define a collection" }).click();
      await accessible(page, "a new collection");
      await page.getByLabel("Title").fill("Firewalls");
      await page.getByLabel("Alias").fill("firewalls");
      await page.getByLabel("STIX types").fill("indicator, No Type");
      await page.getByLabel("Results of a search").selectOption({ label: "Sandworm (0)" });
      await page.getByRole("group", { name: "Markings" }).getByLabel("TLP:GREEN").check();
      const readers = page.getByRole("group", { name: "Read by" });
      await readers.getByLabel("everyone with the permission").uncheck();
      await readers.getByLabel("Firewall north").check();
      await page.getByRole("button", { name: "Define", exact: true }).click();
      await page.getByRole("alert").filter({ hasText: "name of a STIX type" }).waitFor();
      assert.equal(await page.getByLabel("STIX types").getAttribute("aria-invalid"), "true");
      await page.getByLabel("STIX types").fill("indicator, ipv4-addr");
      await page.getByRole("button", { name: "Define", exact: true }).click();
      const card = page.getByRole("article", { name: "Firewalls" });
      await card.getByText("2 types: indicator, ipv4-addr").waitFor();
      await card.getByText("read by Firewall north").waitFor();
      await card.getByText("written by nobody").waitFor();
      const { service } = visit;
      const [made] = (await service.ask("GET", "/api/admin/collections")).collections;
      assert.deepEqual(made.filter.types, ["indicator", "ipv4-addr"]);
      assert.deepEqual(made.filter.markings, ["TLP:GREEN"]);
      assert.deepEqual(made.writable_by, []);
      assert.equal(made.readable_by.length, 1);

      await card.getByRole("button", { name: "Copy client settings" }).click();
      await page.getByText("The settings for Firewalls are in the clipboard.").waitFor();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      const { workspace } = await service.ask("GET", "/api/auth/me");
      const root = `${service.base}/taxii2/${workspace.id}/`;
      for (const line of [`API root: ${root}`, "Collection id: firewalls",
        `Objects URL: ${root}collections/firewalls/objects/`]) {
        assert.ok(copied.split("\n").includes(line), copied);
      }
      await accessible(page, "collections");
      await page.setViewportSize({ width: 360, height: 740 });
      await fits(page, "collections on a phone");

      await card.getByRole("button", { name: "Change …" }).click();
      await accessible(page, "a changed collection");
      await page.getByRole("group", { name: "Written by" }).getByLabel("everyone with the permission").check();
      await page.getByLabel("What is handed in").selectOption("ingest");
      await page.getByRole("button", { name: "Save" }).click();
      await card.getByText("takes objects in").waitFor();
      const [changed] = (await service.ask("GET", "/api/admin/collections")).collections;
      assert.deepEqual(changed, { ...made, writable_by: "everyone", hand_in: "ingest", updated_at: changed.updated_at });
      await card.getByRole("button", { name: "Delete …" }).click();
      await page.getByRole("button", { name: "Keep it" }).click();
      await card.getByRole("button", { name: "Delete …" }).click();
      await page.getByRole("button", { name: "Delete the collection" }).click();
      await page.getByText("No collection is defined yet").waitFor();
      assert.deepEqual((await service.ask("GET", "/api/admin/collections")).collections, []);
    }));

  test("are for administrators", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, "#/collections", held.seeded.analyst);
      await page.getByText("You may not use “Collections”.").waitFor();
    }));
});
