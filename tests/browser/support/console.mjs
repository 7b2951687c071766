// The console: sign-in, and what tests need in the hosted service.

import { settled } from "./page.mjs";
import { ADMIN } from "./service.mjs";

export const PASSWORD = "another long password";

/** Adds a user to the administrator's workspace. */
export async function userOf(service, role, token = service.token) {
  const user = { email: `${role}@example.com`, password: PASSWORD, role };
  await service.ask("POST", "/api/admin/users", user, { token });
  return user;
}

/** Makes a workspace with an administrator, whose `token` it has. */
export async function workspaceOf(service, name) {
  const admin = { email: `${name.toLowerCase()}@example.com`, password: PASSWORD };
  await service.ask("POST", "/api/admin/workspaces", {
    name,
    admin_email: admin.email,
    admin_password: admin.password,
  });
  return { ...admin, token: await service.signIn(admin) };
}

/** Fills in the page of the sign-in. */
export async function enter(page, { email, password } = ADMIN) {
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
}

/** Opens a view as somebody, in the first tab of a browser session. */
export async function signedIn(visit, path = "", user = ADMIN) {
  const { page } = visit;
  await page.goto(`${visit.service.base}/console${path}`);
  await enter(page, user);
  await page.getByRole("navigation", { name: "Views" }).waitFor();
  await settled(page);
  return page;
}
