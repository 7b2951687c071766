// The graph view: what is asked for, the picture and its list, the details.

import { debounced, el, fill } from "../lib/dom.js";
import { ApiError } from "../lib/client.js";
import { count, number } from "../lib/format.js";
import { button, choice, field, tabs } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";
import { Legend } from "./legend.js";
import { List } from "./list.js";
import { Panel } from "./panel.js";
import { MOST_NODES, Picture, meaning } from "./picture.js";
import { Stage } from "./stage.js";
import { typeName } from "./types.js";

/** With more notes than this, entities that share one are linked instead. */
const MANY_NOTES = 60;
const MOST_TRIES = 3;
const DEPTHS = { 1: "1 step", 2: "2 steps", 3: "3 steps" };

export class GraphView {
  #source;
  #root;
  #at;
  #picture = new Picture();
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
  #status = el("p.graph-status", { role: "status" });
  #said = el("p.unseen", { role: "status" });
  #message = el("div");
  #work = el("div.graph-work");
  #canvas = el("canvas.graph-canvas", {
    tabindex: 0, role: "application", "aria-roledescription": "graph", "aria-label": "Picture of the graph",
    "aria-describedby": "graph-keys",
  });
  #find = el("input", { type: "search", autocomplete: "off", spellcheck: "false", maxlength: 300 });

  constructor(source, root, at) {
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

  /** Loads the picture that the URL asks for. */
  async start() {
    const { around, depth } = this.#wish;
    fill(this.#status, "Loading …");
    try {
      const part = await this.#source.start({ around, depth }, this.#options);
      this.#total = part.total ?? 0;
      this.#truncated = Boolean(part.truncated);
      this.#picture.add(part);
      this.#hide();
      this.#changed(1);
      const centre = this.#picture.nodes.get(around);
      if (centre) {
        this.#legend.allow(centre.type);
        if (!this.#source.whole) this.#expanded(centre, part);
        this.#select(centre);
      }
      if (this.#find.value.trim() !== "") await this.#seek();
    } catch (error) {
      if (this.#at.signal.aborted) return;
      this.#failed(error);
    }
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
      form.append(el("a.button", { href: linkTo("graph") }, whole ? "Whole graph" : "New picture"));
    }
    return form;
  }

  #frame() {
    const tool = (text, label, action) =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
    this.#release = el("button", { type: "button", hidden: true, onclick: () => this.#stage.release() }, "Release all");
    return el("div.graph-frame", {},
      this.#canvas,
      el("div.graph-tools", {},
        tool("+", "Zoom in", () => this.#stage.bigger()),
        tool("−", "Zoom out", () => this.#stage.smaller()),
        tool("Fit", "Fit everything", () => this.#stage.fit()),
        this.#release),
      el("p.hint.graph-keys", { id: "graph-keys" },
        "Scroll or pinch to zoom, drag to move, click for details. ",
        el("span.graph-keyboard", {},
          "Keys: arrows, + − 0, N and P for the next and the previous node, Enter for details.")));
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
      remove: (node) => { this.#select(null); this.#picture.remove(node); this.#changed(.2); },
      close: () => { this.#select(null); this.#canvas.focus(); },
      learnt: (node, { node: read, neighbours }) => {
        this.#picture.add({ nodes: [read], edges: neighbours.map(({ edge }) => edge) }, node);
        this.#changed(.05);
      },
    };
  }

  #add(part, near) {
    const { added, refused } = this.#picture.add(part, near);
    if (refused > 0) {
      this.#at.notify(`The picture is full: it holds ${number(MOST_NODES)} nodes. `
        + "Remove some, or look at one neighbourhood only.", "bad");
    }
    this.#changed(added.length > 0 ? .45 : .05);
    return added;
  }

  async #expand(node) {
    const notes = !this.#picture.hidden.has("note");
    try {
      let added = [];
      // What comes first may all be in the picture already.
      for (let tries = 0; added.length === 0 && !node.complete && tries < MOST_TRIES; tries += 1) {
        const part = await this.#source.expand(node.id, node.steps ?? 0, notes, this.#options);
        added = this.#add(part, node).filter((other) => this.#picture.shows(other));
        this.#expanded(node, part);
      }
      this.#panel.again();
      this.#at.notify(added.length > 0 ? `${count(added.length, "node")} added around ${node.label}.`
        : `Nothing new around ${node.label}.`);
    } catch (error) {
      if (!this.#at.signal.aborted) this.#at.notify(error.message, "bad");
    }
  }

  /** Notes how much of what is around a node is in the picture. */
  #expanded(node, part) {
    node.steps = (node.steps ?? 0) + 1;
    if (!part.truncated) node.complete = true;
  }

  #select(node) {
    this.#picture.selected = node;
    this.#panel.show(node);
    this.#stage.redraw();
    if (node) this.#say(node);
  }

  #say(node) {
    const near = node.near ?? [];
    const first = near.slice(0, 3).map((link) =>
      `${meaning(link)}: ${(link.source === node ? link.target : link.source).label}`);
    fill(this.#said, `${node.label}, ${typeName(node.type)}, ${count(near.length, "link")}. ${first.join("; ")}`);
  }

  #walk(steps) {
    const { nodes } = this.#picture.shown;
    const among = this.#matches.length > 0 ? this.#matches : nodes;
    if (among.length === 0) return;
    const place = among.indexOf(this.#picture.selected);
    const next = place < 0 ? (steps > 0 ? 0 : among.length - 1) : (place + steps + among.length) % among.length;
    this.#select(among[next]);
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
  async #seek() {
    const text = this.#find.value.trim();
    this.#filter();
    if (text === "") return;
    if (this.#matches.length > 0 && this.#source.whole) this.#walk(1);
    else await this.#ask(text);
  }

  async #ask(text) {
    fill(this.#status, `Searching for “${text}” …`);
    try {
      const part = await this.#source.find(text, !this.#picture.hidden.has("note"), this.#options);
      const alone = this.#picture.nodes.size === 0;
      for (const { type } of part.nodes) this.#legend.allow(type);
      this.#asked = { text, alone, ids: part.nodes.map(({ id }) => id) };
      const added = this.#add(part, null);
      if (part.nodes.length === 0) return;
      const found = count(part.nodes.length, "node");
      this.#at.notify(`${found} found, ${number(added.length)} of them new in the picture.`);
      if (alone) this.#stage.fit();
      const first = this.#picture.nodes.get(part.nodes[0].id);
      if (first) this.#select(first);
      if (first && !alone) this.#stage.centre(first);
    } catch (error) {
      if (!this.#at.signal.aborted) this.#failed(error, () => this.#ask(text));
    }
  }

  /** What is hidden at first: as the URL says; and notes, where there are many. */
  #hide() {
    const { types, notes } = this.#wish;
    const present = this.#picture.types();
    const unwanted = ([type]) => types && type !== "note" && !types.includes(type);
    for (const [type] of present.filter(unwanted)) this.#picture.hidden.add(type);
    const all = new Map(present);
    const many = (all.get("note") ?? 0) > MANY_NOTES && all.size > 1;
    if (notes === "no" || (notes === null && many)) this.#picture.hidden.add("note");
    if (notes === "yes") this.#picture.hidden.delete("note");
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

  /** What is shown, and what of it was found. */
  #summary(text, asked) {
    const { nodes, links } = this.#picture.shown;
    return [
      `${count(nodes.length, "node")} and ${count(links.length, "link")} shown. `,
      links.some(({ together }) => together) && "Dashed links: in the same note. ",
      text !== "" && `${number(this.#matches.length)} ${asked ? "found for" : "with"} “${text}”. `,
      this.#truncated && this.#source.whole && this.#left(),
      text !== "" && this.#source.whole && !asked
        && button("Search the whole graph", () => this.#ask(text), { class: "link" }),
    ];
  }

  #left() {
    const kind = this.#wish.around ? "nearest, best connected ones first," : "best connected ones";
    return `These are the ${number(this.#picture.nodes.size)} ${kind} of ${number(this.#total)} nodes; `
      + "search or expand to see more. ";
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
