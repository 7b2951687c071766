// The look-up of the console: pasted lists, mails and files.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, test } from "node:test";
import { signedIn } from "../support/console.mjs";
import { accessible, fits, settled, visiting } from "../support/page.mjs";
import { demoBundle } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";

const rows = (page) => page.getByRole("table", { name: "Values" }).locator("tbody tr");
const KNOWN = [
  ["203.0.113.77", "ioc"],
  ["198.51.100.0/24", "ioc"],
  ["evil.example", "ioc"],
];

/** Pastes a text over what is there, as the keyboard does. */
async function paste(page, text) {
  const field = page.getByLabel("Values", { exact: true });
  await field.evaluate((of, pasted) => {
    of.select();
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
    if (of.dispatchEvent(event)) of.setRangeText(pasted, of.selectionStart, of.selectionEnd, "end");
  }, text);
  assert.equal(await field.inputValue(), text);
}

async function lookUp(page, text) {
  await paste(page, text);
  await page.getByRole("button", { name: "Look up", exact: true }).click();
  await settled(page);
}

async function seed(service) {
  await service.ask("POST", "/api/ingest/stix", { bundle: await demoBundle() });
  const nodes = KNOWN.map(([name, node_type]) => ({ name, node_type, tlp: "TLP:AMBER" }));
  await service.ask("POST", "/api/ingest/analyst", { nodes });
}

describe("a workspace with indicators", () => {
  const held = serviceOf("hosted", {}, seed);
  const at = (work) => () =>
    visiting(held.service, {}, async (visit) => work(await signedIn(visit, "#/lookup"), visit));

  test(
    "answers a list of 5,000 values, known ones first, and filters it",
    at(async (page) => {
      await page.getByText("Which of these do you know?").waitFor();
      const others = Array.from({ length: 4_996 }, (_, of) => `192.0.2.${of % 250}-${of}.invalid-host.example`);
      const lines = [...others, "203.0.113[.]77", "198.51.100.9", "hxxps://cdn.evil[.]example/a", "no indicator"];
      await page.getByLabel("Read as").selectOption({ label: "A list, one value per line" });
      await lookUp(page, lines.join("\n"));
      await page.getByText("5,000 values: 3 found.").waitFor();
      const first = await rows(page).nth(0).innerText();
      assert.match(first, /203\.0\.113\.77/);
      assert.match(first, /known/);
      assert.match(first, /TLP:AMBER/);
      await fits(page, "a long look-up");
      await accessible(page, "a look-up");
      await page.getByRole("button", { name: /^contained 1/ }).click();
      assert.equal(await rows(page).count(), 1);
      assert.match(await rows(page).nth(0).innerText(), /198\.51\.100\.9[\s\S]*a network around it/);
      await page.getByRole("button", { name: /^invalid 1/ }).click();
      assert.match(await rows(page).nth(0).innerText(), /no indicator/);
      await page.getByRole("button", { name: /^all 5,000/ }).click();
      assert.equal(await rows(page).count(), 200);
      await page.getByRole("button", { name: "Show 200 more" }).click();
      assert.equal(await rows(page).count(), 400);
    }),
  );

  test(
    "reads a mail, and saves what it found as CSV and as STIX",
    at(async (page) => {
      await lookUp(page, "Dear all,\nplease click hxxp://evil[.]example/=1+1 now.\nReceived: from 203.0.113.77 (8.8.8.8)\n");
      await page.getByText(/values: 2 found\.$/).waitFor();
      let coming = page.waitForEvent("download");
      await page.getByRole("button", { name: "Save as CSV" }).click();
      const csv = await readFile(await (await coming).path(), "utf8");
      const [head, ...lines] = csv.trim().split("\r\n");
      assert.match(head, /^sent,value,kind,count,verdict,warninglists,match,name/);
      assert.ok(lines.some((line) => /^203\.0\.113\.77,.*,known,/.test(line)), csv);
      assert.ok(lines.some((line) => /^8\.8\.8\.8,.*,listed,/.test(line)), csv);
      coming = page.waitForEvent("download");
      await page.getByRole("button", { name: /^Export 2 nodes as STIX/ }).click();
      const bundle = JSON.parse(await readFile(await (await coming).path(), "utf8"));
      assert.equal(bundle.type, "bundle");
    }),
  );

  test(
    "leads to the node and shows the answer again to those who come back",
    at(async (page) => {
      await lookUp(page, "203.0.113.77");
      await rows(page).getByRole("link", { name: "203.0.113.77", exact: true }).click();
      await page.getByRole("heading", { level: 2, name: "203.0.113.77" }).waitFor();
      await page.goBack();
      await page.getByText("1 value: 1 found.").waitFor();
    }),
  );

  test(
    "cuts nothing in silence",
    at(async (page) => {
      await lookUp(page, Array.from({ length: 10_001 }, (_, of) => `h${of}.example`).join("\n"));
      await page.getByRole("alert").getByText(/This list has 10,001 values; a look-up takes 10,000/).waitFor();
      const log = Buffer.from("Nov 29 deny tcp 203.0.113.77 -> 10.0.0.1\n".repeat(80_000));
      await page.getByLabel("Or a file").setInputFiles({ name: "firewall.log", mimeType: "text/plain", buffer: log });
      await page.getByRole("alert").getByText(/This text has 3\.1 MiB; a look-up takes 1 MiB/).waitFor();
    }),
  );
});
