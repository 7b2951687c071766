// The review of a staging batch: what a text names, to be accepted, rejected or merged.

import { debounced, el, fill } from "../lib/dom.js";
import { count, number, percent } from "../lib/format.js";
import { reasonText, sourceName, typeName } from "../lib/nouns.js";
import { ask, badge, button, choice, field, when } from "../lib/parts.js";
import { emptiness, linkTo } from "../lib/shell.js";
import { forgetRead } from "./draft.js";
import { Frame } from "./frame.js";
import { chooseTarget } from "./merge.js";
import { unlessMissing } from "./missing.js";
import * as part from "./row.js";
import { askToTake, isUnconfirmed, sensitiveList } from "./sensitive.js";

const ENTITIES = ["entity", "entities"];
const STATES = ["pending", "accepted", "merged", "uncertain", "rejected", "committed"];
const VERDICTS = [["accepted", "Accept"], ["rejected", "Reject"], ["uncertain", "Unsure"]];
/** Shows common software apart. */
const DUAL_USE = "common software";
const PAGE_SIZES = [50, 200, 1000];

/** Shows a batch with its entities. */
export async function showBatch(api, root, at, id) {
  fill(root, el("p.muted", { role: "status" }, "Loading the batch …"));
  const next = el("a", { href: linkTo("review") }, "Read a text or open another batch");
  const found = await unlessMissing(api.batch(id, { signal: at.signal }), root, next);
  if (found) new Review(api, root, at, found.batch, found.entities).show();
}

class Review {
  /** Names of the nodes that were chosen for a merge. */
  #names = new Map();
  #page = 0;
  #size = PAGE_SIZES[0];
  /** Warnings that every entity has. */
  #common = [];

