// Reads files and texts into notes to be ingested. What can't be read is refused with the reason.

import { count, number } from "../lib/format.js";

/**
 * A note to be sent.
 *
 * @typedef {{content: string, domain?: string, source_type?: string, source_ref?: string, evolve?: boolean}} Note
 *
 * What was read.
 *
 * @typedef {Object} Reading
 * @property {{note: Note, from: string}[]} notes `from` says where in the file.
 * @property {{from: string, reason: string}[]} refused
 * @property {string} [remark]
 * @property {Table} [table] A CSV file, whose columns are to be chosen. Then there are no notes yet.
 *
 * @typedef {{name: string, rows: {line: number, cells: string[]}[]}} Table
 */

const MIB = 1 << 20;
const LARGEST_FILE = 64 * MIB;
const PAUSE_AFTER = 5000;
const MOST_COLUMNS = 1000;
/** Where the separator of a table is looked for, in characters. */
const HEAD = 65_536;

/** A file that is refused as a whole. */
export class Refused extends Error {}

const KINDS = { txt: readText, md: readText, json: readJson, jsonl: readJson, ndjson: readJson, csv: readCsv };
export const EXTENSIONS = Object.keys(KINDS).map((kind) => `.${kind}`).join(",");

/**
 * @param {File} file
 * @param {number} longest Of a note, in characters.
 * @returns {Promise<Reading>}
 * @throws {Refused}
 */
export async function readFile(file, longest) {
  const kind = /\.([^.]+)$/.exec(file.name)?.[1].toLowerCase() ?? "";
  if (!Object.hasOwn(KINDS, kind)) {
    const what = kind ? `.${kind} files are` : "A file without an extension is";
    throw new Refused(`${what} not read: only .txt, .md, .json, .csv.`);
  }
  if (file.size > LARGEST_FILE) throw new Refused(`It is larger than ${LARGEST_FILE / MIB} MiB. Split it.`);
  const text = decoded(new Uint8Array(await file.arrayBuffer()));
  if (text.trim() === "") throw new Refused("It is empty.");
  return KINDS[kind](text, file.name, longest);
}

/** The text of a file: UTF-8, or UTF-16 with a byte order mark. */
function decoded(bytes) {
  const wide = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.subarray(0, 2).join()];
  if (!wide && bytes.subarray(0, 65_536).includes(0)) throw new Refused("It is a binary file, not a text.");
  try {
    return new TextDecoder(wide || "utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new Refused(`It is not valid ${wide ? "UTF-16" : "UTF-8"}. Save it as UTF-8.`);
  }
}

/** One note, or several if it is too long. */
function readText(text, name, longest) {
  const parts = split(text, longest);
  const notes = parts.map((content, at) => ({
    note: { content },
    from: parts.length > 1 ? `${name}, part ${at + 1}` : name,
  }));
  const remark = `Longer than ${number(longest)} characters: split between paragraphs.`;
  return { notes, refused: [], ...(parts.length > 1 && { remark }) };
}

/** Characters as the service counts them. */
export const length = (text) => {
  let count = text.length;
  for (const _ of text.matchAll(/[\u{10000}-\u{10ffff}]/gu)) count -= 1;
  return count;
};

/** Cuts a text between paragraphs, or else between lines, sentences or words, into parts that are short enough. */
export function split(text, longest) {
  if (length(text) <= longest) return [text.trim()];
  const parts = [];
  let rest = text.trim();
  while (rest.length > 2 * longest || length(rest) > longest) {
    const head = rest.slice(0, longest);
    const at = [/\n\s*\n/g, /\n/g, /[.!?]\s/g, /\s/g].map((gap) => [...head.matchAll(gap)].at(-1))
      .find((found) => found && found.index > longest / 4);
    const whole = /[\ud800-\udbff]$/.test(head) ? longest - 1 : longest;
    const end = at ? at.index + (/^[.!?]/.test(at[0]) ? 1 : 0) : whole;
    parts.push(rest.slice(0, end).trim());
    rest = rest.slice(end).trim();
  }
  return [...parts, rest].filter(Boolean);
}

/** One note for each line that is not empty. */
export function readLines(text) {
  const notes = text.split(/\r?\n/).map((line, at) => ({ note: { content: line.trim() }, from: `line ${at + 1}` }));
  return { notes: notes.filter(({ note }) => note.content !== ""), refused: [] };
}

async function readJson(text, name) {
  const entries = parsed(text);
  const reading = { notes: [], refused: [] };
  for (const [at, { value, place, reason }] of entries.entries()) {
    const from = `${name}, ${place}`;
    const fault = reason ?? faultOf(value);
    if (fault) reading.refused.push({ from, reason: fault });
    else reading.notes.push({ note: noteOf(value), from });
    if (at % PAUSE_AFTER === PAUSE_AFTER - 1) await pause();
  }
  return reading;
}

function parsed(text) {
  const numbered = (list) => list.map((value, at) => ({ value, place: `item ${at + 1}` }));
  let problem;
  try {
    const json = JSON.parse(text.replace(/^\ufeff/, ""));
    if (Array.isArray(json)) return numbered(json);
    if (Array.isArray(json?.items)) return numbered(json.items);
    if (typeof json?.content === "string" || typeof json === "string") return numbered([json]);
    throw new Refused(json?.type === "bundle"
      ? "It is a STIX bundle. The hosted service ingests those; this one takes texts."
      : Array.isArray((json?.Event ?? json?.response?.[0]?.Event)?.Attribute)
        ? "It is a MISP event. The hosted service ingests those; this one takes texts."
      : "It holds neither a list of notes nor an object with “items” or “content”.");
  } catch (error) {
    if (error instanceof Refused) throw error;
    problem = error;
  }
  const lines = text.split("\n").map((line, at) => ({ line: line.trim(), place: `line ${at + 1}` }));
  const values = lines.filter(({ line }) => line).map(({ line, place }) => {
    try {
      return { value: JSON.parse(line), place };
    } catch {
      return { place, reason: "This line is not JSON." };
    }
  });
  if (values.length < 2 || values[0].reason) throw new Refused(`It is not JSON: ${problem.message}`);
  return values;
}

