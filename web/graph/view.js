// The graph view: what is asked for, the picture and its list, the details.

import { debounced, el, fill } from "../lib/dom.js";
import { ApiError } from "../lib/client.js";
import { count, number } from "../lib/format.js";
import { button, choice, field, tabs } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { frame } from "./frame.js";
import { Legend } from "./legend.js";
import { List } from "./list.js";
import { Panel } from "./panel.js";
import { MOST_NODES, Picture } from "./picture.js";
import { Stage } from "./stage.js";
import { findings, outcome, spoken, summary } from "./words.js";

const MOST_TRIES = 3;
const DEPTHS = { 1: "1 step", 2: "2 steps", 3: "3 steps" };

export class GraphView {
  #source;
  #root;
  #at;
  #picture;
  #stage;
  #legend;
  #list;
  #panel;
  #tabs;
  #wish;
  #matches = [];
  /** What the service found last: nodes that need not have the text in their names. */
  #asked = null;
  #total = 0;
  #truncated = false;
  #left;
  /** What the picture began with by itself; a search takes its place. */
  #begun = null;
  /** The node of which to say more once its details have arrived. */
  #unsaid = null;
  #status = el("p.graph-status", { role: "status" });
  #said = el("p.unseen", { role: "status" });
  #message = el("div");
  #work = el("div.graph-work");
  #canvas = el("canvas.graph-canvas", {
    tabindex: 0, role: "application", "aria-roledescription": "graph", "aria-label": "Picture of the graph",
    "aria-describedby": "graph-keys",
  });
  #find = el("input", { type: "search", autocomplete: "off", spellcheck: "false" });

  /** @param {Object|null} left What the last visit of this entry of the history left behind: see `leave`. */
  constructor(source, root, at, left) {
    this.#left = left;
    this.#picture = left?.picture ?? new Picture();
    this.#source = source;
    this.#root = root;
    this.#at = at;
    const { params } = at;
    const depth = Number(params.get("depth"));
    this.#wish = {
      around: params.get("around") ?? "",
      depth: source.depths.includes(depth) ? depth : source.depths.at(1) ?? 1,
      types: params.get("types")?.split(",").filter(Boolean) ?? null,
      notes: params.get("notes"),
    };
    this.#find.value = params.get("q") ?? "";
    this.#make();
  }

  /** Loads the picture that the URL asks for, unless it is still there. */
  async start() {
    if (this.#left) return void this.#resume(this.#left);
    const { around, depth } = this.#wish;
    fill(this.#status, "Loading …");
    try {
      const isSearched = this.#find.value.trim() !== "";
      const fresh = isSearched || this.#at.params.has("new");
      const part = await this.#source.start({ around, depth, fresh }, this.#options);
      this.#begun = part.begun ?? null;
      this.#total = part.total ?? 0;
      this.#truncated = Boolean(part.truncated);
      this.#picture.add(part);
      this.#picture.hideAsAsked(this.#wish);
      this.#changed(1);
      const centre = this.#picture.nodes.get(around);
      if (centre) {
        if (!this.#wish.types) this.#legend.allow(centre.type);
        if (!this.#source.whole) this.#expanded(centre, part);
        this.#select(centre);
      }
      if (this.#find.value.trim() !== "") await this.#seek(true);
    } catch (error) {
      if (this.#at.signal.aborted) return;
      this.#failed(error);
    }
  }

  /** What a later visit can go on with. */
  leave() {
    if (this.#picture.nodes.size === 0) return null;
    this.#picture.hovered = null;
    return {
      picture: this.#picture, begun: this.#begun, asked: this.#asked, total: this.#total, truncated: this.#truncated,
      notesChosen: this.#legend.notesChosen, place: this.#stage.place, tab: this.#pictured ? "picture" : "list",
    };
  }

  #resume({ begun, asked, total, truncated, notesChosen, place, tab }) {
    this.#begun = begun;
    this.#asked = asked;
    this.#total = total;
    this.#truncated = truncated;
    this.#legend.notesChosen = notesChosen;
    this.#changed(place.moving ? .3 : 0);
    this.#stage.resume(place);
    this.#select(this.#picture.selected);
    this.#tabs.choose(tab);
  }

  /** Whether the picture is shown, not the list. */
  get #pictured() {
    return this.#canvas.checkVisibility();
  }

  get #options() {
    return { signal: this.#at.signal };
  }

  #make() {
    this.#legend = new Legend(this.#picture, (type) => {
      this.#changed(.4);
      if (type === "note") this.#stage.fit();
      this.#panel.again();
      this.#keep();
    });
    this.#list = new List(this.#picture, {
      select: (node) => { this.#select(node); this.#list.again(); this.#panel.focus(); },
      close: (node) => this.#close(node),
      find: (node) => {
        this.#tabs.choose("picture");
        this.#select(node);
        this.#stage.centre(node);
        this.#canvas.focus();
      },
    });
    this.#panel = new Panel(this.#source, this.#acts(), this.#at.signal);
    this.#tabs = tabs("Graph as", [
      { id: "picture", title: "Picture", show: (panel) => fill(panel, this.#frame()) },
      { id: "list", title: "List", show: (panel) => { fill(panel, this.#list.root); this.#list.show(); } },
    ]);
    fill(this.#work, this.#legend.root, el("div.graph-parts", {}, this.#tabs, this.#panel.root));
    fill(this.#root, this.#toolbar(), this.#message, this.#status, this.#said, this.#work);
    this.#stage = new Stage(this.#canvas, this.#picture, {
      signal: this.#at.signal,
      select: (node) => this.#select(node),
      walk: (steps) => this.#walk(steps),
      open: () => this.#panel.focus(),
      pinned: () => { this.#panel.again(); this.#pins(); },
    });
  }

  #toolbar() {
    const { whole, depths } = this.#source;
    const typed = debounced(200, () => { this.#filter(); this.#keep(); });
    this.#find.addEventListener("input", typed);
    const form = el("form.toolbar", { role: "search" },
      el("div.grow", {}, field(whole ? "Find in the graph" : "Search", this.#find)),
      el("button", { class: whole ? "" : "primary" }, whole ? "Find" : "Search"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#keep();
      this.#seek();
    });
    if (this.#wish.around) {
      if (depths.length > 1) {
        const depth = choice(depths.map((of) => [of, DEPTHS[of]]), this.#wish.depth);
        depth.addEventListener("change", () => this.#at.go("graph", { ...this.#kept(), depth: depth.value }));
        form.append(field("Reach", depth));
      }
      form.append(el("a.button", { href: linkTo("graph", whole ? {} : { new: "yes" }) }, whole ? "Whole graph" : "New picture"));
    }
    return form;
  }

  #frame() {
    this.#release = el("button", { type: "button", hidden: true,
      onclick: () => { this.#stage.release(); this.#canvas.focus(); } }, "Release all");
    return frame(this.#canvas, {
      bigger: () => this.#stage.bigger(), smaller: () => this.#stage.smaller(), fit: () => this.#stage.fit(),
    }, this.#release);
  }

  #release;

  #acts() {
    return {
      visit: (node, edge, from) => {
        this.#legend.allow(node.type);
        if (edge) this.#add({ nodes: [node], edges: [edge] }, from);
        const shown = this.#picture.nodes.get(node.id);
        if (!shown) return;
        this.#select(shown);
        this.#stage.centre(shown);
      },
      expand: (node) => this.#expand(node),
      isExpandable: (node) => this.#picture.isExpandable(node),
      isCentre: (node) => node.id === this.#wish.around,
      only: (node) => this.#at.go("graph", { around: node.id }),
      release: (node) => this.#stage.release(node),
      remove: (node) => {
        this.#picture.remove(node);
        this.#changed(.2);
        this.#close(node);
      },
      close: (node) => this.#close(node),
      learnt: (node, details) => {
        node.opened = true;
        this.#picture.add({ nodes: [details.node], edges: details.neighbours.map(({ edge }) => edge) }, node);
        this.#changed(.05);
        if (this.#unsaid === node) this.#say(node, details);
      },
    };
  }

  /** Closes the details and leads back to where one came from. */
  #close(node) {
    this.#select(null);
    this.#list.again();
    if (this.#pictured) this.#canvas.focus();
    else if (!this.#list.focus(node)) this.#tabs.querySelector("[aria-selected=true]").focus();
  }

  #add(part, near, restored = false) {
    const { added, refused } = this.#picture.add(part, near);
    if (restored) this.#picture.hideAsAsked(this.#wish);
    if (refused > 0) {
      this.#at.notify(`The picture is full: it holds ${number(MOST_NODES)} nodes. `
        + "Remove some, or look at one neighbourhood only.", "bad");
    }
    this.#changed(added.length > 0 ? .45 : .05);
    return { added, refused };
  }

  async #expand(node) {
    const notes = !this.#picture.hidden.has("note");
    const came = { shown: 0, hidden: 0 };
    let part;
    let refused = 0;
    try {
      // What comes first may all be in the picture already.
      for (let tries = 0; came.shown + refused === 0 && !node.complete && tries < MOST_TRIES; tries += 1) {
        part = await this.#source.expand(node.id, node.steps ?? 0, notes, this.#options);
        const result = this.#add(part, node);
        for (const other of result.added) came[this.#picture.shows(other) ? "shown" : "hidden"] += 1;
        refused = result.refused;
        this.#expanded(node, part);
      }
      this.#panel.again();
      if (refused === 0) this.#at.notify(outcome(node.label, came, part));
    } catch (error) {
      if (!this.#at.signal.aborted) this.#at.notify(error.message, "bad");
    }
  }

  /** Notes how much of what is around a node is in the picture. */
  #expanded(node, part) {
    node.steps = (node.steps ?? 0) + 1;
    if (!part.truncated || part.last) node.complete = true;
  }

  #select(node, passing = false) {
    this.#picture.selected = node;
    this.#panel.show(node, passing);
    this.#stage.redraw();
    this.#unsaid = null;
    if (node) this.#say(node);
  }

  /** Says what a node is. Where its links are not known yet, the rest is said when its details arrive. */
  #say(node, details) {
    this.#unsaid = !details && !node.opened && !node.near?.length ? node : null;
    fill(this.#said, spoken(node, this.#unsaid === null, details));
  }

  #walk(steps) {
    const { nodes } = this.#picture.shown;
    const among = this.#matches.length > 0 ? this.#matches : nodes;
    if (among.length === 0) return;
    const place = among.indexOf(this.#picture.selected);
    const next = place < 0 ? (steps > 0 ? 0 : among.length - 1) : (place + steps + among.length) % among.length;
    this.#select(among[next], true);
    this.#stage.centre(among[next]);
  }

  #filter() {
    this.#mark();
    this.#stage.redraw();
    this.#list.show();
    this.#tell();
  }

  /** Marks what has the text, or what the service found for it. */
  #mark() {
    const text = this.#find.value.trim();
    if (this.#asked === null || this.#asked.text !== text) {
      this.#matches = this.#picture.find(text);
      return;
    }
    const found = this.#asked.ids.map((id) => this.#picture.nodes.get(id));
    this.#matches = found.filter((node) => node && this.#picture.shows(node));
    this.#picture.found = this.#asked.alone ? null : new Set(this.#matches);
  }

  /** Goes to the next node with the text; asks the service if the picture has none, or always where it grows. */
  async #seek(restored = false) {
    const text = this.#find.value.trim();
    this.#filter();
    if (text === "") return;
    if (this.#matches.length > 0 && this.#source.whole) this.#walk(1);
    else await this.#ask(text, restored);
  }

  /** Asks the service. The types of what it finds are shown, unless the URL, which is `restored`, says which are. */
  async #ask(text, restored = false) {
    fill(this.#status, `Searching for “${text}” …`);
    try {
      const part = await this.#source.find(text, !this.#picture.hidden.has("note"), this.#options);
      if (this.#begun !== null) for (const node of [...this.#picture.nodes.values()]) this.#picture.remove(node);
      this.#begun = null;
      const alone = this.#picture.nodes.size === 0;
      const bound = restored && this.#wish.types !== null;
      if (!bound) for (const { type } of part.nodes) this.#legend.allow(type);
      this.#asked = { text, alone, ids: part.nodes.slice(0, part.found).map(({ id }) => id) };
      const { added } = this.#add(part, null, restored);
      if (part.nodes.length === 0) return;
      this.#at.notify(findings(part, added.length));
      if (alone) this.#stage.fit();
      const first = this.#picture.nodes.get(part.nodes[0].id);
      if (first && part.around) this.#expanded(first, part.around);
      if (first) this.#select(first);
      if (first && !alone) this.#stage.centre(first);
    } catch (error) {
      if (!this.#at.signal.aborted) this.#failed(error, () => this.#ask(text, restored));
    }
  }

  #changed(heat) {
    this.#stage.changed(heat);
    this.#mark();
    this.#legend.show();
    this.#list.again();
    this.#pins();
    this.#tell();
  }

  #pins() {
    const nodes = [...this.#picture.nodes.values()];
    if (this.#release) this.#release.hidden = !nodes.some(({ fx }) => typeof fx === "number");
  }

  #tell() {
    const empty = this.#picture.nodes.size === 0;
    this.#work.hidden = empty;
    fill(this.#message, empty && emptiness(this.#source.empty, this.#source.next()));
    const text = this.#find.value.trim();
    const asked = this.#asked?.text === text;
    const unknown = asked && this.#asked.ids.length === 0;
    fill(this.#status, !empty && !unknown && this.#summary(text, asked), unknown && [
      `The service knows no node for “${text}”. `,
      this.#source.whole && el("a", { href: linkTo("search", { q: text }) }, "Search the notes"),
    ]);
  }

  #summary(text, asked) {
    const { whole } = this.#source;
    const around = this.#wish.around !== "";
    const total = whole && this.#truncated ? this.#total : 0;
    return [
      this.#begun !== null && `${this.#begun}: `,
      summary(this.#picture, { text, asked, whole, around, total, matches: this.#matches.length }),
      text !== "" && whole && !asked
        && button("Search the whole graph", () => this.#ask(text).then(() => this.#find.focus()), { class: "link" }),
    ];
  }

  #failed(error, again = () => this.start()) {
    fill(this.#status);
    const lost = error instanceof ApiError && error.status === 404 && this.#wish.around !== "";
    this.#work.hidden = this.#picture.nodes.size === 0;
    fill(this.#message, lost
      ? emptiness("There is no such node.", `“${this.#wish.around}” is not in the graph. `,
        el("a", { href: linkTo("graph") }, "Show the graph"), ".")
      : failure(error, () => { this.#message.replaceChildren(); again(); }));
  }

  #kept() {
    const { around, depth } = this.#wish;
    const { hidden } = this.#picture;
    const present = this.#picture.types().map(([type]) => type).filter((type) => type !== "note");
    const all = present.every((type) => !hidden.has(type));
    const types = all ? "" : present.filter((type) => !hidden.has(type)).join(",") || "none";
    const notes = this.#legend.notesChosen ? (hidden.has("note") ? "no" : "yes") : this.#wish.notes;
    return { around, depth: around ? depth : "", q: this.#find.value.trim(), types, notes };
  }

  #keep() {
    this.#at.keep(this.#kept());
  }
}