  constructor(api, root, at, batch, entities) {
    Object.assign(this, { api, root, at, batch, entities });
    this.state = at.params.get("status") ?? "";
    this.text = at.params.get("q") ?? "";
    this.frame = new Frame(at, {
      things: ENTITIES,
      verdicts: VERDICTS,
      keys: [["m", "merge", (row) => { this.#merge(row); }]],
      confirm: (items, change) => this.#confirm(items, change),
      content: (row, name) => this.#content(row, name),
      latest: (entity) => this.entities.find(({ id }) => id === entity.id) ?? entity,
      send: (entity, change) => this.#send(entity, change),
      changed: (_, entity) => this.#changed(entity),
    });
  }

  show() {
    const { head, result } = this.frame;
    const text = el("input", { type: "search", value: this.text, placeholder: "Name or reason" });
    text.addEventListener("input", debounced(250, () => this.#filter({ text: text.value.trim() })));
    const size = choice(PAGE_SIZES, this.#size, { onchange: () => {
      this.#size = Number(size.value);
      this.#filter({});
    } });
    const list = this.entities.length === 0 ? this.#nothing()
      : this.frame.list("Entities", el("div.grow", {}, field("Filter", text)), field("Per page", size));
    this.commit = this.frame.button("Commit …", () => this.#commit(), { class: "primary" });
    const { session_id: session } = this.batch;
    fill(this.frame.actions,
      el("a", { href: linkTo("review", { session }), onclick: forgetRead },
        session ? "Add a text to the session" : "Read another text"),
      this.frame.button("Load again", () => this.#again()), this.commit);
    this.body = el("div", {}, list);
    fill(this.root, el("div.stack", {}, head, result, this.body));
    this.#drawHead();
    this.#drawList();
  }

  #nothing() {
    const title = this.batch.status === "committed" ? "Everything in this batch is decided" : "Nothing was found in this text";
    return emptiness(title, el("a", { href: linkTo("review"), onclick: forgetRead }, "Read another text"), ".");
  }

  #filter({ state = this.state, text = this.text, page = 0 }) {
    Object.assign(this, { state, text });
    this.#page = page;
    this.at.keep({ batch: this.batch.id, status: state, q: text });
    this.#drawCounts();
    this.#drawList();
  }

  #count(...states) {
    return this.entities.filter((entity) => states.includes(part.stateOf(entity))).length;
  }

  #drawHead() {
    const { batch } = this;
    this.#common = part.common(this.entities);
    fill(this.frame.title, badge(batch.status, batch.status === "open" ? "accent" : "good"),
      el("span", {}, sourceName(batch.source_type)), batch.session_id && badge(`session ${batch.session_id}`),
      el("span.muted", {}, "read ", when(batch.created_at),
        batch.committed_at && [", committed ", when(batch.committed_at)]));
    fill(this.frame.about, summary(batch.summary),
      part.warnings([...batch.warnings, ...this.#common.map((text) => `Each entity: ${text}`)]),
      el("p.hint", {}, "Batch ", el("code", {}, batch.id)));
    this.#drawCounts();
  }

  #drawCounts() {
    this.commit.hidden = this.#count("accepted", "merged", "rejected") === 0;
    const states = STATES.map((state) => [state, this.#count(state)]);
    states.push([DUAL_USE, this.entities.filter(part.hasDualUse).length]);
    this.frame.offer(states, this.entities.length, this.state, (state) => this.#filter({ state }));
  }

  #isOfState(entity) {
    if (this.state === DUAL_USE) return part.hasDualUse(entity);
    return this.state === "" || part.stateOf(entity) === this.state;
  }

  /** The entities that the filters let through, common software last. */
  #fitting() {
    const words = this.text.toLowerCase();
    const ordered = [...this.entities].sort((a, b) => part.hasDualUse(a) - part.hasDualUse(b));
    return ordered.filter((entity) => this.#isOfState(entity)
      && `${entity.name}\n${entity.node_type}\n${typeName(entity.node_type)}\n${entity.extraction_reasoning}`.toLowerCase().includes(words));
  }

  #drawList() {
    const fitting = this.#fitting();
    const from = this.#page * this.#size;
    const shown = fitting.slice(from, from + this.#size);
    const text = `${number(from + 1)} to ${number(from + shown.length)} of ${count(fitting.length, ...ENTITIES)}`;
    const turn = (step) => () => this.#filter({ page: this.#page + step });
    this.frame.show(shown, text, [from > 0 && ["Previous", turn(-1)],
      from + this.#size < fitting.length && ["Next", turn(1)]]);
  }

  #content(row, name) {
    const entity = row.item;
    const target = !entity.node_id && entity.merge_target_id;
    const merging = button("Merge …", () => this.#merge(row), { class: "verdict merged", "data-act": "merged",
      "aria-pressed": String(entity.status === "merged") });
    return [
      el("div.decision-main", {},
        el("div.decision-title", {}, badge(typeName(entity.node_type), `type-${entity.node_type}`),
          el("h3", { id: name, class: entity.node_type === "ioc" ? "mono" : "" }, entity.name),
          part.sensitive(entity), part.dualUse(entity), part.stateBadge(part.stateOf(entity)), part.remarked(entity)),
        entity.description && el("p", {}, entity.description),
        part.facts(`confidence ${percent(entity.proposed_confidence)}`, reasonText(entity.extraction_reasoning),
          entity.node_id && el("a", { href: linkTo("node", { id: entity.node_id }) }, "open the node")),
        target && el("p", {}, "Will be merged into ",
          el("a", { href: linkTo("node", { id: target }) }, this.#nameOf(entity, target))),
        part.warnings(entity.warnings.filter((text) => !this.#common.includes(text))),
        part.candidates(row, { merge: (of, node) => this.#mergeInto(of, node), compare: (of) => this.#merge(of) })),
      el("div.decision-side", {},
        part.marking(row, async (of, level) => await of.decide({ resolved_tlp: level }) === null),
        !part.isLocked(entity) && part.verdicts(row, VERDICTS, merging)),
    ];
  }

  #nameOf(entity, id) {
    return this.#names.get(id) ?? entity.duplicate_candidates.find((node) => node.node_id === id)?.name ?? id;
  }

  async #merge(row) {
    const node = await chooseTarget(this.api, row.item, this.at);
    if (node) await this.#mergeInto(row, node);
  }

  #mergeInto(row, node) {
    this.#names.set(node.node_id, node.name);
    return row.decide({ status: "merged", merge_target_id: node.node_id });
  }

  async #send(entity, change) {
    const body = { status: entity.status, ...change };
    if (body.status === "merged") body.merge_target_id ??= entity.merge_target_id;
    if (isUnconfirmed(entity, body)) {
      const answer = await askToTake([entity], 0, this.at.signal);
      if (answer !== "all") throw new DOMException("It was not confirmed.", "AbortError");
      body.accept_marking = true;
    }
    return (await this.api.decide(entity.id, body, { signal: this.at.signal })).entity;
  }

  #changed(entity) {
    const place = this.entities.findIndex((known) => known.id === entity.id);
    if (place >= 0) this.entities[place] = entity;
    this.#drawCounts();
    this.frame.many.update();
  }

  /** Many entities as they may be decided on, once it was asked about those with a sensitivity warning. */
  async #confirm(items, change) {
    const sensitive = items.filter((entity) => isUnconfirmed(entity, change));
    if (sensitive.length === 0) return { items, change };
    const others = items.filter((entity) => !sensitive.includes(entity));
    const answer = await askToTake(sensitive, others.length, this.at.signal);
    if (answer === "all") return { items, change: { ...change, accept_marking: true } };
    return answer === "rest" ? { items: others, change } : null;
  }

  async #again() {
    fill(this.frame.result);
    const before = new Set(this.entities);
    try {
      const { batch, entities } = await this.api.batch(this.batch.id, { signal: this.at.signal });
      // What was decided while the answer was under way is newer than the answer.
      const newer = new Map(this.entities.filter((entity) => !before.has(entity)).map((entity) => [entity.id, entity]));
      Object.assign(this, { batch, entities: entities.map((entity) => newer.get(entity.id) ?? entity) });
      if (this.entities.length === 0) fill(this.body, this.#nothing());
      this.#drawHead();
      this.#filter({});
    } catch (error) {
      this.frame.failed(error, () => this.#again());
    }
  }

  async #commit() {
    const [accepted, merged, rejected] = ["accepted", "merged", "rejected"].map((state) => this.#count(state));
    const left = this.#count("pending", "uncertain");
    const line = (many, one, more, text) => many > 0 && el("li", {}, `${count(many, one, more)} ${text}`);
    const sensitive = this.entities.filter((entity) => ["accepted", "merged"].includes(part.stateOf(entity))
      && entity.warnings.some(part.isSensitive));
    const outcome = el("ul", {},
      line(accepted, "accepted entity becomes a node, or adds", "accepted entities become nodes, or add",
        "to the one that is known."),
      line(merged, "entity becomes", "entities become", "evidence of a chosen node."),
      line(rejected, "rejected entity is", "rejected entities are", "discarded."),
      line(left, "undecided entity stays", "undecided entities stay", "and keeps the batch open."));
    const named = sensitive.length > 0 && el("div", {},
      el("p", {}, "The text asks for a stricter marking of:"), sensitiveList(sensitive));
    const buttons = [["", "Cancel"], ["commit", "Commit", "primary"]];
    if (await ask("Commit the decisions?", [outcome, named], buttons, this.at.signal) !== "commit") return;
    const answer = await this.frame.commit(count(accepted + merged + rejected, ...ENTITIES),
      () => this.api.commit(this.batch.id, { signal: this.at.signal }), () => this.#again());
    if (!answer) return;
    await this.#again();
    if (this.#fitting().length === 0) this.#filter({ state: "" });
    this.frame.committed(committed(answer.results));
  }
}

function summary(found) {
  return part.facts(`${count(found.total_parsed, ...ENTITIES)} found`, `${number(found.total_to_add)} new`,
    found.total_to_update > 0 && `${number(found.total_to_update)} known already`,
    found.duplicates > 0 && `${number(found.duplicates)} like a known node`,
    found.missing_tlp > 0 && `${number(found.missing_tlp)} without a marking`,
    found.sensitive_warns > 0 && `${number(found.sensitive_warns)} with a sensitivity warning`);
}

function committed(results) {
  const text = [`Committed: ${count(results.nodes_created, "node")} created`,
    `${number(results.nodes_updated)} updated`, `${number(results.merged)} merged`,
    count(results.evidence_created, "evidence record"), `${number(results.discarded)} discarded`].join(", ");
  const rest = results.remaining > 0
    ? `${count(results.remaining, "undecided entity keeps", "undecided entities keep")} the batch open.`
    : "Nothing is left to decide.";
  return el("div.notice.good", {}, el("p", {}, `${text}.`), el("p", {}, rest));
}
