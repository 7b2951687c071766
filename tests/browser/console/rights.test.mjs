// What a role or a marking hides stays hidden, because it never arrives.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn, userOf } from "../support/console.mjs";
import { settled, visiting, viewsOf } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

const SECRET = "Operation Cormorant Ledger";
const OPEN = "Cormorant Weather Group";

describe("rights", () => {
  const held = serviceOf("hosted", {}, async (service) => {
    const node = (name, tlp) => ({ name, node_type: "actor", tlp, description: `${name} is known for cormorants.` });
    await service.ask("POST", "/api/ingest/analyst", { nodes: [node(SECRET, "TLP:AMBER"), node(OPEN, "TLP:GREEN")] });
    const { results } = await service.ask("GET", `/api/recall/search?q=${encodeURIComponent(SECRET)}`);
    const { id } = results.find(({ name }) => name === SECRET);
    await service.ask("PATCH", "/api/admin/workspace", { tlp_ceiling: "TLP:GREEN" });
    return { id, viewer: await userOf(service, "viewer"), auditor: await userOf(service, "audit") };
  });

  test("of a viewer leave out the audit log and the review", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, "", held.seeded.viewer);
      assert.deepEqual(await viewsOf(page), ["Search", "Look-up", "Graph", "Changes"]);
      for (const [path, title] of [
        ["audit", "Audit log"],
        ["review", "Review"],
        ["feeds", "Feeds"],
      ]) {
        const asked = [];
        page.on("request", (request) => {
          if (request.url().includes("/api/")) asked.push(request.url());
        });
        await page.evaluate((hash) => {
          location.hash = hash;
        }, `#/${path}`);
        await page.getByText(`You may not use “${title}”.`).waitFor();
        assert.deepEqual(asked, []);
      }
    }));

  test("of an auditor show the audit log", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await signedIn(visit, "#/audit", held.seeded.auditor);
      await page.getByRole("table", { name: "Entries of the audit log" }).waitFor();
      assert.deepEqual(await viewsOf(page), ["Search", "Look-up", "Graph", "Changes", "Audit log"]);
    }));

  test("above the ceiling of a workspace never arrive", () =>
    visiting(held.service, { expected: [/status of 404/] }, async (visit) => {
      visit.record();
      const page = await signedIn(visit, "", held.seeded.viewer);
      for (const mode of ["Blended", "Structured", "Semantic"]) {
        await page.getByRole("radio", { name: mode }).check({ force: true });
        await page.getByLabel("Question").fill("Cormorant");
        await page.getByLabel("Question").press("Enter");
        await settled(page);
        await page.getByText(/^\d+ nodes?/).waitFor();
      }
      await page.getByRole("radio", { name: "Blended" }).check({ force: true });
      await page.getByLabel("Question").press("Enter");
      await page.getByRole("article").filter({ hasText: OPEN }).first().waitFor();
      await page.evaluate((id) => {
        location.hash = `#/node?id=${id}`;
      }, held.seeded.id);
      await page.getByText("There is no such node, or its marking hides it from this workspace.").waitFor();
      await page.evaluate((id) => {
        location.hash = `#/graph?around=${id}`;
      }, held.seeded.id);
      await page.getByText("There is no such node.").waitFor();
      await page.evaluate(() => {
        location.hash = "#/graph?q=Cormorant";
      });
      await page.getByRole("complementary", { name: "Selected node" }).getByRole("heading", { name: OPEN }).waitFor();
      const answers = await visit.answers();
      assert.ok(answers.some((answer) => answer.includes(OPEN)));
      const told = answers.filter((answer) => answer.includes(SECRET) || answer.includes("Ledger"));
      assert.deepEqual(
        told.map((answer) => answer.split("\n")[0]),
        [],
      );
    }));
});
