// The review of a feed's batch, page by page.

import { isAbort } from "../lib/client.js";
import { el, fill } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { ask, badge, button, choice, field, when } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { Frame } from "./frame.js";
import { batchFacts, batchTitle, commitResult } from "./head.js";
import { unlessMissing } from "./missing.js";
import { follow } from "./pull.js";
import * as part from "./row.js";

const ITEMS = ["item", "items"];
const STATES = ["pending", "accepted", "rejected", "committed"];
const VERDICTS = [["accepted", "Accept"], ["rejected", "Reject"]];
const PAGE_SIZES = [50, 100, 500];
const UNMARKED = "states no marking";

/** Shows the batch that the URL names. */
export async function showItems(api, root, at) {
  const id = at.params.get("id");
  if (!id) {
    const list = el("a", { href: linkTo("feeds", { tab: "batches" }) }, "List the batches");
    fill(root, emptiness("No batch is chosen", list, "."));
    return;
  }
  fill(root, el("p.muted", { role: "status" }, "Loading the batch …"));
  await new ItemReview(api, root, at, id).show();
}

class ItemReview {
  /** Items by their ids and by their STIX ids, as far as pages were read. */
  #known = new Map();
  /** The starts of the pages before the shown one. */
  #before = [];
  #feed = null;

