// Search of the management page: recall, synthesize, remember, and one note.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { accessible, fits, settled, visiting } from "../support/page.mjs";
import { notes } from "../support/seed.mjs";
import { serviceOf } from "../support/suite.mjs";

const SNAKE = "Turla uses Snake against foreign ministries. The implant speaks to 198.51.100.7 over port 80.";
const OTHER = "Snake hides its traffic in HTTP. Turla also runs a second stage.";

const question = (page) => page.getByRole("searchbox", { name: "Question" });
const results = (page) => page.getByRole("main").getByRole("article");

async function ask(page, text) {
  await question(page).fill(text);
  await question(page).press("Enter");
  await settled(page);
}

const shows = (page, text) => page.getByRole("main").getByText(text).first().waitFor();

describe("an empty memory", () => {
  const held = serviceOf("local");
  const at = (work) => () => visiting(held.service, {}, work);

  test(
    "takes a long question whole, and says when it is too long",
    at(async (visit) => {
      visit.expected = [/status of 422/];
      const page = await visit.open("/#/search", "Search");
      const long = "word ".repeat(300).trim();
      await question(page).fill(long);
      await question(page).press("Enter");
      await page.getByRole("alert").getByText(/1000 characters/).waitFor();
      assert.equal(await question(page).inputValue(), long);
    }),
  );

  test(
    "leaves a phone room for what it finds",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await page.setViewportSize({ width: 360, height: 740 });
      const height = async () => (await page.locator(".ask").boundingBox()).height;
      assert.ok((await height()) < 200, `${await height()}`);
      await fits(page, "a folded search");
      await accessible(page, "a folded search");
      const folded = page.getByRole("button", { name: "Mode and filters" });
      await folded.click();
      await page.getByRole("group", { name: "Mode" }).waitFor();
      assert.equal(await folded.getAttribute("aria-expanded"), "true");
      await fits(page, "an unfolded search");
      await folded.click();
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole("group", { name: "Mode" }).waitFor();
      assert.equal(await folded.isVisible(), false);
    }),
  );

  test(
    "says what to do, before and after a question",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await shows(page, "The memory is empty.");
      await ask(page, "Who uses Snake?");
      await shows(page, "0 notes");
      await shows(page, "The memory is empty.");
      await accessible(page, "a search that finds nothing");
      await page
        .getByRole("main")
        .getByRole("link", { name: /ingest/i })
        .first()
        .click();
      await page.getByRole("heading", { level: 1, name: "Ingest" }).waitFor();
    }),
  );

  test(
    "remembers a first note, which is then found",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await page.getByText("Remember a note").click();
      const form = page.getByRole("main").locator("form", { has: page.getByLabel("Note", { exact: true }) });
      await form.getByLabel("Note", { exact: true }).fill(SNAKE);
      await form.getByLabel("Domain", { exact: true }).fill("espionage");
      await form.getByLabel("Source", { exact: true }).fill("https://example.org/report");
      await accessible(page, "the form of a note");
      await page.getByRole("link", { name: "Overview" }).click();
      await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
      await page.goBack();
      assert.equal(await form.getByLabel("Note", { exact: true }).inputValue(), SNAKE, "what was written is kept");
      assert.equal(await form.getByLabel("Domain", { exact: true }).inputValue(), "espionage");
      await form.getByRole("button", { name: "Remember" }).click();
      await shows(page, "The note is remembered.");
      await shows(page, "Ask a question, or look for a name.");
      await page
        .getByRole("search")
        .getByLabel("Domain")
        .getByRole("option", { name: "espionage (1)" })
        .waitFor({ state: "attached" });
      await form.getByRole("link", { name: "turla", exact: true }).waitFor();
      await form.getByRole("link", { name: "Open the note" }).click();
      await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
      await shows(page, SNAKE);
      assert.equal(
        await page.getByRole("link", { name: "https://example.org/report" }).getAttribute("rel"),
        "noopener noreferrer",
      );
      await accessible(page, "a note");
      await visit.open("/#/search", "Search");
      await ask(page, "Who uses Snake?");
      assert.equal(await results(page).count(), 1);
    }),
  );
});

