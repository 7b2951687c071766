// What the pages call things that the API names in words of its own.

const TYPES = { attck: "ATT&CK", cve: "CVE", ioc: "indicator", osint: "OSINT" };
const SOURCES = {
  stix: "STIX", misp: "MISP event", osint: "OSINT item", analyst: "analyst's entry", report: "report",
  manual_text: "text", analyst_report: "analyst's report", osint_feed: "open source", incident_writeup: "incident report",
};
const PROPERTIES = {
  attribute_count: "MISP attributes", attribute_uuids: "UUIDs of the MISP attributes", cvss: "CVSS",
  event_uuid: "UUID of the MISP event", external_ids: "External ids", ioc_type: "Kind of indicator",
  misp_attributes: "As the MISP attributes state", pattern_type: "Language of the pattern",
  to_ids: "Fit for detection (to_ids)",
};
const ABBREVIATIONS = new Set(["cwe", "capec", "ip", "misp", "ioc", "stix", "tlp", "url", "uuid"]);

/** A type of nodes: `ioc` is an `indicator`. */
export const typeName = (type) => TYPES[type] ?? type;

/** Where something came from: `manual_text` is a `text`. */
export const sourceName = (type) => SOURCES[type] ?? type.replaceAll("_", " ");

/** A property of a node: `stix_type` is the `STIX type`. */
export function propertyName(name) {
  if (Object.hasOwn(PROPERTIES, name)) return PROPERTIES[name];
  const words = name.split(/[_\s]+/).map((word) => (ABBREVIATIONS.has(word) ? word.toUpperCase() : word)).join(" ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Why the extractor found something: `rule ipv4 matched "203.0.113.9"` names the rule and what it saw. */
export function reasonText(text) {
  const [, rule, seen] = /^rule ([\w-]+) matched "(.*)"$/s.exec(text ?? "") ?? [];
  return rule ? `read as “${seen}” (rule: ${rule.replaceAll("-", " ")})` : text;
}

/** A warning without the ids of the nodes that it names, which are linked beside it. */
export const warningText = (text) => text.replace(/ \([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\)/g, "");
