// Taking in notes: one, many, files.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, fits, visit as goTo, visiting } from "../support/page.mjs";
import { serviceOf } from "../support/suite.mjs";
import { until } from "../support/until.mjs";

const list = (page) => page.getByRole("region", { name: "Notes on the list" });
const item = (page, text) => list(page).getByRole("listitem").filter({ hasText: text });
const total = async (service) => (await service.ask("GET", "/api/storage")).total_notes;
const file = (name, text) => ({ name, mimeType: "", buffer: Buffer.from(text) });

async function choose(page, files) {
  await page.getByRole("tab", { name: "Files" }).click();
  await page.locator("input[type=file]").setInputFiles(files);
}

/** Drops a file that holds a text so many times. */
async function drop(page, name, text, times = 1) {
  await page.getByRole("tab", { name: "Files" }).click();
  const dataTransfer = await page.evaluateHandle(
    ([file, part, parts]) => {
      const data = new DataTransfer();
      data.items.add(new File([part.repeat(parts)], file));
      return data;
    },
    [name, text, times],
  );
  await page.getByText("Drop files here").dispatchEvent("drop", { dataTransfer });
}

const send = (page) =>
  list(page)
    .getByRole("button", { name: /^Send \d+ notes?$/ })
    .click();
const settledAll = (page, count) =>
  list(page)
    .getByText(new RegExp(`^${count} of ${count} notes? (done|handled)`))
    .waitFor();

