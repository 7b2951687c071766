// Chromium, and a page of it that fails its test when something went wrong that a user would not see at once.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { PATIENCE_MS } from "./until.mjs";

const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

let browser = null;

/** The browser of this process. */
export async function chromiumOf() {
  browser ??= await chromium.launch({ executablePath: EXECUTABLE, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
  return browser;
}

export async function closeChromium() {
  await browser?.close();
  browser = null;
}

/**
 * Opens pages of a service in a tab of its own, and hands them to `work`.
 *
 * @param {Service} service
 * @param {{expected?: RegExp[], size?: {width: number, height: number}, dark?: boolean, motion?: boolean}} options
 *   `expected` are the messages of the browser's console that belong to the test, such as that of a 401. Without
 *   `motion` the user prefers less of it.
 * @param {(visit: Visit) => Promise<void>} work
 */
export async function visiting(service, options, work) {
  const visit = new Visit(service, options);
  try {
    await visit.begin();
    await work(visit);
    visit.check();
  } catch (error) {
    await visit.describe();
    throw error;
  } finally {
    await visit.context?.close();
  }
}

export class Visit {
  constructor(service, { expected = [], size = { width: 1280, height: 800 }, dark = false, motion = false } = {}) {
    this.service = service;
    this.expected = expected;
    this.settings = {
      viewport: size,
      colorScheme: dark ? "dark" : "light",
      reducedMotion: motion ? "no-preference" : "reduce",
      locale: "en-GB",
      timezoneId: "UTC",
      acceptDownloads: true,
    };
    this.faults = [];
    this.bodies = [];
  }

  async begin() {
    const chromium = await chromiumOf();
    this.context = await chromium.newContext(this.settings);
    this.context.setDefaultTimeout(PATIENCE_MS);
    await this.context.addInitScript(() => {
      addEventListener("securitypolicyviolation", (event) =>
        console.error(`Content Security Policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`),
      );
    });
    this.page = await this.tab();
  }

  /** One more tab of the same browser session. */
  async tab() {
    const page = await this.context.newPage();
    const fault = (text) => {
      if (!this.expected.some((pattern) => pattern.test(text))) this.faults.push(text);
    };
    page.on("console", (message) => {
      if (message.type() === "error") fault(`console: ${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => fault(`error: ${error.stack ?? error.message}`));
    page.on("dialog", (dialog) => {
      if (!this.confirming) fault(`dialog: ${dialog.message()}`);
      dialog.accept().catch(() => {});
    });
    page.on("request", (request) => {
      const url = new URL(request.url());
      if (url.protocol.startsWith("http") && url.origin !== this.service.base) fault(`request to ${url.origin}`);
    });
    return page;
  }

  /** Keeps the text of every answer from now on, for `answers`. */
  record() {
    this.context.on("response", (response) => {
      this.bodies.push(
        response.text().then(
          (text) => `${response.url()}\n${text}`,
          () => "",
        ),
      );
    });
  }

  answers() {
    return Promise.all(this.bodies);
  }

  /** Goes to a view and waits for its heading. */
  async open(path, heading, page = this.page) {
    await page.goto(this.service.base + path);
    if (heading) await page.getByRole("heading", { level: 1, name: heading }).waitFor();
    return page;
  }

  /** Prints what is shown, for whoever reads a failure. */
  async describe() {
    for (const page of this.context?.pages() ?? []) {
      const shown = await page.evaluate(() => document.body.innerText).catch(() => "");
      console.log(`${page.url()} shows:\n${shown.slice(0, 3000)}\n${this.faults.join("\n")}`);
    }
  }

  check() {
    assert.deepEqual(this.faults, [], "what the browser reported");
  }
}

/** How many bytes the page and what it loaded are, as they are and as they came. API answers don't count. */
export function sizesOf(page) {
  return page.evaluate(() => {
    const loaded = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
    const files = loaded.filter(({ name }) => !new URL(name).pathname.startsWith("/api/"));
    const sum = (of) => files.reduce((total, file) => total + file[of], 0);
    return { files: files.length, plain: sum("decodedBodySize"), transferred: sum("encodedBodySize") };
  });
}

/** Waits until the view that is shown has loaded what it shows. */
export async function settled(page) {
  await page.waitForFunction(() => {
    const view = document.querySelector("main .view");
    return view?.hasChildNodes() && !/^\s*Loading/m.test(view.innerText) && !view.querySelector("[aria-busy=true]");
  });
}

/** Goes to a view by the navigation. */
export async function visit(page, name) {
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await settled(page);
}

/** The names of the views in the navigation. */
export async function viewsOf(page) {
  return page.getByRole("navigation", { name: "Views" }).getByRole("link").allInnerTexts();
}

/** Fails if axe finds something serious on the page, in light or dark. */
export async function accessible(page, what) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(await readFile(AXE, "utf8"));
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const found = await page.evaluate(async () => {
      const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
      return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(
          ({ id, help, nodes }) =>
            `${id}: ${help}: ${nodes
              .slice(0, 3)
              .map(({ html, failureSummary }) => `${html.slice(0, 200)} ${failureSummary}`)
              .join(" | ")}`,
        );
    });
    assert.deepEqual(found, [], `accessibility of ${what} in ${colorScheme}`);
  }
  await page.emulateMedia({ colorScheme: "light" });
}

/** Fails if the view shows what is no text for people: a forgotten value, or a piece of program. */
export async function readable(page, what) {
  const text = await page.getByRole("main").innerText();
  const wrong = /\b(undefined|NaN)\b|\[object |=> \{/.exec(text);
  assert.ok(!wrong, `${what} shows ${wrong?.[0]}: ${text.slice(Math.max(0, wrong?.index - 80), wrong?.index + 80)}`);
}

/** Fails if the page is wider than its window. */
export async function fits(page, what) {
  const { wide, room, culprits } = await page.evaluate(() => {
    const room = document.documentElement.clientWidth;
    const outside = [...document.querySelectorAll("body *")].filter((element) => {
      const box = element.getBoundingClientRect();
      return box.width > 0 && box.right > room + 1;
    });
    return {
      wide: document.documentElement.scrollWidth,
      room,
      culprits: outside.slice(0, 5).map((element) => element.outerHTML.slice(0, 120)),
    };
  });
  assert.ok(wide <= room, `${what} is ${wide} px wide in a window of ${room} px: ${culprits.join("\n")}`);
}

/**
 * The times between frames while something goes on, in milliseconds.
 *
 * @returns {Promise<{frames: number, mean: number, p95: number, longest: number}>}
 */
export async function frameTimes(page, action) {
  await page.evaluate(() => {
    const times = [];
    let last = performance.now();
    const step = (now) => {
      times.push(now - last);
      last = now;
      window.frameRequest = requestAnimationFrame(step);
    };
    window.frameTimes = times;
    window.frameRequest = requestAnimationFrame((now) => {
      last = now;
      window.frameRequest = requestAnimationFrame(step);
    });
  });
  await action();
  const times = await page.evaluate(() => {
    cancelAnimationFrame(window.frameRequest);
    return window.frameTimes;
  });
  const sorted = [...times].sort((a, b) => a - b);
  return {
    frames: sorted.length,
    mean: sorted.reduce((sum, time) => sum + time, 0) / sorted.length,
    p95: sorted[Math.floor(sorted.length * 0.95)],
    longest: sorted.at(-1),
  };
}
