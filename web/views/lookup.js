// Looks up a list of values, or those in a text: which of them are known, and how.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { badge, button, choice, download, field, table } from "../lib/parts.js";
import { emptiness, failure } from "../lib/shell.js";

/**
 * Where values are looked up.
 *
 * @typedef {Object} Source
 * @property {(body: {values: string[]}|{text: string}, signal: AbortSignal) => Promise<Answer>} look
 * @property {{key: string, title: string, cell: (result: Result) => any}[]} columns Beside the value and its verdict.
 * @property {[title: string, of: (hit: Object) => any][]} fields Of a hit, for CSV.
 * @property {(answer: Answer) => any} [actions]
 *
 * @typedef {Object} Answer
 * @property {Result[]} results In the order given, each value once.
 * @property {Object<string, number>} summary How many of them have which verdict.
 *
 * @typedef {Object} Result
 * @property {string} sent
 * @property {string|null} value
 * @property {string|null} kind
 * @property {number} count
 * @property {string} verdict
 * @property {string} [reason]
 * @property {string[]} warninglists
 * @property {Object[]} hits
 * @property {boolean} more_hits
 */

/** Limits of one look-up (docs/limits.md). */
const MOST_VALUES = 10_000;
const MOST_BYTES = 1024 * 1024;
const STEP = 200;
/** Verdicts in the order in which they are shown, with their colours. */
const VERDICTS = { known: "bad", contained: "warn", parent: "warn", listed: "good", unknown: "", invalid: "" };
const READINGS = [["", "By its form"], ["values", "A list, one value per line"], ["text", "A mail, a table or a log"]];
const MATCHES = {
  value: "the value itself", same_file: "another hash of the same file", network: "a network around it",
  inside: "inside the network", host: "its host", parent_domain: "a domain above it",
};

/** How a hit was found: `same_file` is "another hash of the same file". */
export const matchText = (match) => MATCHES[match] ?? match;

/** @param {Source} source */
export function lookup(source) {
  /** What was looked up last, for those who come back. */
  const last = { text: "", reading: "", answer: null };
  return {
    id: "lookup",
    title: "Look-up",
    style: "lookup.css",
    show: (root, at) => new LookupPage(source, last, root, at).begin(),
  };
}