describe("ingest", () => {
  const held = serviceOf("local");
  const at = (work, options) => () =>
    visiting(held.service, options ?? {}, async (visit) => {
      const page = await visit.open("/#/ingest", "Ingest");
      await list(page).getByText("Nothing on the list yet.").waitFor();
      await work(page, visit);
    });

  test(
    "takes one note",
    at(async (page, { service }) => {
      await page.getByLabel("Note", { exact: true }).fill("Turla uses Snake against 198.51.100.9.");
      await page.getByLabel("Domain", { exact: true }).fill("espionage");
      await page.getByRole("tabpanel", { name: "One note" }).getByRole("button", { name: "Remember" }).click();
      await item(page, "Turla uses Snake").getByText("created").waitFor();
      assert.match(await item(page, "Turla uses Snake").innerText(), /turla/);
      assert.equal(await total(service), 1);
      await item(page, "Turla uses Snake").getByRole("link").first().click();
      await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
      await page.getByText("espionage").first().waitFor();
      await page.goBack();
      await item(page, "Turla uses Snake").getByText("created").waitFor();
    }),
  );

  test(
    "takes a note for each line",
    at(async (page, { service }) => {
      const before = await total(service);
      await page.getByRole("tab", { name: "Many notes" }).click();
      const lines = ["APT28 sent mails to ministries.", "", "FIN7 uses Carbanak.", "APT28 sent mails to ministries."];
      await page.getByLabel("Notes, one per line").fill(lines.join("\n"));
      await page.getByRole("button", { name: "Remember 3 notes" }).click();
      await settledAll(page, 3);
      assert.equal(await item(page, "created").count(), 2);
      assert.equal(await item(page, "duplicate").count(), 1);
      assert.equal(await total(service), before + 2);
      await accessible(page, "the list");
      await list(page)
        .getByRole("group", { name: "Only notes with this status" })
        .getByRole("button", { name: /duplicate/ })
        .click();
      await until(async () => (await list(page).getByRole("listitem").count()) === 1, "only the duplicate");
      await list(page).getByRole("button", { name: "Clear the list" }).click();
      await list(page).getByText("Nothing on the list yet.").waitFor();
    }),
  );

  test(
    "takes files of each kind, and says what is wrong with others",
    at(async (page, { service }) => {
      const before = await total(service);
      await choose(page, [
        file("one.txt", "Sandworm used Industroyer.\nIt opened breakers at 203.0.113.8."),
        file("two.md", "# Report\n\nKimsuky sends **BabyShark**."),
        file(
          "three.json",
          JSON.stringify([
            { content: "OilRig uses Helminth.", domain: "energy" },
            "MuddyWater uses POWERSTATS.",
            { text: 1 },
          ]),
        ),
        file("broken.json", '[{"content": "half'),
        file("binary.txt", "a\u0000b"),
        file("picture.png", "x"),
        file("empty.txt", " \n"),
        file("rowless.csv", '""\n'),
      ]);
      const report = (name) =>
        page.getByRole("tabpanel", { name: "Files" }).getByRole("listitem").filter({ hasText: name });
      await report("one.txt")
        .filter({ hasText: /1 note on the list/ })
        .waitFor();
      await report("three.json")
        .filter({ hasText: /2 notes on the list, 1 entry was refused/ })
        .waitFor();
      await report("broken.json")
        .filter({ hasText: /refused.*not JSON/ })
        .waitFor();
      await report("binary.txt")
        .filter({ hasText: /refused.*binary/ })
        .waitFor();
      await report("picture.png")
        .filter({ hasText: /refused.*only \.txt, \.md, \.json, \.csv/ })
        .waitFor();
      await report("empty.txt")
        .filter({ hasText: /refused.*empty/ })
        .waitFor();
      await report("rowless.csv")
        .filter({ hasText: /refused.*no rows/ })
        .waitFor();
      await list(page).getByText("1 of 5 notes handled, 1 failed").waitFor();
      assert.equal(await total(service), before, "nothing is sent before it was looked at");
      await send(page);
      await settledAll(page, 5);
      assert.equal(await item(page, "created").count(), 4);
      assert.match(await item(page, "three.json, item 3").innerText(), /failed[\s\S]*neither a text nor an object/);
      assert.equal(await total(service), before + 4);
      await accessible(page, "files");
      await page.setViewportSize({ width: 360, height: 740 });
      await fits(page, "files on a phone");
    }),
  );

  test(
    "takes a table with the columns that are chosen",
    at(async (page, { service }) => {
      const before = await total(service);
      await choose(page, [
        file(
          "rows.csv",
          'id,report,topic\n1,"Lazarus Group used ""AppleJeus"", again",malware\n2,Wizard Spider uses Ryuk.,malware\n',
        ),
      ]);
      await page.getByLabel("Text of the note").selectOption({ label: "report" });
      await page.getByLabel("Domain", { exact: true }).first().selectOption({ label: "topic" });
      await page.getByText('First note: Lazarus Group used "AppleJeus", again').waitFor();
      await accessible(page, "the columns of a table");
      await page.getByRole("button", { name: "Put 2 rows on the list" }).click();
      await send(page);
      await settledAll(page, 2);
      assert.equal(await total(service), before + 2);
      const { results } = await service.ask("POST", "/api/recall", { query: "AppleJeus" });
      assert.equal(results[0].content, 'Lazarus Group used "AppleJeus", again');
      assert.equal(results[0].domain, "malware");
    }),
  );

  test(
    "knows which tables name their columns",
    at(async (page) => {
      for (const [text, isNamed] of [
        ['"Turla uses Snake, again.",malware\n"FIN7 uses Carbanak.",malware\n', false],
        ["Turla uses Snake,malware\nFIN7 uses Carbanak,malware\n", false],
        ["Beobachtung,Thema\nFIN7 uses Carbanak and more.,malware\n", true],
        ["content\nFIN7\n", true],
      ]) {
        await choose(page, [file("rows.csv", text)]);
        const isShown = page.getByLabel("The first row names the columns");
        assert.equal(await isShown.isChecked(), isNamed, text);
        await page.getByRole("button", { name: "Discard" }).click();
      }
    }),
  );

  test(
    "keeps what was written and not sent",
    at(async (page) => {
      await page.getByRole("tab", { name: "Many notes" }).click();
      await page.getByLabel("Notes, one per line").fill("One.\nTwo.");
      await goTo(page, "Entities");
      await goTo(page, "Ingest");
      await page.getByRole("button", { name: "Remember 2 notes" }).waitFor();
      assert.equal(await page.getByLabel("Notes, one per line").inputValue(), "One.\nTwo.");
      await page.getByLabel("Notes, one per line").fill("");
    }),
  );

  test(
    "takes a table whose only row is larger than any stack",
    at(async (page) => {
      await drop(page, "large.csv", "x", 20_000_000);
      await page.getByRole("group", { name: "Columns of large.csv" }).waitFor();
      await fits(page, "the columns of a large row");
      await page.getByRole("button", { name: "Discard" }).click();
    }),
  );

  test(
    "keeps the list, and what can be done with it, during a visit elsewhere",
    at(async (page) => {
      await choose(page, [file("kept.txt", "Gamaredon uses Pteranodon.")]);
      await list(page).getByRole("button", { name: "Send 1 note" }).waitFor();
      await goTo(page, "Entities");
      await goTo(page, "Ingest");
      await send(page);
      await item(page, "Gamaredon").getByText("created").waitFor();
    }),
  );

  test(
    "takes a file that is dropped",
    at(async (page) => {
      await drop(page, "dropped.txt", "TA505 uses FlawedAmmyy.");
      await page.getByText("dropped.txt").first().waitFor();
      await send(page);
      await item(page, "FlawedAmmyy").getByText("created").waitFor();
    }),
  );

  test(
    "tries again what failed",
    at(async (page, { service }) => {
      await service.ask("PUT", "/api/config", { "governance.pii.enabled": true, "governance.pii.action": "block" });
      await page.getByRole("tab", { name: "Many notes" }).click();
      await page
        .getByLabel("Notes, one per line")
        .fill("Turla speaks to 198.51.100.77.\nAsk jane.doe@example.com about APT29.");
      await page.getByRole("button", { name: "Remember 2 notes" }).click();
      await item(page, "jane.doe").getByText("failed").waitFor();
      assert.match(await item(page, "jane.doe").innerText(), /personal data/i);
      await item(page, "198.51.100.77").getByText("created").waitFor();
      await service.ask("PUT", "/api/config", { "governance.pii.enabled": false });
      await list(page)
        .getByRole("button", { name: /^Try .*failed.* again$/ })
        .click();
      await item(page, "jane.doe").getByText("created").waitFor();
      assert.equal(
        await list(page)
          .getByRole("button", { name: /^Try .*again$/ })
          .count(),
        0,
      );
    }),
  );
});

