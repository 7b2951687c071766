// Signing in to the console.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { enter, PASSWORD, signedIn, userOf, workspaceOf } from "../support/console.mjs";
import { accessible, fits, visiting } from "../support/page.mjs";
import { ADMIN } from "../support/service.mjs";
import { serviceOf } from "../support/suite.mjs";

const expected = [/status of 40[01]/];
const heading = (page) => page.getByRole("heading", { level: 1, name: "Sign in" });
const views = (page) => page.getByRole("navigation", { name: "Views" });

describe("the console", () => {
  const held = serviceOf("hosted", {}, async (service) => {
    await userOf(service, "analyst");
    const other = await workspaceOf(service, "Other");
    await userOf(service, "analyst", other.token);
  });
  const at = (work, options) => () => visiting(held.service, { expected, ...options }, work);

  test(
    "is where the start says and where a bare address leads",
    at(async ({ page, service }) => {
      const [, address] = /^Console on (http:\/\/\S+)$/m.exec(service.said.join(""));
      for (const path of [address, service.base, `${service.base}/console/`]) {
        await page.goto(path);
        await heading(page).waitFor();
        assert.equal(page.url(), `${service.base}/console`);
      }
    }),
  );

  test(
    "lets in who knows a password",
    at(async (visit) => {
      const { page, service } = visit;
      await page.goto(`${service.base}/console`);
      await heading(page).waitFor();
      assert.equal(await views(page).getByRole("link").count(), 0, "nothing is shown before");
      await accessible(page, "the sign-in");
      await enter(page, { ...ADMIN, password: "the wrong password" });
      await page
        .getByRole("alert")
        .getByText(/invalid|wrong/i)
        .waitFor();
      await enter(page);
      await views(page).getByRole("link", { name: "Search" }).waitFor();
      await page.getByRole("banner").getByText(ADMIN.email).waitFor();
      await page.getByRole("banner").getByText("Operator").waitFor();
    }),
  );

  test(
    "keeps the token for this browser session only, through a reload and in new tabs",
    at(async (visit) => {
      let token = null;
      visit.context.on("request", (request) => {
        token ??= request.headers().authorization?.replace("Bearer ", "") ?? null;
      });
      const page = await signedIn(visit);
      await page.getByLabel("Question").fill("anything");
      await page.getByLabel("Question").press("Enter");
      await page.getByText("0 nodes").waitFor();
      assert.match(token, /^ey/, "requests carry a token");
      const kept = await page.evaluate(async () =>
        JSON.stringify([
          Object.entries(localStorage),
          document.cookie,
          location.href,
          history.state,
          document.documentElement.outerHTML,
          (await indexedDB.databases()).length,
          await caches.keys(),
        ]),
      );
      assert.ok(!kept.includes(token) && !kept.includes(ADMIN.password), "the credential is nowhere in the page");
      assert.deepEqual(JSON.parse(kept).slice(0, 2), [[], ""]);
      assert.deepEqual(await visit.context.cookies(), []);
      const stored = () => page.evaluate(() => Object.entries(sessionStorage).map(([name, value]) => [name, JSON.parse(value)]));
      assert.deepEqual(await stored(), [["threat-memory.session", { authorization: `Bearer ${token}` }]]);
      await page.reload();
      await page.getByText("0 nodes").waitFor();
      const other = await visit.tab();
      await other.goto(`${visit.service.base}/console#/graph`);
      await other.getByRole("heading", { level: 1, name: "Graph" }).waitFor();
      await other.getByRole("banner").getByText(ADMIN.email).waitFor();
      await page.close();
      await other.reload();
      await other.getByRole("heading", { level: 1, name: "Graph" }).waitFor();
    }),
  );

  test(
    "asks in a browser session of its own",
    at(async (visit) => {
      await signedIn(visit);
      await visiting(visit.service, {}, async ({ page, service }) => {
        await page.goto(`${service.base}/console`);
        await heading(page).waitFor();
      });
    }),
  );

  test(
    "forgets everything at sign-out, in all tabs",
    at(async (visit) => {
      const page = await signedIn(visit, "#/search?q=secret");
      const other = await visit.tab();
      await other.goto(`${visit.service.base}/console#/search?q=secret`);
      await views(other).getByRole("link", { name: "Search" }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).click();
      for (const left of [page, other]) {
        await heading(left).waitFor();
        assert.ok(!left.url().includes("secret"));
        assert.equal(await left.evaluate(() => sessionStorage.length), 0);
      }
    }),
  );

  test(
    "asks again after a reload when the session has ended meanwhile, and not because the service is away",
    at(
      async (visit) => {
        const page = await signedIn(visit);
        await page.route("**/api/auth/me", (route) => route.fulfill({ status: 503, json: { error: "busy" } }), { times: 1 });
        await page.reload();
        await page.getByRole("button", { name: "Try again" }).click();
        await views(page).getByRole("link", { name: "Search" }).waitFor();
        await page.evaluate(async () => {
          const headers = JSON.parse(sessionStorage.getItem("threat-memory.session"));
          await fetch("/api/auth/logout", { method: "POST", headers });
        });
        await page.reload();
        await heading(page).waitFor();
        assert.equal(await page.evaluate(() => sessionStorage.length), 0);
      },
      { expected: [/status of (401|503)/] },
    ),
  );

  test(
    "takes the sign-in of another tab when the session has ended",
    at(async (visit) => {
      const { service } = visit;
      const user = { email: "second@example.com", role: "viewer", password: PASSWORD };
      await service.ask("POST", "/api/admin/users", user);
      const page = await signedIn(visit, "", user);
      const { users } = await service.ask("GET", "/api/admin/users");
      const { id } = users.find(({ email }) => email === user.email);
      await service.ask("PATCH", `/api/admin/users/${id}`, { password: "a third long password" });
      const other = await visit.tab();
      await other.goto(`${service.base}/console`);
      await enter(other, { email: user.email, password: "a third long password" });
      await views(other).getByRole("link", { name: "Search" }).waitFor();
      await page.getByLabel("Question").fill("anything");
      await page.getByLabel("Question").press("Enter");
      await page.getByText("0 nodes").waitFor();
      assert.equal(await page.getByRole("dialog").count(), 0);
    }),
  );

  test(
    "asks for the workspace of who has several",
    at(async (visit) => {
      const { page, service } = visit;
      await page.goto(`${service.base}/console`);
      await enter(page, { email: "analyst@example.com", password: PASSWORD });
      await page.getByLabel("Workspace").selectOption({ label: "Other" });
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByRole("banner").getByText("Other").waitFor();
    }),
  );

  test(
    "takes an API key",
    at(async (visit) => {
      const { page, service } = visit;
      const { key } = await service.ask("POST", "/api/admin/api-keys", { name: "reader", scopes: ["read"] });
      await page.goto(`${service.base}/console`);
      await page.getByRole("button", { name: "Sign in with an API key" }).click();
      await page.getByLabel("API key").fill("not a key");
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await page
        .getByRole("alert")
        .getByText(/invalid/i)
        .waitFor();
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Sign in", exact: true }).click();
      await views(page).getByRole("link", { name: "Search" }).waitFor();
      assert.equal(await views(page).getByRole("link", { name: "Review" }).count(), 0);
    }),
  );

  test(
    "asks again when the session has ended, and goes on",
    at(async (visit) => {
      const { service } = visit;
      const user = await userOf(service, "viewer");
      const page = await signedIn(visit, "", user);
      const { users } = await service.ask("GET", "/api/admin/users");
      const { id } = users.find(({ email }) => email === user.email);
      await service.ask("PATCH", `/api/admin/users/${id}`, { password: "a third long password" });
      await page.getByLabel("Question").fill("anything");
      await page.getByLabel("Question").press("Enter");
      const dialog = page.getByRole("dialog", { name: "Sign in again" });
      await dialog.getByLabel("Password", { exact: true }).fill("a third long password");
      await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
      await page.getByText("0 nodes").waitFor();
    }),
  );

  test(
    "says that the session has ended to who does not sign in again, and lets one do so later",
    at(async (visit) => {
      const { service } = visit;
      const user = { ...(await userOf(service, "audit")), password: PASSWORD };
      const page = await signedIn(visit, "", user);
      const { users } = await service.ask("GET", "/api/admin/users");
      const { id } = users.find(({ email }) => email === user.email);
      await service.ask("PATCH", `/api/admin/users/${id}`, { password: "a third long password" });
      await page.getByLabel("Question").fill("anything");
      await page.getByLabel("Question").press("Enter");
      const dialog = page.getByRole("dialog", { name: "Sign in again" });
      await dialog.getByRole("button", { name: "Not now" }).click();
      await page.getByRole("alert").getByText("The session has ended. Sign in to go on.").waitFor();
      const later = page.getByRole("banner").getByRole("button", { name: "Sign in again" });
      await accessible(page, "an ended session");
      await later.click();
      await dialog.getByLabel("Password", { exact: true }).fill("a third long password");
      await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
      await later.waitFor({ state: "hidden" });
      await page.getByRole("button", { name: "Try again" }).click();
      await page.getByText("0 nodes").waitFor();
    }),
  );

  test(
    "says how long to wait after too many attempts",
    at(
      async ({ page, service }) => {
        await page.route("**/api/auth/login", (route) =>
          route.fulfill({ status: 429, headers: { "retry-after": "90" }, json: { error: "rate limit exceeded" } }),
        );
        await page.goto(`${service.base}/console`);
        await page.getByText("One sign-in serves all tabs.").waitFor();
        await enter(page);
        await page.getByText("Too many failed attempts for this address. Try again in 1 min 30 s.").waitFor();
      },
      { expected: [/status of 429/] },
    ),
  );

  test(
    "fits a phone",
    at(
      async ({ page, service }) => {
        await page.goto(`${service.base}/console`);
        await heading(page).waitFor();
        await fits(page, "the sign-in");
      },
      { size: { width: 360, height: 740 } },
    ),
  );
});

describe("server.console = false", () => {
  const held = serviceOf("hosted", { environment: { THREAT_MEMORY_SERVER__CONSOLE: "false" } });

  test("leaves no console", async () => {
    const answer = await held.service.send("GET", "/console", undefined, { headers: { accept: "text/html" } });
    assert.equal(answer.status, 404);
    assert.equal((await held.service.send("GET", "/health")).status, 200);
    assert.match(held.service.said.join(""), /^The console is off \(server\.console\).*\/docs$/m);
  });
});