describe("a memory with notes", () => {
  const held = serviceOf("local", {}, async (service) => {
    await notes(service, 60);
    for (const [content, domain] of [
      [SNAKE, "espionage"],
      [OTHER, "malware"],
    ]) {
      await service.ask("POST", "/api/remember", { content, domain, evolve: false });
    }
  });
  const at = (work, options) => () => visiting(held.service, options ?? {}, work);

  test(
    "is searched, and says why a note was found",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await ask(page, "Which ministries does Snake attack?");
      const card = results(page).filter({ hasText: "198.51.100.7" }).filter({ hasText: "Snake" }).first();
      await card.waitFor();
      const marks = (await card.locator("mark").allInnerTexts()).map((mark) => mark.toLowerCase());
      assert.ok(marks.includes("snake") && marks.some((mark) => mark.startsWith("ministr")), `${marks}`);
      assert.match(await card.innerText(), /Tier A/i);
      assert.match(await card.innerText(), /confidence \d+ %/);
      assert.match(await card.innerText(), /Matched.*snake/i);
      await accessible(page, "results");
      assert.equal(await page.getByLabel("Domain", { exact: true }).inputValue(), "", "no domain was chosen");
      assert.match(decodeURIComponent(page.url()), /#\/search\?.*q=Which/);
      await page.reload();
      await results(page).filter({ hasText: "198.51.100.7" }).first().waitFor();
      assert.equal(await question(page).inputValue(), "Which ministries does Snake attack?");
    }),
  );

  test(
    "tells what led to a note, and how the question was understood",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await ask(page, "Which tools does Sandworm use?");
      await page.getByRole("main").getByText(/^Asked for: .*Sandworm/i).waitFor();
      const whys = results(page).getByRole("group", { name: "Why it was found" });
      await whys.first().getByRole("img", { name: /^Shares of the score: / }).waitFor();
      const path = whys.getByRole("list", { name: "Path" }).first();
      assert.match((await path.innerText()).replace(/\s+/g, " "), /sandworm .*—\w+→.* industroyer/i);
      await accessible(page, "notes with their reasons");
      await page.setViewportSize({ width: 360, height: 740 });
      await fits(page, "notes with their reasons");
      await path.getByRole("link", { name: /sandworm/i }).click();
      await page
        .getByRole("complementary", { name: "Selected node" })
        .getByRole("heading", { name: /sandworm/i })
        .waitFor();
    }),
  );

  test(
    "is filtered by time, and only where that applies",
    at(async (visit) => {
      const page = await visit.open("/#/search?q=Snake&since=2020-01-01", "Search");
      const filters = page.locator("details").filter({ has: page.getByText(/^Filters/) });
      await results(page).first().waitFor();
      await filters.getByText("1 active").waitFor();
      await filters.locator("summary").press("Enter");
      assert.equal(await filters.getByLabel("Remembered since").inputValue(), "2020-01-01");
      await accessible(page, "filters");
      await filters.getByLabel("Remembered until").fill("2019-12-31");
      await filters.getByText("This is before “Remembered since”.").waitFor();
      await results(page).first().waitFor();
      await filters.getByLabel("Remembered since").fill("");
      await shows(page, "No note fits.");
      await page.waitForURL((url) => /until=2019-12-31/.test(url.hash) && !/since/.test(url.hash));
      await page.reload();
      await shows(page, "1 filter is set.");
      await page.getByRole("radio", { name: "Synthesize" }).check({ force: true });
      assert.ok(!(await filters.isVisible()));
      await page.waitForURL((url) => !/until/.test(url.hash));
      await page.getByRole("radio", { name: "Recall" }).check({ force: true });
      await shows(page, "1 filter is set.");
      await page.getByRole("button", { name: "Clear the filters" }).click();
      await results(page).first().waitFor();
      assert.ok(!page.url().includes("until"));
    }),
  );

  test(
    "is searched for an entity that is clicked",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await ask(page, "Which ministries does Snake attack?");
      await results(page)
        .filter({ hasText: "198.51.100.7" })
        .getByRole("link", { name: "turla", exact: true })
        .first()
        .click();
      await page.waitForFunction(() => document.querySelector("#question")?.value === "turla");
      await settled(page);
      assert.ok((await results(page).count()) > 1);
      await page.goBack();
      await page.waitForFunction(() => document.querySelector("#question")?.value.startsWith("Which"));
    }),
  );

  test(
    "leads back to the questions that were typed, and to where one was",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await ask(page, "Which ministries does Snake attack?");
      await ask(page, "Which actors exploit vulnerabilities?");
      await ask(page, "Turla");
      await page.goBack();
      await page.waitForFunction(() => document.querySelector("#question")?.value.includes("vulnerabilities"));
      await results(page).first().waitFor();
      await page.evaluate(() => scrollTo(0, 400));
      await results(page).nth(3).getByRole("heading").getByRole("link").first().evaluate((link) => link.click());
      await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
      assert.equal(await page.evaluate(() => scrollY), 0);
      await page.goBack();
      await page.waitForFunction(() => scrollY === 400);
      assert.equal(await page.evaluate(() => document.activeElement.id), "main");
      await page.goBack();
      await page.waitForFunction(() => document.querySelector("#question")?.value.includes("ministries"));
      await page.goForward();
      await page.waitForFunction(() => document.querySelector("#question")?.value.includes("vulnerabilities"));
    }),
  );

  test(
    "is asked again when the domain is changed",
    at(async (visit) => {
      const page = await visit.open("/#/search?q=Snake", "Search");
      await results(page).nth(1).waitFor();
      await page
        .getByLabel("Domain", { exact: true })
        .getByRole("option", { name: /^malware/ })
        .waitFor({ state: "attached" });
      await page.getByLabel("Domain", { exact: true }).selectOption("malware");
      await page.waitForURL(/domain=malware/);
      await settled(page);
      assert.match(await results(page).first().innerText(), /Snake hides its traffic/);
    }),
  );

  test(
    "shows what is nearest to the unknown only on demand, and knows names however they are written",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      const warning = page.getByText("These are the nearest in meaning.");
      await ask(page, "xyzzyqwert");
      await shows(page, "No note fits.");
      await page.getByRole("button", { name: "Show the nearest" }).click();
      await warning.waitFor();
      assert.match(page.url(), /min_score=0/);
      await page.getByLabel("Show", { exact: true }).selectOption("");
      await shows(page, "No note fits.");
      await ask(page, "What does APT 28 use?");
      await shows(page, "the name apt28");
      assert.equal(await warning.count(), 0);
    }),
  );

  test(
    "is searched in one domain, with the number of notes that is wanted",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await page
        .getByLabel("Domain", { exact: true })
        .getByRole("option", { name: /^espionage/ })
        .waitFor({ state: "attached" });
      await page.getByLabel("Domain", { exact: true }).selectOption("espionage");
      await ask(page, "Snake");
      await shows(page, "1 note in");
      assert.match(await results(page).first().innerText(), /espionage/);
      await page.getByLabel("Domain", { exact: true }).selectOption("");
      await page.getByLabel("Notes", { exact: true }).fill("3");
      await ask(page, "Which actors exploit vulnerabilities?");
      await shows(page, "3 notes in");
      assert.equal(await results(page).count(), 3);
    }),
  );

  test(
    "narrows what it shows to a domain without asking again",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await ask(page, "Snake and Turla");
      const asked = [];
      page.on("request", (request) => {
        if (request.url().includes("/api/")) asked.push(request.url());
      });
      await page
        .getByRole("group", { name: /domain/i })
        .getByRole("button", { name: /^espionage/ })
        .click();
      await shows(page, /is shown/);
      assert.equal(await results(page).count(), 1);
      assert.deepEqual(asked, []);
    }),
  );

  test(
    "shows what a filter of the address hides",
    at(async (visit) => {
      const page = await visit.open("/#/search?q=Snake+and+Turla&only-domain=nowhere", "Search");
      await shows(page, "The filter hides all of them.");
      await page
        .getByRole("group", { name: /domain/i })
        .getByRole("button", { name: "nowhere (0)", pressed: true })
        .waitFor();
      await accessible(page, "results that are hidden");
      await page.getByRole("button", { name: "Show all" }).click();
      await results(page).first().waitFor();
      assert.ok(!page.url().includes("nowhere"));
    }),
  );

  test(
    "opens a note with its words marked",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await ask(page, "Which ministries does Snake attack?");
      await results(page).filter({ hasText: "198.51.100.7" }).getByRole("heading").getByRole("link").first().click();
      await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
      await page.getByRole("main").locator("mark", { hasText: "Snake" }).waitFor();
      await page.getByRole("link", { name: "Search again" }).click();
      await page.waitForFunction(() => document.querySelector("#question")?.value.startsWith("Which"));
    }),
  );

  test(
    "says that an answer needs a language model, and shows the notes",
    at(async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await page.getByRole("radio", { name: "Synthesize" }).check({ force: true });
      assert.deepEqual(await page.getByLabel("Format").getByRole("option").allInnerTexts(), [
        "Direct answer",
        "Brief",
        "Timeline",
        "Relationships",
      ]);
      await ask(page, "Who uses Snake?");
      await shows(page, "No language model is configured");
      assert.ok((await results(page).count()) > 0);
      await accessible(page, "an answer that could not be written");
    }),
  );

  test(
    "says that a note does not exist",
    at(
      async (visit) => {
        const page = await visit.open("/#/note?id=01a20447-2092-70ee-bc4e-cee7d5c9d404", "Note");
        await shows(page, "There is no such note.");
        await page.getByRole("main").getByRole("link", { name: "Search for one" }).click();
        await page.getByRole("heading", { level: 1, name: "Search" }).waitFor();
      },
      { expected: [/status of 404/] },
    ),
  );
});

describe("with a language model", () => {
  const says = { answer: "Turla uses Snake.", quote: "Turla uses Snake" };
  const held = serviceOf("local", { model: says }, (service) =>
    service.ask("POST", "/api/remember", { content: SNAKE }),
  );

  test("answers with sources that can be opened", () =>
    visiting(held.service, {}, async (visit) => {
      const page = await visit.open("/#/search", "Search");
      await page.getByRole("radio", { name: "Synthesize" }).check({ force: true });
      await ask(page, "Who uses Snake?");
      const answer = page.getByRole("region", { name: "Answer" });
      await answer.getByText("Turla uses Snake.").first().waitFor();
      await accessible(page, "an answer");
      await answer.getByRole("link", { name: "Turla uses Snake" }).last().click();
      await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
      await page.getByRole("main").locator("mark", { hasText: "Turla uses Snake" }).waitFor();
    }));
});
