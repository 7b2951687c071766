// What the services know in the tests.

import { readFile } from "node:fs/promises";
import { until } from "./until.mjs";

// What a text sets when it becomes more than a text.
export const MARKER = "__ran";
export const HOSTILE_NAME = "Evil\"Quo'te`Kit <b>bold</b>";
export const SCRIPT_NOTE =
  `<img src=x onerror="window.${MARKER}=1"> APT28 <script>window.${MARKER}=2</script> ` + `used ${HOSTILE_NAME}`;
export const HOSTILE_DOMAIN = "a\"b'c`<i>\u202Egpj.exe";
export const LONG_WORD = "W".repeat(400);
const LONG_LINK = `https://example.test/${"long/".repeat(60)}`;
export const LONG_NOTE = `APT28 ${LONG_WORD} \u202Etxt.exe ${LONG_LINK} javascript:window.${MARKER}=3`;

const ACTORS = [
  ["APT28", "government ministries", "X-Agent"],
  ["APT29", "diplomatic missions", "WellMess"],
  ["Turla", "foreign ministries", "Snake"],
  ["Sandworm", "electricity grids", "Industroyer"],
  ["Lazarus Group", "cryptocurrency exchanges", "AppleJeus"],
  ["FIN7", "restaurant chains", "Carbanak"],
  ["Kimsuky", "policy institutes", "BabyShark"],
  ["MuddyWater", "telecom providers", "POWERSTATS"],
  ["OilRig", "petrochemical companies", "Helminth"],
  ["APT41", "software vendors", "ShadowPad"],
  ["Wizard Spider", "hospitals", "Ryuk"],
  ["TA505", "retail banks", "FlawedAmmyy"],
];
const REPORTS = [
  (actor, sector, tool, at) =>
    `${actor} used ${tool} at ${sector}; the implant called back to ${at.ip} every ${at.minutes} minutes.`,
  (actor, sector, tool, at) =>
    `Mails to ${sector} carried a document that installs ${tool}. We attribute them to ${actor}: ${at.host}.`,
  (actor, sector, tool, at) =>
    `${actor} exploits ${at.cve}, then moves with PsExec and Mimikatz. Its usual victims are ${sector}.`,
  (actor, sector, tool, at) =>
    `The sample ${at.hash} of ${tool} names ${at.host} and ${at.ip}, both known from ${actor}.`,
  (actor, sector, tool, at) =>
    `Hunting: ${tool} creates a scheduled task (T1053). Seen with ${at.cve} at two of ${sector}.`,
  (actor, sector, tool, at) =>
    `After a takedown ${actor} moved from ${at.ip} to ${at.host} within ${at.minutes} minutes.`,
];
const DOMAINS = ["cti", "incident", "vulnerability", "malware"];

/** A hash of a number, the same in every run. */
function hashOf(number) {
  let text = "";
  for (let part = 0; part < 8; part += 1)
    text += (Math.imul(number + 1, 0x9e3779b1 + part * 0x85ebca6b) >>> 0).toString(16).padStart(8, "0");
  return text;
}

/** The `number`-th note of a collection that looks like an analyst's. */
export function noteOf(number) {
  const [actor, sector, tool] = ACTORS[number % ACTORS.length];
  const at = {
    ip: `198.51.100.${1 + ((number * 37) % 250)}`,
    host: `cdn-${hashOf(number).slice(0, 5)}.example.net`,
    cve: `CVE-${2017 + (number % 8)}-${10000 + ((number * 7919) % 30000)}`,
    hash: hashOf(number),
    minutes: 5 + ((number * 11) % 55),
  };
  const content = REPORTS[Math.floor(number / ACTORS.length) % REPORTS.length](actor, sector, tool, at);
  return { content, domain: DOMAINS[number % DOMAINS.length], source_type: "report", evolve: false };
}

/** Stores that many notes. */
export async function notes(service, count) {
  for (let begin = 0; begin < count; begin += 100) {
    const items = Array.from({ length: Math.min(100, count - begin) }, (_, offset) => noteOf(begin + offset));
    await service.ask("POST", "/api/ingest", { items });
  }
}

/**
 * Stores notes whose texts, domains and entities try to become HTML, or to break a layout. Only a language model finds
 * entities with such names.
 */
export async function hostile(service) {
  const items = [
    { content: SCRIPT_NOTE, domain: HOSTILE_DOMAIN },
    { content: LONG_NOTE, domain: "cti" },
  ];
  await service.ask("POST", "/api/ingest", { items });
  const known = async () => (await service.ask("GET", "/api/entities?q=evil")).total === 1;
  await until(known, "the model has read the notes");
  await service.ask("POST", "/api/recall", { query: SCRIPT_NOTE });
}

/** What the language model says that `hostile` needs. */
export const HOSTILE_MODEL = {
  entities: [{ name: HOSTILE_NAME, alias: "al\"ias'<i>" }],
  answer: SCRIPT_NOTE,
  quote: HOSTILE_NAME,
};

/** Makes a graph of 2,000 nodes with 4,000 edges: 100 notes that mention 40 of 1,900 entities each. */
export async function largeGraph(service) {
  const kinds = [
    (of) => `198.${18 + (of >> 10)}.${(of >> 4) & 255}.${of & 15}`,
    (of) => `host-${of}.example-${of % 40}.net`,
    (of) => `CVE-2024-${10000 + of}`,
  ];
  const names = Array.from({ length: 1900 }, (_, of) => kinds[of % kinds.length](of));
  const items = Array.from({ length: 100 }, (_, note) => {
    const mentioned = Array.from({ length: 40 }, (_, at) => names[(note * 19 + at) % names.length]);
    return { content: `Report ${note} on infrastructure: ${mentioned.join(", ")}.`, evolve: false };
  });
  await service.ask("POST", "/api/ingest", { items });
}

/** The demo bundle of the hosted service. */
export async function demoBundle() {
  return JSON.parse(await readFile(new URL("../../../assets/demo/bundle.json", import.meta.url), "utf8"));
}

const TOPICS = {
  "intrusion-set": "actors",
  "threat-actor": "actors",
  campaign: "campaigns",
  malware: "malware",
  tool: "malware",
  vulnerability: "vulnerabilities",
  "attack-pattern": "techniques",
  "course-of-action": "defence",
  indicator: "indicators",
};

/** The demo bundle as notes: what it says about each object, and what the object has to do with others. */
export async function demoNotes() {
  const { objects } = await demoBundle();
  const known = new Map(objects.map((object) => [object.id, object]));
  const related = new Map();
  for (const { type, source_ref: from, target_ref: to, relationship_type: verb } of objects) {
    if (type !== "relationship" || !known.get(from)?.name || !known.get(to)?.name) continue;
    const verbs = related.get(from) ?? new Map();
    verbs.set(verb, [...(verbs.get(verb) ?? []), known.get(to).name]);
    related.set(from, verbs);
  }
  const sentences = ({ id, name }) =>
    [...(related.get(id) ?? [])].map(([verb, names]) => `${name} ${verbOf(verb)} ${names.slice(0, 6).join(", ")}.`);
  return objects
    .filter(({ name, description, type }) => name && description && TOPICS[type])
    .map((object) => ({
      content: [`${object.name}: ${object.description}`, ...sentences(object)].join(" "),
      domain: TOPICS[object.type],
      source_type: "report",
      source_ref: "https://example.org/threat-memory-demo",
      evolve: false,
    }));
}

/** `attributed-to` as people say it. */
const verbOf = (type) => (type.endsWith("-to") ? `is ${type.replaceAll("-", " ")}` : type.replaceAll("-", " "));