describe("a service that admits only so many requests", () => {
  const held = serviceOf("local", { environment: { LOCAL_WEB_RATE_LIMIT_PER_MINUTE: "" } });

  test("is waited for, and nothing is lost", () =>
    visiting(held.service, { expected: [/status of 429/] }, async (visit) => {
      const page = await visit.open("/#/ingest", "Ingest");
      await list(page).getByText("Nothing on the list yet.").waitFor();
      // The minute of the limit may end meanwhile.
      await until(async () => {
        const spent = await Promise.all(Array.from({ length: 70 }, () => visit.service.send("GET", "/api/version")));
        return spent.at(-1).status === 429;
      }, "the limit is reached");
      await page.getByLabel("Note", { exact: true }).fill("Turla uses Snake.");
      await page.getByRole("tabpanel", { name: "One note" }).getByRole("button", { name: "Remember" }).click();
      await list(page)
        .getByText(/Rate limit exceeded.*Going on by itself in \d/)
        .waitFor();
      await item(page, "Turla uses Snake").getByText("waiting").waitFor();
      const other = await visit.tab();
      await other.goto(`${visit.service.base}/#/search?q=Snake`);
      const alert = other.getByRole("alert").filter({ hasText: /Rate limit exceeded.*Try again in \d/ });
      await alert.getByRole("button", { name: "Try again" }).waitFor();
    }));
});