  constructor(api, root, at, id) {
    Object.assign(this, { api, root, at, id, body: el("div") });
    this.status = at.params.get("status") ?? "";
    this.after = at.params.get("after") ?? "";
    this.size = PAGE_SIZES.find((size) => String(size) === at.params.get("size")) ?? 100;
    this.frame = new Frame(at, {
      things: ITEMS,
      verdicts: VERDICTS,
      keys: [["d", "details", ({ kept }) => { kept.details.open = !kept.details.open; }]],
      more: [button("Commit them at once …", () =>
        this.frame.keep(() => this.#commit(this.frame.decisions.chosen)))],
      content: (row, name) => this.#content(row, name),
      latest: (item) => this.#known.get(item.id) ?? item,
      send: async (item, change) => (await api.decideFeedItem(id, item.id, change, { signal: at.signal })).item,
      changed: (before, item) => this.#changed(before, item),
    });
    const sizes = choice(PAGE_SIZES, this.size, { onchange: () => {
      this.size = Number(sizes.value);
      this.#begin();
    } });
    this.list = this.frame.list("Items", field("Per page", sizes));
    this.pulling = el("span.muted", { role: "status" });
    this.resume = this.frame.button("Resume", () => this.#resume());
    this.commit = this.frame.button("Commit", () => this.#commit(null), { class: "primary" });
    fill(this.frame.actions, el("a", { href: linkTo("feeds", { tab: "batches" }) }, "All batches"), this.pulling,
      this.frame.button("Load again", () => this.#load()), this.resume, this.commit);
  }

  async show() {
    const all = el("a", { href: linkTo("feeds", { tab: "batches" }) }, "List the batches");
    const answer = await unlessMissing(this.#read(), this.root, all);
    if (!answer) return;
    const source = answer.batch.feed_source_id;
    // Without its feed's name, the batch can still be reviewed.
    const named = source && await this.api.feed(source, { signal: this.at.signal }).catch(() => null);
    this.#feed = named?.feed ?? null;
    fill(this.root, el("div.stack", {}, this.frame.head, this.frame.result, this.body));
    this.#draw(answer);
    await this.#follow();
  }

  #read() {
    const query = { status: this.status, after: this.after, limit: this.size };
    return this.api.feedBatch(this.id, query, { signal: this.at.signal });
  }

  async #load() {
    fill(this.frame.result);
    this.at.keep({ id: this.id, status: this.status, after: this.after, size: this.size });
    try {
      this.#draw(await this.#read());
    } catch (error) {
      this.frame.failed(error, () => this.#load());
    }
  }

  async #follow() {
    if (this.batch.status !== "pulling") return;
    const read = () => this.api.feedBatch(this.id, { limit: 1 }, { signal: this.at.signal });
    const seen = ({ batch }) => {
      this.batch = batch;
      this.#drawHead();
    };
    try {
      await follow(read, seen, this.at.signal);
      if (!this.at.signal.aborted) await this.#pulled();
    } catch (error) {
      this.frame.failed(error, () => { fill(this.frame.result); this.#follow(); });
    }
  }

  /** Shows what a pull has brought, unless somebody is deciding on the items that are shown. */
  #pulled() {
    const { chosen, element } = this.frame.decisions;
    if (chosen.length === 0 && !element.contains(document.activeElement)) return this.#load();
    return fill(this.frame.result, el("div.notice", {}, "The pull has ended. ",
      this.frame.button("Show its items", () => this.#load())));
  }

  #draw({ batch, items, next }) {
    this.batch = batch;
    for (const item of items) this.#known.set(item.id, item).set(item.stix_id, item);
    this.#drawHead();
    if (batch.item_count === 0 && items.length === 0) {
      fill(this.body, this.#nothing());
      return;
    }
    if (!this.list.isConnected) fill(this.body, this.list);
    const turn = (before, after) => () => {
      Object.assign(this, { after });
      this.#before = before;
      return this.#load();
    };
    const before = this.#before;
    this.frame.show(items, `${count(items.length, ...ITEMS)} shown`, [
      this.after !== "" && ["First", () => this.#begin()],
      before.length > 0 && ["Previous", turn(before.slice(0, -1), before.at(-1))],
      next && ["Next", turn([...before, this.after], next)],
    ]);
  }

  #nothing() {
    if (this.batch.status === "pulling") return emptiness("Nothing is staged yet", "The pull is still running.");
    return emptiness("Nothing is staged", "There was nothing new that can become a node. ",
      el("a", { href: linkTo("feeds") }, "Back to the feeds"));
  }

  /** Goes to the first page of a filter. */
  #begin(status = this.status) {
    Object.assign(this, { status, after: "" });
    this.#before = [];
    return this.#load();
  }

  #drawHead() {
    const { batch } = this;
    fill(this.frame.title, batchTitle(batch, this.#feed));
    fill(this.frame.about, batchFacts(batch));
    const text = batch.status === "pulling" ? "Pulling …" : "";
    if (this.pulling.textContent !== text) this.pulling.textContent = text;
    this.resume.hidden = batch.status !== "failed" || batch.input_kind === "stix_bundle";
    this.#drawCounts();
  }

  #drawCounts() {
    const { batch } = this;
    this.commit.hidden = batch.accepted === 0;
    this.commit.textContent = `Commit ${count(batch.accepted, "accepted item")} …`;
    this.frame.offer(STATES.map((state) => [state, batch[state]]), batch.item_count, this.status,
      (state) => this.#begin(state));
  }

  #content(row, name) {
    const item = row.item;
    const isUnmarked = item.warnings.some((text) => text.startsWith(UNMARKED));
    row.kept.details ??= this.#details(item);
    return [
      el("div.decision-main", {},
        el("div.decision-title", {}, badge(item.stix_type), el("h3", { id: name }, this.#title(item)),
          item.change === "update" && badge("update", "accent", "A newer version of what is stored or staged."),
          part.stateBadge(item.status), part.remarked(item)),
        part.facts(["modified ", when(item.modified)], isUnmarked && "without a marking: the feed's is proposed"),
        part.warnings(item.warnings.filter((text) => !text.startsWith(UNMARKED))), part.candidates(row),
        row.kept.details),
      el("div.decision-side", {},
        part.marking(row, async (of, level) => await of.decide({ resolved_tlp: level }) === null),
        !part.isLocked(item) && part.verdicts(row, VERDICTS)),
    ];
  }

  /** A relationship is named after its ends, as far as their names are known. */
  #title(item) {
    if (!item.source_ref) return item.name || item.stix_id;
    const end = (id) => this.#known.get(id)?.name ?? id;
    return [end(item.source_ref), el("span.muted", {}, ` ${item.name} `), end(item.target_ref)];
  }

  /** The object, read when it is first opened. */
  #details(item) {
    const inner = el("div", { role: "status" });
    const made = el("details", {}, el("summary", { "data-act": "details" }, "Object"), inner);
    made.addEventListener("toggle", async () => {
      if (!made.open || made.dataset.read) return;
      made.dataset.read = "yes";
      fill(inner, el("p.muted", {}, "Loading …"));
      try {
        const { item: whole } = await this.api.feedItem(this.id, item.id, { signal: this.at.signal });
        fill(inner, el("pre.object", { tabindex: 0, "aria-label": `Object of ${item.name}` },
          JSON.stringify(whole.object, null, 2)));
      } catch (error) {
        delete made.dataset.read;
        if (!isAbort(error)) fill(inner, failure(error));
      }
    });
    return made;
  }

  /** The counts of the batch follow from the change; they are not read again for each decision. */
  #changed(before, item) {
    this.batch[before.status] -= 1;
    this.batch[item.status] += 1;
    this.#known.set(item.id, item).set(item.stix_id, item);
    this.#drawCounts();
    this.frame.many.update();
  }

  async #resume() {
    fill(this.frame.result, el("p.muted", {}, "Resuming …"));
    try {
      const answer = await this.api.resumeFeedBatch(this.id, { signal: this.at.signal });
      fill(this.frame.result);
      this.#draw(answer);
      await this.#follow();
    } catch (error) {
      await this.#load();
      this.frame.failed(error);
    }
  }

  /** Commits these items, or all accepted ones. */
  async #commit(items) {
    const [pending, rejected] = ["pending", "rejected"].map((state) =>
      items?.filter((item) => item.status === state).length ?? 0);
    if (rejected > 0) {
      this.at.notify(`${count(rejected, "selected item is", "selected items are")} rejected: leave them out.`, "bad");
      return;
    }
    const many = items?.length ?? this.batch.accepted;
    const text = el("p", {}, count(many, "item becomes a node or a relationship.", "items become nodes and relationships."),
      pending > 0 && ` ${count(pending, "is", "are")} still pending: the commit approves what it names.`);
    const buttons = [["", "Cancel"], ["commit", "Commit", "primary"]];
    if (await ask("Commit?", text, buttons, this.at.signal) !== "commit") return;
    const ids = items?.map((item) => item.id);
    const answer = await this.frame.commit(count(many, ...ITEMS),
      () => this.api.commitFeedBatch(this.id, ids, { signal: this.at.signal }), () => this.#load());
    if (!answer) return;
    await this.#load();
    if (this.frame.decisions.many === 0) await this.#begin("");
    this.frame.committed(commitResult(answer.results, (id) => {
      const item = this.#known.get(id);
      return item ? this.#title(item) : id;
    }));
  }
}
