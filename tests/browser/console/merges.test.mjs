// Two nodes that are one thing: merged on a node's page or among the likely duplicates, and taken back.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn, userOf } from "../support/console.mjs";
import { accessible, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

const actor = (name, aliases) => ({ name, node_type: "actor", tlp: "TLP:GREEN", properties: { aliases } });
const groupOf = (name, aliases) => ({
  type: "intrusion-set", spec_version: "2.1", id: `intrusion-set--${crypto.randomUUID()}`, name, aliases,
  created: "2024-01-01T00:00:00.000Z", modified: "2024-01-01T00:00:00.000Z",
});

describe("merges", () => {
  const held = serviceOf("hosted", {}, async (service) => {
    const nodes = [actor("Amber Falcon", ["Falcon Team"]), actor("Quiet Heron", ["Heron Crew"])];
    await service.ask("POST", "/api/ingest/analyst", { nodes });
    const pairs = ["Grey Wader", "Pale Wader", "Red Wader"].map((name) => groupOf(name, [`${name} Unit`, "Wader Group"]));
    await service.ask("POST", "/api/ingest/stix", { bundle: pairs });
    const idOf = async (name) => {
      const { results } = await service.ask("GET", `/api/recall/search?q=${encodeURIComponent(name)}`);
      return results.find((node) => node.name === name).id;
    };
    return { falcon: await idOf("Amber Falcon"), heron: await idOf("Quiet Heron"), viewer: await userOf(service, "viewer") };
  });

  test("are made on a node's page and taken back there", () =>
    visiting(held.service, {}, async (visit) => {
      const { falcon, heron } = held.seeded;
      const page = await signedIn(visit, `#/node?id=${heron}`);
      await page.getByText("It is the same as another node").click();
      await page.getByLabel("Merge this node into").fill("Amber Falcon");
      await page.getByRole("button", { name: "Find" }).click();
      await page.getByRole("button", { name: "Merge into Amber Falcon" }).click();
      await page.getByLabel("Reason (optional)").fill("one group in two reports");
      await page.getByRole("button", { name: "Merge", exact: true }).click();
      await page.getByRole("heading", { name: "Amber Falcon", level: 2 }).waitFor();
      await page.getByText("The node that was asked for is merged into this one.").waitFor();
      const merged = page.getByRole("list", { name: "Merged nodes" });
      assert.match(await merged.innerText(), /Quiet Heron[\s\S]*one group in two reports/);
      await accessible(page, "a node with a merged one");
      await page.getByRole("button", { name: "Take back the merge of Quiet Heron" }).click();
      await page.getByRole("heading", { name: "Quiet Heron", level: 2 }).waitFor();
      const { node } = await held.service.ask("GET", `/api/nodes/${falcon}`);
      assert.deepEqual(node.properties.aliases, ["Falcon Team"]);
    }));

  test("are offered for nodes that share a name", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, "#/duplicates");
      const pairs = page.getByRole("list", { name: "Likely duplicates" }).getByRole("listitem");
      await pairs.first().waitFor();
      const before = await pairs.count();
      assert.match(await pairs.first().innerText(), /Wader/);
      assert.match(await pairs.first().innerText(), /Both have the alias Wader Group/);
      await accessible(page, "likely duplicates");
      await pairs.first().getByRole("button", { name: /are not the same$/ }).click();
      await pairs.nth(before - 1).waitFor({ state: "detached" });
      await pairs.first().getByRole("button", { name: /^Merge .* into/ }).first().click();
      await page.getByRole("button", { name: "Merge", exact: true }).click();
      await page.getByText("The nodes are merged.").waitFor();
      const { duplicates } = await held.service.ask("GET", "/api/nodes/duplicates");
      assert.equal(duplicates.length, 0);
    }));

  test("are not offered to those who may not write", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, `#/node?id=${held.seeded.falcon}`, held.seeded.viewer);
      await page.getByRole("heading", { name: "Amber Falcon", level: 2 }).waitFor();
      assert.equal(await page.getByText("It is the same as another node").count(), 0);
    }));
});