const FIELDS = ["domain", "source_type", "source_ref"];

function faultOf(value) {
  const content = typeof value === "string" ? value : value?.content;
  if (typeof content !== "string") return "It is neither a text nor an object with a text as “content”.";
  if (content.trim() === "") return "Its text is empty.";
  if (!content.isWellFormed()) return "Its text has half a character (a lone surrogate).";
  const wrong = FIELDS.find((field) => typeof (value[field] ?? "") !== "string");
  if (wrong) return `“${wrong}” is not a text.`;
  return [true, false, null, undefined].includes(value.evolve) ? "" : "“evolve” is neither true nor false.";
}

/** Only the fields that the service knows. */
function noteOf(value) {
  if (typeof value === "string") return { content: value };
  const given = ["content", ...FIELDS, "evolve"].filter((field) => (value[field] ?? "") !== "");
  return Object.fromEntries(given.map((field) => [field, value[field]]));
}

async function readCsv(text, name) {
  const rows = [];
  for (const row of csvRows(text.replace(/^\ufeff/, ""))) {
    rows.push(row);
    if (rows.length % PAUSE_AFTER === 0) await pause();
  }
  if (rows.length === 0) throw new Refused("It has no rows.");
  const { length: columns } = rows[0].cells;
  if (columns > MOST_COLUMNS) {
    throw new Refused(`Its first row has ${number(columns)} fields; at most ${number(MOST_COLUMNS)} are read.`);
  }
  return { notes: [], refused: [], table: { name, rows } };
}

/** The rows of a CSV text (RFC 4180). The separator may also be a semicolon or a tab; empty lines are skipped. */
function* csvRows(text) {
  const separator = separatorOf(text);
  const end = new RegExp(`[${separator}\\r\\n]`, "g");
  let at = 0;
  let line = 1;
  while (at < text.length) {
    const row = { line, cells: [] };
    for (; ; at += 1) {
      const [cell, next] = text[at] === "\"" ? quotedCell(text, at, line) : plainCell(text, at, end);
      if (text[at] === "\"") line += cell.split("\n").length - 1;
      row.cells.push(cell);
      at = next;
      if (text[at] !== separator) break;
    }
    if (at < text.length && !"\r\n".includes(text[at])) throw unpaired(row.line);
    at += text.startsWith("\r\n", at) ? 2 : 1;
    line += 1;
    if (row.cells.length > 1 || row.cells[0] !== "") yield row;
  }
}

function plainCell(text, at, end) {
  end.lastIndex = at;
  const next = end.exec(text)?.index ?? text.length;
  return [text.slice(at, next), next];
}

function quotedCell(text, at, line) {
  let close = text.indexOf("\"", at + 1);
  while (close >= 0 && text[close + 1] === "\"") close = text.indexOf("\"", close + 2);
  if (close < 0) throw unpaired(line);
  return [text.slice(at + 1, close).replaceAll("\"\"", "\""), close + 1];
}

const unpaired = (line) => new Refused(`A quotation mark in line ${line} has no counterpart.`);

/** The likeliest separator, judged by the first line. */
function separatorOf(text) {
  const counts = new Map([[",", 0], [";", 0], ["\t", 0]]);
  let isQuoted = false;
  for (const character of text.slice(0, HEAD)) {
    if (character === "\"") isQuoted = !isQuoted;
    else if (!isQuoted && "\r\n".includes(character)) break;
    else if (!isQuoted && counts.has(character)) counts.set(character, counts.get(character) + 1);
  }
  return [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best))[0];
}

/** What the name of a column says about it. */
export const COLUMNS = {
  content: /^(content|text|note|body|description|message|summary)$/i,
  domain: /^(domain|category|topic)$/i,
  source_type: /^(source[ _-]?type|type|kind)$/i,
  source_ref: /^(source[ _-]?ref|source|url|link|reference)$/i,
};

/**
 * The notes of a table.
 *
 * @param {Table} table
 * @param {{content: number, domain: number, source_type: number, source_ref: number}} columns -1 is none.
 * @param {boolean} hasHead
 * @returns {Reading}
 */
export function notesOf({ name, rows }, columns, hasHead) {
  const width = rows[0].cells.length;
  const reading = { notes: [], refused: [] };
  for (const { line, cells } of hasHead ? rows.slice(1) : rows) {
    const from = `${name}, line ${line}`;
    const given = Object.entries(columns).filter(([, at]) => at >= 0 && cells[at]?.trim())
      .map(([field, at]) => [field, cells[at].trim()]);
    const note = Object.fromEntries(given);
    const reason = cells.length !== width ? `It has ${count(cells.length, "field")}, the first row has ${width}.`
      : !note.content && "Its text is empty.";
    if (reason) reading.refused.push({ from, reason });
    else reading.notes.push({ note, from });
  }
  return reading;
}

const pause = () => new Promise((resolve) => setTimeout(resolve));
