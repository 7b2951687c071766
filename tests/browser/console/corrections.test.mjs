// What is wrong is corrected on a node's page, and every change stands on the page of the day's changes.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn, userOf } from "../support/console.mjs";
import { accessible, settled, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

const TIME = "2024-01-01T00:00:00.000Z";
const object = (type, name, more = {}) => ({ type, spec_version: "2.1", id: `${type}--${crypto.randomUUID()}`, name,
  created: TIME, modified: TIME, ...more });

describe("corrections", () => {
  const held = serviceOf("hosted", {}, async (service) => {
    const heron = object("intrusion-set", "Umber Heron", { aliases: ["Reed Bear", "Marsh Bear"], description: "Steals maps." });
    const kit = object("tool", "Heron Kit");
    const uses = { type: "relationship", spec_version: "2.1", id: `relationship--${crypto.randomUUID()}`, created: TIME,
      modified: TIME, relationship_type: "uses", source_ref: heron.id, target_ref: kit.id };
    await service.ask("POST", "/api/ingest/stix", { bundle: [heron, kit, uses] });
    const { results } = await service.ask("GET", "/api/recall/search?q=Umber%20Heron");
    const heronNode = results.find(({ name }) => name === "Umber Heron").id;
    return { heron: heronNode, viewer: await userOf(service, "viewer") };
  });

  test("take out a wrong alias, show who did it, and are taken back", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, `#/node?id=${held.seeded.heron}`);
      await page.getByText("Nothing: it is as its sources state it.").waitFor();
      await page.getByRole("button", { name: "Correct", exact: true }).click();
      const aliases = page.getByLabel("Also known as");
      assert.equal(await aliases.inputValue(), "Reed Bear\nMarsh Bear");
      await aliases.fill("Reed Bear\nFen Bear");
      await page.getByLabel("Reason").fill("Another group");
      await accessible(page, "a correction");
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("The node is corrected.").waitFor();
      await page.getByText("Also known as Reed Bear, Fen Bear").waitFor();
      const line = page.getByRole("listitem").filter({ hasText: "the sources state" });
      assert.match(await line.innerText(), /aliases[\s\S]*\+ Fen Bear, − Marsh Bear[\s\S]*Reed Bear, Marsh Bear/);
      await accessible(page, "a corrected node");
      await line.getByRole("link", { name: "Who set it, and why" }).click();
      await page.getByText("Another group").first().waitFor();
      await page.getByRole("button", { name: "Take back the aliases" }).click();
      await page.getByText("The sources have the word again.").waitFor();
      await page.getByText("Also known as Reed Bear, Marsh Bear").waitFor();
    }));

  test("of what somebody else has changed are refused", () =>
    visiting(held.service, { expected: [/status of 412/] }, async (visit) => {
      const page = await signedIn(visit, `#/node?id=${held.seeded.heron}`);
      await page.getByRole("button", { name: "Correct", exact: true }).click();
      await page.getByLabel("Description").fill("Sells maps.");
      await held.service.ask("PATCH", `/api/nodes/${held.seeded.heron}`, { confidence: 0.33 });
      await page.getByRole("button", { name: "Save" }).click();
      await page.getByText("somebody else has changed it; read it again").waitFor();
    }));

  test("reject a relationship, and every change is on the page of the day", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, `#/node?id=${held.seeded.heron}`);
      await page.getByRole("button", { name: "Reject the relationship with Heron Kit" }).click();
      await page.getByLabel("Reason").fill("A mistake");
      await page.getByRole("button", { name: "Reject", exact: true }).click();
      await page.getByText("No source that this workspace may see relates it to another node.").waitFor();
      await page.getByRole("link", { name: "Changes" }).click();
      await settled(page);
      await page.getByRole("status").filter({ hasText: /changes: .*created/ }).waitFor();
      await page.getByLabel("Kind").selectOption("rejected");
      await page.getByText("1 change: 1 rejected.").waitFor();
      await accessible(page, "the changes of a day");
      await page.getByLabel("Kind").selectOption("changed");
      await page.getByRole("link", { name: "Umber Heron" }).first().click();
      await page.getByRole("heading", { name: "Umber Heron", level: 2 }).waitFor();
    }));

  test("are not offered to those who may not write", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, `#/node?id=${held.seeded.heron}`, held.seeded.viewer);
      await page.getByRole("heading", { name: "Umber Heron", level: 2 }).waitFor();
      assert.equal(await page.getByRole("button", { name: /^(Correct|Reject|Take back)/ }).count(), 0);
    }));
});
