// The graph of the console: it begins with a search, and Back leads to the picture as it was.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, settled, visiting } from "../support/page.mjs";
import { demoBundle } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";

const details = (page) => page.getByRole("complementary", { name: "Selected node" });
const status = (page) => page.getByText(/nodes? and .* links? shown/);
const actors = (page) => page.getByRole("group", { name: "Types shown" }).getByRole("button", { name: /^actor/i });

async function numbers(page) {
  const text = await status(page).innerText();
  return text.match(/\d+/g).slice(0, 2).map(Number);
}

/** The first details are read, and what they tell is in the picture. */
const read = (page) => details(page).getByRole("heading", { level: 3 }).first().waitFor();

describe("a workspace with nodes", () => {
  const held = serviceOf("hosted", {}, async (service) => {
    await service.ask("POST", "/api/ingest/stix", { bundle: await demoBundle() });
  });
  const at = (path, work) => () =>
    visiting(held.service, {}, async (visit) => work(await signedIn(visit, path), visit));

  test(
    "begins in a new workspace with the best connected nodes",
    at("#/graph", async (page) => {
      await page.getByText("The best connected nodes").waitFor();
      const [nodes, links] = await numbers(page);
      assert.ok(nodes > 10 && links > 10, await status(page).innerText());
      await accessible(page, "the best connected nodes");
    }),
  );

  test(
    "begins with what fits best and what is around it",
    at("#/graph", async (page) => {
      const asked = [];
      page.on("request", (request) => asked.push(new URL(request.url()).pathname));
      await page.getByLabel("Search", { exact: true }).fill("Sandworm");
      await page.getByLabel("Search", { exact: true }).press("Enter");
      await read(page);
      const [, links] = await numbers(page);
      assert.ok(links > 0, await status(page).innerText());
      assert.match(await status(page).innerText(), /Links appear for nodes that you open or expand/);
      const reads = asked.filter((path) => path.startsWith("/api/") && !["/api/recall/sessions", "/api/graph"].includes(path));
      assert.equal(reads.length, 2, `${asked}`);
      const spoken = page.getByRole("status").filter({ hasText: "Sandworm Team, " });
      assert.doesNotMatch(await spoken.first().innerText(), /, 0 links/);
    }),
  );

  test(
    "begins in a new visit with what was found last, which a search replaces",
    at("#/graph", async (page, { service }) => {
      const { results } = await service.ask("GET", "/api/recall/search?mode=structured&q=Turla");
      await page.reload();
      await page.getByText(`Around ${results[0].name}, which you opened or found last`).waitFor();
      const [nodes] = await numbers(page);
      assert.ok(nodes > 1, await status(page).innerText());
      await page.getByLabel("Search", { exact: true }).fill("Sandworm");
      await page.getByLabel("Search", { exact: true }).press("Enter");
      await read(page);
      assert.doesNotMatch(await status(page).innerText(), /Around/);
      await page.getByRole("tab", { name: "List" }).click();
      assert.equal(await page.getByRole("button", { name: results[0].name, exact: true }).count(), 0);
      await page.evaluate(() => { location.hash = "#/graph?new=yes"; });
      await page.getByText("Begin with a search.").waitFor();
    }),
  );

  test(
    "is as it was after a detour to a node",
    at("#/graph?q=Sandworm", async (page) => {
      await read(page);
      const neighbour = details(page).getByRole("listitem").getByRole("button").first();
      await neighbour.click();
      await read(page);
      const expand = details(page).getByRole("button", { name: /^Expand/ });
      if ((await expand.count()) > 0) await expand.click();
      await settled(page);
      const name = await details(page).getByRole("heading", { level: 2 }).innerText();
      const before = await numbers(page);
      await details(page).getByRole("link", { name: "Open the node" }).click();
      await page.getByRole("heading", { level: 2, name, exact: true }).waitFor();
      const asked = [];
      page.on("request", (request) => asked.push(request.url()));
      await page.goBack();
      await details(page).getByRole("heading", { level: 2, name, exact: true }).waitFor();
      assert.deepEqual(await numbers(page), before);
      assert.deepEqual(asked.filter((url) => url.includes("/api/")), [], "nothing is asked for again");
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Graph" }).click();
      await page.getByText(`Around ${name}, which you opened or found last`).waitFor();
    }),
  );

  test(
    "shows the types of its address only",
    at("#/graph?q=Sandworm&types=malware", async (page) => {
      await page.getByText(/hidden by type/).waitFor();
      assert.equal(await actors(page).getAttribute("aria-pressed"), "false");
      await page.getByLabel("Search", { exact: true }).fill("Turla");
      await page.getByLabel("Search", { exact: true }).press("Enter");
      await page.getByText(/found for “Turla”/).waitFor();
      assert.equal(await actors(page).getAttribute("aria-pressed"), "true", "a new search shows what it finds");
    }),
  );
});
