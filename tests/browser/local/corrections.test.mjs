// Notes that are corrected, superseded and deleted, entities that are merged, and the page of the day's changes.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, fits, settled, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";

async function remember(service, content) {
  const told = await service.ask("POST", "/api/remember", { content, evolve: false });
  return told.note_id;
}

const shows = (page, text) => page.getByRole("main").getByText(text).first().waitFor();

describe("a note", () => {
  const held = serviceOf("local");
  const at = (content, work) => () =>
    visiting(held.service, {}, async (visit) => {
      const id = await remember(held.service, content);
      const page = await visit.open(`/#/note?id=${id}`, "Note");
      await page.getByRole("button", { name: "Correct" }).waitFor();
      await work(page, id, visit);
    });

  test(
    "is corrected, and shows what it said before",
    at("Turla uses Snake in Norway.", async (page, id) => {
      await page.getByRole("button", { name: "Correct" }).click();
      const dialog = page.getByRole("dialog", { name: "Correct the note" });
      await dialog.getByLabel("Text").fill("Turla uses Kazuar in Norway.");
      await accessible(page, "the form of a correction");
      await dialog.getByRole("button", { name: "Save" }).click();
      await shows(page, "Turla uses Kazuar in Norway.");
      await page.getByText("Version 1, until").click();
      await shows(page, "Turla uses Snake in Norway.");
      await accessible(page, "a corrected note");
      await fits(page, "a corrected note");
      const note = await held.service.ask("GET", `/api/notes/${id}`);
      assert.equal(note.content, "Turla uses Kazuar in Norway.");
    }),
  );

  test(
    "is superseded by another",
    at("The implant beacons to 198.51.100.4 hourly.", async (page, id) => {
      const other = await remember(held.service, "The implant beacons to 198.51.100.4 once a day.");
      await page.getByRole("button", { name: "Supersede" }).click();
      await page.getByLabel("Id of the other note").fill(other);
      await page.getByRole("dialog").getByRole("button", { name: "Supersede" }).click();
      await page.getByRole("link", { name: "Open the newer note" }).waitFor();
      const note = await held.service.ask("GET", `/api/notes/${id}`);
      assert.equal(note.superseded_by, other);
    }),
  );

  for (const [name, done] of [["Delete", "deleted"], ["Erase", "erased"]]) {
    test(
      `is ${done} once that is confirmed`,
      at(`Sandworm was seen at host-${done}.example.com.`, async (page, id, visit) => {
        const start = page.getByRole("main").getByRole("button", { name: "Delete" });
        await start.click();
        const dialog = page.getByRole("dialog", { name: "Delete the note?" });
        await accessible(page, "the question before a deletion");
        await dialog.getByRole("button", { name: "Cancel" }).click();
        await shows(page, `host-${done}.example.com`);
        await start.click();
        await dialog.getByRole("button", { name, exact: true }).click();
        await page.getByText(`The note is ${done}.`).waitFor();
        await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
        visit.expected = [/status of 404/];
        await page.goto(`${page.url().split("#")[0]}#/note?id=${id}`);
        await shows(page, "There is no such note.");
      }),
    );
  }

  test(
    "is told apart from one that contradicts it",
    () => visiting(held.service, {}, async (visit) => {
      await remember(held.service, "The actor Gamaredon uses the domain alpha-beta.example.org.");
      await remember(held.service,
        "Correction: the actor Gamaredon does not use the domain alpha-beta.example.org; the earlier report was wrong.");
      const page = await visit.open("/#/search?q=Gamaredon+alpha-beta.example.org", "Search");
      await page.getByRole("link", { name: "contradicts another note" }).first().waitFor();
      assert.equal(await page.getByRole("link", { name: "contradicts another note" }).count(), 2);
      await page.getByRole("link", { name: "contradicts another note" }).first().click();
      await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
    }),
  );
});

describe("entities", () => {
  const held = serviceOf("local", {}, async (service) => {
    await remember(service, "APT28 uses X-Agent.");
    await remember(service, "Turla uses ComRAT.");
  });

  test("are merged, and the merge is undone", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/entities?type=actor", "Entities");
      await page.getByRole("button", { name: /^Merge Turla into/i }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Entity that stands for both").fill("actor:apt28");
      await accessible(page, "the form of a merge");
      await dialog.getByRole("button", { name: "Merge", exact: true }).click();
      await page.getByRole("status").getByText("1 entity.").waitFor();
      const undo = page.getByRole("button", { name: "Undo the merge of actor:turla" });
      await undo.waitFor();
      await accessible(page, "a merged entity");
      await fits(page, "a merged entity");
      await undo.click();
      await page.getByRole("status").getByText("2 entities.").waitFor();
    }));

  test("that can't be merged are told why", () =>
    visiting(held.service, {}, async (visit) => {
      visit.expected = [/status of 400/];
      const page = await visit.open("/#/entities?type=actor", "Entities");
      await page.getByRole("button", { name: /^Merge Turla into/i }).click();
      await page.getByLabel("Entity that stands for both").fill("malware:comrat");
      await page.getByRole("dialog").getByRole("button", { name: "Merge", exact: true }).click();
      await page.getByRole("alert").getByText(/same type/).waitFor();
    }));
});

describe("the changes of a day", () => {
  const held = serviceOf("local");

  test("are none at first, and then all that happened", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/changes", "Changes");
      await shows(page, "Nothing changed on this day");
      const id = await remember(held.service, "Turla uses ComRAT.");
      await held.service.ask("PATCH", `/api/notes/${id}`, { domain: "ops" });
      await held.service.ask("DELETE", `/api/notes/${id}`);
      await page.getByRole("button", { name: "Refresh" }).click();
      await page.getByRole("status").getByText("7 changes: 3 created, 1 changed, 3 deleted.").waitFor();
      await accessible(page, "the changes of a day");
      await fits(page, "the changes of a day");
      await page.getByLabel("Kind").selectOption("changed");
      await page.getByRole("status").getByText("1 change: 1 changed.").waitFor();
      await shows(page, /domain: ops/);
      await page.getByLabel("Day (UTC)").fill("2001-01-01");
      await settled(page);
      await shows(page, "Nothing changed on this day");
    }));
});
