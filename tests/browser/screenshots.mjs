// Makes docs/screenshots: every view of both services, light and dark, with the demo's data.
//
//   npm run screenshots [-- NAME…]    only the views with these names

import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import path from "node:path";
import { signedIn } from "./support/console.mjs";
import { closeChromium, settled, Visit } from "./support/page.mjs";
import { demoBundle, demoNotes } from "./support/seed.mjs";
import { running } from "./support/service.mjs";
import { until } from "./support/until.mjs";

const FOLDER = fileURLToPath(new URL("../../docs/screenshots", import.meta.url));
const LATER_MS = 3 * 60_000;
const QUESTIONS = [
  "Which groups attack power grids?",
  "Who exploited MOVEit?",
  "Which wipers were used in Ukraine?",
  "How does Scattered Spider get in?",
  "When was NotPetya seen?",
  "What is related to Cobalt Strike?",
  "Which vulnerabilities does Volt Typhoon exploit?",
  "Who is behind Industroyer?",
  "How do attackers steal session cookies?",
  "Why did Colonial Pipeline stop?",
  "Which ransomware hit hospitals?",
  "Which techniques does Turla use?",
];
const REPORT =
  "TLP:GREEN Sandworm Team used Industroyer2 and CaddyWiper against a Ukrainian power distributor in April 2022. " +
  "They came in with valid accounts and moved with Impacket; the wiper came from hxxp://files.example[.]com/a. " +
  "The same host was seen with CVE-2023-34362 and CVE-2024-3400. APT28 uses password spraying against the same sector.";

const still = (page) =>
  until(
    async () => (await page.getByRole("application").getAttribute("data-state")) === "still",
    "the picture rests",
    60_000,
  );

/** Shows a view by its fragment. */
async function go(page, fragment) {
  await page.evaluate((hash) => {
    location.hash = hash;
  }, fragment);
  await settled(page);
}

/** Views of the local service: what to do before the picture is taken. */
const LOCAL = {
  async overview(page) {
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByRole("img", { name: /^Latency of the last/ }).waitFor();
  },
  async search(page) {
    await go(page, "#/search?q=Which+malware+does+Sandworm+use+against+power+grids%3F");
    await page.getByRole("article").first().waitFor();
  },
  async note(page) {
    await go(page, "#/search?q=Which+malware+does+Sandworm+use+against+power+grids%3F");
    await page.getByRole("article").getByRole("heading").getByRole("link").first().click();
    await page.getByRole("heading", { level: 1, name: "Note" }).waitFor();
    await settled(page);
  },
  async graph(page) {
    await go(page, "#/graph?around=actor%3Asandworm-team&depth=2&notes=no");
    await page
      .getByRole("complementary", { name: "Selected node" })
      .getByRole("heading", { level: 3 })
      .first()
      .waitFor();
    await still(page);
  },
  async ingest(page) {
    await go(page, "#/ingest");
    await page.getByRole("tab", { name: "Files" }).click();
    const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
    const texts = QUESTIONS.map((question) => ({ content: `Asked today: ${question} APT28, CVE-2023-34362.` }));
    await page
      .locator("input[type=file]")
      .setInputFiles([
        file("morning.json", JSON.stringify([...texts, { text: "an entry without content" }])),
        file("report.md", REPORT),
        file("scan.png", "x"),
      ]);
    await page.getByRole("button", { name: /^Send \d+ notes/ }).click();
    await page.getByText(/^14 of 14 notes/).waitFor();
  },
  entities: (page) => go(page, "#/entities"),
  history: (page) => go(page, "#/history"),
  async logs(page) {
    await go(page, "#/logs?text=api/ingest");
    await page.getByText("Live", { exact: true }).waitFor();
    const last = page
      .getByRole("region", { name: "Lines of the log" })
      .getByRole("listitem")
      .filter({ hasText: "api/ingest" })
      .last();
    await last.locator("summary").click();
    await last.getByRole("term").first().waitFor();
    await last.scrollIntoViewIfNeeded();
  },
  async configuration(page) {
    await go(page, "#/config?q=retrieval");
    const first = page.getByRole("main").locator(".setting:visible input").first();
    await first.fill("12");
  },
};

