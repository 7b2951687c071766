// The audit log: who did what, whether the log is whole, and its export.

import { may } from "../console/session.js";
import { el, fill } from "../lib/dom.js";
import { count, moment, number } from "../lib/format.js";
import { ask, badge, button, choice, download, facts, field, table } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";

/** Entries per request. */
const PAGE = 100;
/** Most entries that the service exports at once. */
const EXPORTED = 5000;
/** Length of a summary in the table. */
const SUMMARY = 140;

/** The users that were seen in the log, by id. The service has no list that an auditor may read. */
const seen = new Map();

export const audit = (api) => ({
  id: "audit",
  title: "Audit log",
  style: "audit.css",
  async show(root, at) {
    const filter = { from: at.params.get("from"), to: at.params.get("to"), user_id: at.params.get("user") };
    const form = filters(filter, at);
    const result = el("div", { role: "status" });
    const entries = el("div.stack");
    const actions = el("div.row", {}, verifier(api, result, at), exporter(api, filter, result, at));
    fill(root, el("div.stack", {}, form.element, actions, result, entries));
    await log(api, filter, entries, { ...at, learned: form.users });
  },
});

function filters({ from, to, user_id: user }, at) {
  const since = el("input", { type: "datetime-local", step: 1, value: localTime(from) });
  const before = el("input", { type: "datetime-local", step: 1, value: localTime(to) });
  const who = choice([], "");
  const users = () => {
    const chosen = who.value || (user ?? "");
    const known = [...seen].sort(([, one], [, other]) => one.localeCompare(other));
    if (user && !seen.has(user)) known.unshift([user, `User ${user}`]);
    fill(who, [...choice([["", "All"], ...known], chosen).childNodes]);
    who.value = chosen;
  };
  users();
  const visit = (event) => {
    event.preventDefault();
    at.go("audit", { from: utcTime(since.value), to: utcTime(before.value), user: who.value });
  };
  const element = el("form.toolbar.card", { onsubmit: visit },
    field("From", since), field("Before", before),
    field("User", who, "Failed sign-ins are listed by address only: choose “All”."),
    el("button.primary", {}, "Show"), (from || to || user) && el("a.button", { href: linkTo("audit") }, "Clear"));
  return { element, users };
}

/** A time of the service as an input of the browser's time zone has it, and back. */
const localTime = (time) => (time && !Number.isNaN(Date.parse(time)) ? moment(time).replace(" ", "T") : "");
const utcTime = (value) => (value ? new Date(value).toISOString() : "");

async function log(api, filter, root, at) {
  const shown = [];
  let next = { to: filter.to, offset: 0 };
  const list = el("div.stack");
  const problem = el("div");
  const tell = el("p.muted", { "aria-live": "polite" });
  const find = el("input", { type: "search", placeholder: "recall.search, 10.0.0.7, denied …", oninput: () => draw() });
  const older = button("Show older entries", () => load().catch((error) => {
    if (!at.signal.aborted) fill(problem, failure(error));
  }));
  const draw = () => {
    const fitting = shown.filter((entry) => isFound(entry, find.value));
    const span = `${count(shown.length, "entry", "entries")}${next ? " so far" : ""}, newest first`;
    fill(tell, find.value.trim() ? `${number(fitting.length)} of ${span}` : span);
    older.hidden = !next;
    const other = next ? "Show older entries, or change the text." : "Change the text.";
    fill(list, fitting.length > 0
      ? entryTable(fitting, filter, at) : emptiness("None of these entries contains this text.", other));
  };
  const load = async () => {
    fill(problem);
    const { logs } = await api.auditLogs({ ...filter, ...next, limit: PAGE }, { signal: at.signal });
    shown.push(...logs);
    next = logs.length < PAGE ? null : afterPage(logs, next);
    for (const entry of logs) if (entry.user_id && entry.user_email) seen.set(entry.user_id, entry.user_email);
    at.learned();
    draw();
  };
  fill(root, el("p.muted", {}, "Loading …"));
  await load();
  if (shown.length === 0) {
    const whole = el("a", { href: linkTo("audit") }, "Show the whole log.");
    return void fill(root, emptiness("There are no such entries in this span of time.", whole));
  }
  const finder = el("div.row.found", {}, field("Find in the entries below", find), tell);
  fill(root, finder, list, problem, el("div", {}, older));
}

/**
 * Where the page after this one begins: before the time of its last entry, or at the same time but further on. Time and
 * number together neither repeat nor miss an entry, whatever is written meanwhile.
 */
function afterPage(page, { to, offset }) {
  const last = page.at(-1).created_at;
  const end = microsecondAfter(last);
  if (end === to) return { to, offset: offset + page.length };
  return { to: end, offset: page.filter((entry) => entry.created_at === last).length };
}

/** The log keeps microseconds, which `Date` does not. */
function microsecondAfter(time) {
  const [, second, fraction = ""] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(time);
  const micros = Number(fraction.padEnd(6, "0").slice(0, 6)) + 1;
  const start = new Date(Date.parse(`${second}Z`) + Math.floor(micros / 1e6) * 1000).toISOString().slice(0, 19);
  return `${start}.${String(micros % 1e6).padStart(6, "0")}Z`;
}

function isFound(entry, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const haystack = JSON.stringify(Object.values(entry)).toLowerCase();
  return words.every((word) => haystack.includes(word));
}

const OUTCOMES = { failure: "warn", denied: "bad" };
/** What is shown first of an entry's metadata. */
const TELLING = ["query", "reason"];

