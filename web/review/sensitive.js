// Entities whose text asks for a stricter marking than they have: they are taken only by a decision on that.

import { el } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { ask, tlp } from "../lib/parts.js";
import { isSensitive, levelOf } from "./row.js";

const ENTITIES = ["entity", "entities"];
const TAKEN = ["accepted", "merged"];

/** Whether a decision takes an entity in spite of a warning, while nobody has decided on its marking. */
export function isUnconfirmed(entity, decision) {
  return TAKEN.includes(decision.status) && !TAKEN.includes(entity.status) && entity.warnings.some(isSensitive)
    && !decision.resolved_tlp && !entity.resolved_tlp && !decision.accept_marking;
}

/** Those of the entities that are taken and have such a warning, by name, with their marking and its reasons. */
export function sensitiveList(entities) {
  return el("ul.warnings", {}, entities.map((entity) => el("li.sensitive", {}, el("strong", {}, entity.name), " as ",
    tlp(levelOf(entity)), ": ", entity.warnings.filter(isSensitive).join("; "))));
}

/**
 * Asks whether to take entities as they are marked. Resolves to `all`, to `rest` if the other ones alone are to be
 * decided on (offered if there are any), or to `""`.
 */
export function askToTake(entities, rest, signal) {
  const content = el("div", {},
    el("p", {}, "Their text asks for a stricter marking than they have. To change it, cancel and choose another one."),
    sensitiveList(entities));
  const others = rest > 0 && ["rest", `Only the other ${count(rest, ...ENTITIES)}`];
  const buttons = [["", "Cancel"], others, ["all", "Take as marked", "danger"]].filter(Boolean);
  return ask(`Take ${count(entities.length, ...ENTITIES)} as marked?`, content, buttons, signal);
}