/** Views of the console. */
const CONSOLE = {
  "console-search": async (page) => {
    await go(page, "#/search?q=Which+groups+attack+power+grids%3F");
    await page.getByRole("article").first().waitFor();
  },
  "console-node": (page, { node }) => go(page, `#/node?id=${node}`),
  "console-graph": async (page, { node }) => {
    await go(page, `#/graph?around=${node}&types=actor,cve,tool,vulnerability`);
    await still(page);
  },
  "console-review": (page, { staged }) => go(page, `#/review?batch=${staged}`),
  "console-feeds": (page) => go(page, "#/feeds"),
  "console-batch": (page, { batch }) => go(page, `#/batch?id=${batch}`),
  "console-audit": async (page) => {
    await go(page, "#/audit");
    await page.getByRole("button", { name: "Verify the log" }).click();
    await page.getByText("The log is whole.").waitFor();
    await page.getByLabel("Find in the entries below").fill("recall.search");
  },
};

async function seedLocal(service) {
  const notes = await demoNotes();
  for (let begin = 0; begin < notes.length; begin += 100) {
    await service.ask("POST", "/api/ingest", { items: notes.slice(begin, begin + 100) });
  }
  for (let round = 0; round < 3; round += 1) {
    for (const query of QUESTIONS.slice(round)) await service.ask("POST", "/api/recall", { query });
  }
  await service.ask("POST", "/api/synthesize", { query: QUESTIONS[0] });
}

/** What the feed brings: nothing else in the workspace refers to it. */
const isFeed = ({ type }) => ["campaign", "indicator"].includes(type);

async function seedHosted(service) {
  const bundle = await demoBundle();
  const fresh = new Set(bundle.objects.filter(isFeed).map(({ id }) => id));
  const isKnown = (object) => ![object.id, object.source_ref, object.target_ref].some((id) => fresh.has(id));
  await service.ask("POST", "/api/ingest/stix", { bundle: { ...bundle, objects: bundle.objects.filter(isKnown) } });
  const text = { text: REPORT, source_type: "incident_writeup", session_id: "case 117" };
  const staged = await service.ask("POST", "/api/ingest/preview", text);
  const feed = (name, redistribution_state, at) => ({
    name,
    description: "Indicators and campaigns of the energy sector",
    default_tlp: "TLP:GREEN",
    redistribution_state,
    connector_config_ref: `https://taxii.example.com/api1/collections/${at}/objects/`,
  });
  const feeds = "/api/threat-intel/feeds";
  const { feed: first } = await service.ask("POST", feeds, feed("Energy sector", "internal_only", "91a7b528"));
  await service.ask("POST", feeds, feed("National CERT", "allowed", "52892447"));
  const objects = bundle.objects.filter((object) => !isKnown(object) || object.type === "marking-definition");
  const upload = { input_kind: "stix_bundle", feed_source_id: first.id, bundle: { ...bundle, objects } };
  const { batch } = await service.ask("POST", "/api/threat-intel/batches", upload);
  for (const query of QUESTIONS) await service.ask("GET", `/api/recall/search?q=${encodeURIComponent(query)}`);
  const { results } = await service.ask("GET", "/api/recall/search?q=Volt%20Typhoon");
  return { staged: staged.batch_id, batch: batch.id, node: results[0].id };
}

/** Takes the pictures of some views. `begin` resolves to the page before each. */
async function pictures(service, views, only, begin, seeded) {
  const now = Date.now() + LATER_MS;
  for (const [name, prepare] of Object.entries(views)) {
    if (only.length > 0 && !only.includes(name)) continue;
    for (const dark of [false, true]) {
      const visit = new Visit(service, { dark });
      await visit.begin();
      await visit.page.clock.setFixedTime(now);
      const page = await begin(visit);
      await prepare(page, seeded);
      await page.evaluate(() => document.activeElement?.blur());
      await page.mouse.move(0, 0);
      await page.waitForFunction(() => document.getAnimations().every(({ playState }) => playState !== "running"));
      const file = path.join(FOLDER, `${name}-${dark ? "dark" : "light"}.png`);
      await page.screenshot({ path: file, animations: "disabled", caret: "hide" });
      console.log(file);
      await visit.context.close();
      visit.check();
    }
  }
}

const only = process.argv.slice(2);
await mkdir(FOLDER, { recursive: true });
for (const [kind, options, seed, views, begin] of [
  [
    "local",
    {},
    seedLocal,
    LOCAL,
    async (visit) => {
      await visit.open("/", "Overview");
      await settled(visit.page);
      return visit.page;
    },
  ],
  [
    "hosted",
    { environment: { TAXII_ALLOWED_HOSTS: "taxii.example.com" } },
    seedHosted,
    CONSOLE,
    (visit) => signedIn(visit),
  ],
]) {
  const service = await running(kind, options);
  try {
    await pictures(service, views, only, begin, await seed(service));
  } finally {
    await service.end();
  }
}
await closeChromium();