class LookupPage {
  #root;
  #source;
  #last;
  #at;
  #verdict = "";
  #rows = STEP;
  #text = el("textarea", { name: "values", rows: 8, spellcheck: "false", autocomplete: "off",
    placeholder: "203.0.113[.]77\nhxxp://cdn[.]evil[.]example/a\n44d88612fea8a8f36de82e1278abb02f" });
  #reading;
  #summary = el("p.summary", { role: "status" });
  #body = el("div.stack");

  constructor(source, last, root, at) {
    this.#root = root;
    this.#source = source;
    this.#last = last;
    this.#at = at;
    this.#text.value = last.text;
    this.#reading = choice(READINGS, last.reading);
  }

  begin() {
    const file = el("input", { type: "file", accept: "text/*,.eml,.csv,.log,.json",
      onchange: () => file.files[0] && this.#take(file) });
    const form = el("form.card.lookup-form", { onsubmit: (event) => { event.preventDefault(); this.#look(); } },
      field("Values", this.#text, `Up to ${number(MOST_VALUES)} values, one per line, defanged or not; or a text of up to `
        + "1 MiB that holds them. They go into no log and no address."),
      el("div.toolbar", {}, field("Or a file", file), field("Read as", this.#reading),
        el("button.primary", { type: "submit" }, "Look up")));
    fill(this.#root, form, this.#summary, this.#body);
    if (this.#last.answer) this.#draw();
    else fill(this.#body, emptiness("Which of these do you know?",
      "Paste indicators, a mail or a part of a log: addresses are found in known networks, hosts below known domains."));
  }

  async #take(input) {
    const [file] = input.files;
    if (file.size > MOST_BYTES) this.#refuse(tooLong(file.size));
    else this.#text.value = await file.text();
    input.value = "";
  }

  #refuse(why) {
    fill(this.#summary);
    fill(this.#body, failure(why));
  }

  async #look() {
    const read = bodyOf(this.#text.value, this.#reading.value);
    if (read.refusal) return void this.#refuse(read.refusal);
    if (!read.body) return void this.#text.focus();
    fill(this.#summary, "Looking up …");
    this.#body.setAttribute("aria-busy", "true");
    try {
      const answer = await this.#source.look(read.body, this.#at.signal);
      Object.assign(this.#last, { text: this.#text.value, reading: this.#reading.value, answer });
      this.#verdict = "";
      this.#draw();
    } catch (error) {
      if (isAbort(error)) return;
      fill(this.#summary);
      fill(this.#body, failure(error, () => this.#look(), { signal: this.#at.signal }));
    } finally {
      this.#body.removeAttribute("aria-busy");
    }
  }

  #draw(rows = STEP) {
    const { answer } = this.#last;
    this.#rows = rows;
    const found = answer.results.filter(({ verdict }) => this.#verdict === "" || verdict === this.#verdict);
    const order = Object.keys(VERDICTS);
    const shown = [...found].sort((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
    fill(this.#summary, summaryOf(answer));
    if (answer.results.length === 0) return void fill(this.#body, emptiness("The text holds no value that can be looked up."));
    const csv = button("Save as CSV", () => download("look-up.csv", csvOf(shown, this.#source.fields), "text/csv"));
    fill(this.#body, this.#chips(answer), el("div.row", {}, csv, this.#source.actions?.(answer)),
      table("Values", this.#columns(), shown.slice(0, rows)), this.#more(shown.length));
  }

  #chips({ results, summary }) {
    const of = (verdict, name, total) => el("button.chip", { type: "button", "aria-pressed": String(this.#verdict === verdict),
      onclick: () => { this.#verdict = verdict; this.#draw(); this.#body.querySelector("[aria-pressed='true']").focus(); },
    }, `${name} ${number(total)}`);
    const verdicts = Object.keys(VERDICTS).filter((verdict) => summary[verdict] > 0);
    return el("div.chips", { role: "group", "aria-label": "Show" }, of("", "all", results.length),
      verdicts.map((verdict) => of(verdict, verdict, summary[verdict])));
  }

  #columns() {
    return [
      { key: "value", title: "Value", cell: valueOf },
      { key: "verdict", title: "Verdict", cell: verdictOf },
      ...this.#source.columns,
    ];
  }

  #more(all) {
    const next = this.#rows;
    if (all <= next) return null;
    return button(`Show ${number(Math.min(STEP, all - next))} more`, () => {
      this.#draw(next + STEP);
      this.#body.querySelectorAll("tbody tr")[next]?.querySelector("a")?.focus();
    });
  }
}

const tooLong = (bytes) => `This text has ${(bytes / MOST_BYTES).toFixed(1)} MiB; a look-up takes 1 MiB. Look it up in parts, `
  + "or as a list of the addresses alone: of a log, the column with them.";

/** What is sent: a list if each line is one value, else the text; or why nothing is. */
function bodyOf(text, reading) {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  if (lines.length === 0) return {};
  const isList = reading === "values" || (reading === "" && lines.every((line) => !/[\s,;|]/.test(line)));
  if (!isList) {
    const bytes = new TextEncoder().encode(text).length;
    return bytes > MOST_BYTES ? { refusal: tooLong(bytes) } : { body: { text } };
  }
  if (lines.length <= MOST_VALUES) return { body: { values: lines } };
  return { refusal: `This list has ${number(lines.length)} values; a look-up takes ${number(MOST_VALUES)}. Look it up in parts.` };
}

function summaryOf({ results, summary }) {
  const sent = results.reduce((sum, { count: times }) => sum + times, 0);
  const twice = sent > results.length ? ` (${number(sent)} with repetitions)` : "";
  const found = summary.known + summary.contained + summary.parent;
  return `${count(results.length, "value")}${twice}: ${number(found)} found.`;
}

function valueOf({ sent, value, count: times }) {
  const shown = value ?? sent;
  return [el("code", { title: shown === sent ? undefined : `Sent as ${sent}` }, shown),
    times > 1 && el("span.muted", {}, ` × ${number(times)}`)];
}

function verdictOf({ verdict, reason, warninglists }) {
  return [badge(verdict, VERDICTS[verdict]), reason && el("p.hint", {}, reason),
    warninglists.length > 0 && el("p.hint", {}, "On a warninglist: ", warninglists.join(", "))];
}

/** A row for each hit, and one for each value without. */
function csvOf(results, fields) {
  const head = ["sent", "value", "kind", "count", "verdict", "warninglists", ...fields.map(([title]) => title)];
  const rows = results.flatMap((result) => {
    const { sent, value, kind, count: times, verdict, warninglists, hits } = result;
    const own = [sent, value, kind, times, verdict, warninglists.join("; ")];
    return (hits.length > 0 ? hits : [null]).map((hit) => [...own, ...fields.map(([, of]) => hit && of(hit))]);
  });
  return [head, ...rows].map((row) => `${row.map(cellOf).join(",")}\r\n`).join("");
}

/** A cell of CSV (RFC 4180). Spreadsheets would run a text that begins like a formula. */
function cellOf(value) {
  const text = String(value ?? "");
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
