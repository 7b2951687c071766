// Signing in to the console with a provider.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createServer } from "node:net";
import { once } from "node:events";
import { userOf, workspaceOf } from "../support/console.mjs";
import { provider } from "../support/oidc.mjs";
import { accessible, closeChromium, Visit } from "../support/page.mjs";
import { Service } from "../support/service.mjs";

const USER = "analyst@example.com";

/** A port that nothing listens on. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

describe("the console with a provider", () => {
  let corp = null;
  let service = null;
  before(async () => {
    corp = await provider(USER);
    const port = await freePort();
    service = new Service("hosted", { environment: corp.environment(port) });
    service.port = port;
    await service.start();
    await userOf(service, "analyst");
  });
  after(async () => {
    await closeChromium();
    await service?.end();
    await corp?.end();
  });

  /** Opens the sign-in, and the provider's page in the window of its own. */
  async function asked(visit) {
    const page = visit.page;
    if (!page.url().endsWith("/console")) await page.goto(`${service.base}/console`);
    const opened = visit.context.waitForEvent("page");
    await page.getByRole("button", { name: "Sign in with corp" }).click();
    return opened;
  }

  async function visiting(work) {
    const visit = new Visit(service, { expected: [/status of 40[01]/] });
    await visit.begin();
    try {
      await work(visit);
      visit.check();
    } finally {
      await visit.context.close();
    }
  }

  test("lets in whom the provider vouches for, and keeps the token for the browser session only", () =>
    visiting(async (visit) => {
      const window = await asked(visit);
      await accessible(visit.page, "the sign-in with a provider");
      const closed = window.waitForEvent("close");
      await window.getByRole("link", { name: "Allow" }).click();
      await closed;
      await visit.page.getByRole("banner").getByText(USER).waitFor();
      assert.deepEqual(await visit.context.cookies(), []);
      const kept = await visit.page.evaluate(() => [
        localStorage.length,
        Object.keys(sessionStorage),
        location.search,
      ]);
      assert.deepEqual(kept, [0, ["threat-memory.session"], ""]);
    }));

  test("says why it does not, and lets one try again", () =>
    visiting(async (visit) => {
      await (await asked(visit)).getByRole("link", { name: "Deny" }).click();
      await visit.page.getByText("The sign-in was cancelled or refused at the provider").waitFor();
      await (await asked(visit)).getByRole("link", { name: "Allow" }).click();
      await visit.page.getByRole("banner").getByText(USER).waitFor();
    }));

  test("stops waiting when it is told to", () =>
    visiting(async (visit) => {
      const window = await asked(visit);
      await visit.page.getByRole("button", { name: "Cancel" }).click();
      await window.getByRole("link", { name: "Allow" }).click();
      await window.getByText("is not open any more").waitFor();
      assert.ok(await visit.page.getByRole("heading", { level: 1, name: "Sign in" }).isVisible());
    }));

  test("asks which workspace", () =>
    visiting(async (visit) => {
      const other = await workspaceOf(service, "Other");
      await userOf(service, "analyst", other.token);
      await (await asked(visit)).getByRole("link", { name: "Allow" }).click();
      const choice = visit.page.getByRole("button", { name: "Other" });
      await choice.waitFor();
      const opened = visit.context.waitForEvent("page");
      await choice.click();
      await (await opened).getByRole("link", { name: "Allow" }).click();
      await visit.page.getByRole("banner").getByText("Other").waitFor();
    }));
});