const callerOf = (entry) => entry.user_email ?? (entry.user_id ? `User ${entry.user_id}` : "no user");

function entryTable(entries, filter, at) {
  const time = ({ created_at: at }) => el("time.nowrap", { datetime: at }, moment(at));
  const byKey = (entry) => entry.metadata.api_key_id && [" ", badge("API key")];
  const caller = (entry) => el("span.nowrap", {}, callerOf(entry), byKey(entry));
  return table("Entries of the audit log", [
    { key: "time", title: "Time", cell: time },
    { key: "user", title: "User", cell: caller },
    { key: "action", title: "Action", cell: (entry) => el("code.nowrap", {}, entry.action) },
    { key: "outcome", title: "Outcome", cell: (entry) => badge(entry.outcome, OUTCOMES[entry.outcome]) },
    { key: "address", title: "Address", cell: (entry) => el("span.nowrap", {}, entry.ip_address) },
    { key: "about", title: "About", cell: (entry) => el("span.about", {}, summaryOf(entry.metadata)) },
    { key: "more", title: "More", cell: (entry) => button("Details", () => details(entry, filter, at), {
      class: "link", "aria-label": `Details of ${entry.action}, ${moment(entry.created_at)}`,
    }) },
  ], entries);
}

/** The plain values of an entry's metadata, on one line. */
function summaryOf(metadata) {
  const plain = Object.entries(metadata)
    .filter(([name, value]) => name !== "api_key_id" && value !== null && value !== false)
    .sort(([one], [other]) => TELLING.includes(other) - TELLING.includes(one));
  const shown = (value) => (typeof value === "object" ? JSON.stringify(value) : value);
  const text = plain.map(([name, value]) => `${name.replaceAll("_", " ")}: ${shown(value)}`).join(" · ");
  return text.length > SUMMARY ? `${text.slice(0, SUMMARY)} …` : text;
}

async function details(entry, filter, at) {
  const entries = [
    ["Time", `${moment(entry.created_at)} (${entry.created_at})`],
    ["User", callerOf(entry)],
    ["User id", entry.user_id && el("code", {}, entry.user_id)],
    ["Outcome", badge(entry.outcome, OUTCOMES[entry.outcome])],
    ["Address", entry.ip_address],
    ["Resource", entry.resource],
    ["Resource id", entry.resource_id && el("code", {}, entry.resource_id)],
    ["Entry id", el("code", {}, entry.id)],
  ].filter(([, value]) => value);
  const content = [
    facts(entries),
    el("h3", {}, "Metadata"),
    el("div.pre.mono.metadata", { tabindex: 0, role: "group", "aria-label": "Metadata" },
      JSON.stringify(entry.metadata, null, 2)),
  ];
  const node = entry.resource === "node" && entry.resource_id && may("recall:read");
  const chosen = await ask(entry.action, content, [
    ...(node ? [["node", "Open the node"]] : []),
    ...(entry.user_id && entry.user_id !== filter.user_id ? [["user", "Only this user"]] : []),
    ["", "Close"],
  ], at.signal);
  if (chosen === "node") at.go("node", { id: entry.resource_id });
  if (chosen === "user") at.go("audit", { from: filter.from, to: filter.to, user: entry.user_id });
}

function verifier(api, result, at) {
  return button("Verify the log", async () => {
    fill(result, el("p.muted", {}, "Checking every entry …"));
    await tried(result, at, async () => fill(result, verdict(await api.auditVerify({ signal: at.signal }))));
  });
}

function verdict({ valid, entries, unchained, head, first_error: problem }) {
  const waiting = unchained > 0 && el("p", {},
    `${count(unchained, "recent entry is", "recent entries are")} not linked yet; verify again in a moment.`);
  const checked = count(entries, "entry", "entries");
  if (!valid) {
    const fault = problem ? `First fault: ${problem}.` : "Its chain is broken.";
    return el("div.notice.bad", {},
      el("p", {}, el("strong", {}, "The log was changed. "), fault),
      el("p", {}, `${checked} checked. Keep the database and its backups as they are, and tell the operator.`),
      waiting);
  }
  return el("div.notice.good", {},
    el("p", {}, el("strong", {}, "The log is whole. "),
      `${checked}, each linked to the one before it by its hash: none was changed or removed from between.`),
    waiting,
    el("p", {}, "Head: ", el("code", {}, head)),
    el("p.hint", {}, "Keep the head outside of this service: a later log that no longer contains it was cut off."));
}

function exporter(api, filter, result, at) {
  if (!may("audit:export")) return null;
  const { from, to } = filter;
  const text = filter.user_id ? "Export all users as CSV" : "Export as CSV";
  return button(text, () => tried(result, at, async () => {
    const text = await api.auditExport({ from, to, limit: EXPORTED }, { signal: at.signal });
    const rows = text.trimEnd().split("\n").length - 1;
    download(`audit-${moment(Date.now()).slice(0, 10)}.csv`, text, "text/csv");
    const oldest = moment(text.trimEnd().split(",").at(-1));
    fill(result, el("p.notice.good", {}, `${count(rows, "entry was", "entries were")} exported, the newest first.`,
      rows >= EXPORTED && ` That is the most: to go on, set “Before” to ${oldest} and export again.`));
  }));
}

/** Does something, or says next to it why it failed. */
async function tried(result, at, action) {
  try {
    await action();
  } catch (error) {
    if (!at.signal.aborted) fill(result, failure(error));
  }
}
