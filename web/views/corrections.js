// What is set by hand of a node: the part of its page that shows it, sets it and takes it back.

import { may } from "../console/session.js";
import { el, fill } from "../lib/dom.js";
import { ask, button, choice, field } from "../lib/parts.js";
import { failure, linkTo } from "../lib/shell.js";

const MARKINGS = ["TLP:WHITE", "TLP:GREEN", "TLP:AMBER", "TLP:AMBER+PK", "TLP:RED"];
const STATUSES = [["active", "Active"], ["rejected", "Rejected"]];
const NAMES = { tlp: "marking" };

/** Runs work that a button starts, and tells in `problem` what went wrong. */
export const guarded = (at, problem, work) => async () => {
  fill(problem);
  try {
    await work();
  } catch (error) {
    if (!at.signal.aborted) fill(problem, failure(error));
  }
};

/** What is set by hand, with a button that sets more. `tag` is the ETag of the node; `reload` shows the page anew. */
export function corrections(api, { node, corrections: set = [], tag }, at, reload) {
  const writes = may("recall:write");
  if (set.length === 0 && !writes) return null;
  const problem = el("div", { "aria-live": "polite" });
  const send = async (changes, told) => {
    await api.correctNode(node.id, changes, { signal: at.signal, headers: tag ? { "If-Match": tag } : {} });
    at.notify(told);
    await reload();
  };
  const line = ({ field: name, set: value, stated, evidence }) => el("li", {},
    el("span.row", {}, el("strong", {}, NAMES[name] ?? name), el("ins", {}, shown(value)),
      el("span.muted", {}, "the sources state ", el("bdi", {}, shown(stated) || "nothing")),
      evidence && el("a", { href: linkTo("node", { id: node.id, evidence }) }, "Who set it, and why"),
      writes && button("Take back", guarded(at, problem,
        () => send({ clear: [name] }, "The sources have the word again.")),
      { "aria-label": `Take back the ${NAMES[name] ?? name}` })));
  return el("section.card", {}, el("h2", {}, "Set by hand"),
    set.length > 0 ? el("ul.ends", {}, set.map(line)) : el("p.muted", {}, "Nothing: it is as its sources state it."),
    problem,
    writes && el("div.row", {}, button("Correct", guarded(at, problem, async () => {
      const changes = await asked(node, at);
      if (changes) await send(changes, "The node is corrected.");
    }))));
}

/** A value, as one reads it. */
function shown(value) {
  if (Array.isArray(value)) return value.join(", ");
  if (value === null || typeof value !== "object") return String(value);
  return [...value.add.map((alias) => `+ ${alias}`), ...value.remove.map((alias) => `− ${alias}`)].join(", ");
}

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** Asks what is to be set; gives what differs from the node, or nothing. */
async function asked(node, at) {
  const aliases = node.properties.aliases ?? [];
  const inputs = {
    name: el("input", { type: "text", required: true, autocomplete: "off", value: node.name }),
    description: el("textarea", { rows: 6, value: node.description }),
    aliases: el("textarea", { rows: 4, value: aliases.join("\n") }),
    confidence: el("input", { type: "number", min: 0, max: 100, required: true, value: Math.round(node.confidence * 100) }),
    tlp: choice(MARKINGS.map((level) => [level, level]), node.tlp),
    status: choice(STATUSES, node.status),
    reason: el("input", { type: "text", maxlength: 2000, autocomplete: "off" }),
  };
  const form = el("div.stack", {}, field("Name", inputs.name), field("Description", inputs.description),
    field("Also known as", inputs.aliases, "One name per line."), field("Confidence in percent", inputs.confidence),
    field("Marking", inputs.tlp, "Only administrators may set a weaker one."), field("Status", inputs.status),
    field("Reason", inputs.reason));
  const answer = await ask("Correct the node", form, [["", "Cancel"], ["save", "Save", "primary"]], at.signal);
  if (answer !== "save") return null;
  const names = lines(inputs.aliases.value);
  const add = names.filter((alias) => !aliases.includes(alias));
  const remove = aliases.filter((alias) => !names.includes(alias));
  const percent = Number(inputs.confidence.value);
  const changes = {
    ...(inputs.name.value.trim() !== node.name && { name: inputs.name.value.trim() }),
    ...(inputs.description.value !== node.description && { description: inputs.description.value }),
    ...((add.length > 0 || remove.length > 0) && { aliases: { add, remove } }),
    ...(percent !== Math.round(node.confidence * 100) && { confidence: percent / 100 }),
    ...(inputs.tlp.value !== node.tlp && { tlp: inputs.tlp.value }),
    ...(inputs.status.value !== node.status && { status: inputs.status.value }),
  };
  if (Object.keys(changes).length === 0) return null;
  const reason = inputs.reason.value.trim();
  return { ...changes, ...(reason && { reason }) };
}

/** A button that rejects a relationship or a record once somebody has said why, or restores a rejected one. */
export function rejection(what, send, at, problem, reload, isRejected = false) {
  if (!may("recall:write")) return null;
  const [verb, style, status, done] = isRejected
    ? ["Restore", "primary", "active", "It is restored."] : ["Reject", "danger", "rejected", "It is rejected."];
  return button(verb, guarded(at, problem, async () => {
    const reason = el("input", { type: "text", maxlength: 2000, autocomplete: "off" });
    const answer = await ask(`${verb} ${what}?`, el("div.stack", {}, field("Reason", reason)),
      [["", "Cancel"], ["yes", verb, style]], at.signal);
    if (answer !== "yes") return;
    const text = reason.value.trim();
    await send({ status, ...(text && { reason: text }) });
    at.notify(done, "good");
    await reload();
  }), { "aria-label": `${verb} ${what}` });
}
