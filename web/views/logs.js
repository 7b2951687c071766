// The log as it is written.

import { isAbort } from "../lib/client.js";
import { debounced, el, fill } from "../lib/dom.js";
import { count, moment, number } from "../lib/format.js";
import { liveness, throttled } from "../lib/live.js";
import { asText, LEVELS, listed, Log, streamed } from "../lib/loglines.js";
import { badge, button, choice, field } from "../lib/parts.js";
import { emptiness, failure, linkTo } from "../lib/shell.js";

const FIRST = 1000;
const KEPT = 5000;
const ROWS = 400;
/** Rows that stay in sight when the window moves. */
const OVERLAP = 5;
const DRAW_MS = 100;
const CHOICES = [["", "All"], ["debug", "Debug and above"], ["info", "Info and above"],
  ["warn", "Warnings and errors"], ["error", "Errors"]];
const KINDS = { error: "bad", warn: "warn", info: "accent" };

export const logs = (api) => ({
  id: "logs",
  title: "Logs",
  style: "logs.css",
  show(root, at) {
    const log = new Log(KEPT);
    const live = liveness();
    const screen = new Screen(log, at);
    const problem = el("div");
    fill(root, screen.toolbar, el("div.spread.log-line", {}, live.element, screen.line), problem, screen.frame);

    const drawSoon = throttled(DRAW_MS, at.signal, () => screen.grow());
    let waiting = [];
    const event = (text) => {
      if (waiting) return void waiting.push(streamed(text));
      log.add(streamed(text));
      screen.frame.hidden = false;
      drawSoon();
    };
    // Read once the stream is open, so that no line is lost between the two; again with the next stream if that failed.
    let isLoading = false;
    const load = async () => {
      isLoading = true;
      try {
        const page = await api.logs({ lines: FIRST }, { signal: at.signal });
        fill(problem, page.error && noLog(page.error));
        screen.frame.hidden = Boolean(page.error);
        log.open(page.logs.map(listed));
        waiting?.forEach((line) => log.add(line));
        waiting = null;
        screen.show(log.matching.length);
      } catch (error) {
        if (!isAbort(error)) fill(problem, failure(error, load));
      } finally {
        isLoading = false;
      }
    };
    let hasEnded = false;
    const follow = () => api.followLogs({ event, state, signal: at.signal });
    const state = (name, error) => {
      live.state(name, error);
      if (name === "ended") fill(problem, failure(error, follow));
      else if (hasEnded) fill(problem);
      hasEnded = name === "ended";
      if (name === "open" && waiting && !isLoading) load();
    };
    follow();
  },
});

function noLog(error) {
  return el("div.notice.warn", {}, el("p", {}, el("strong", {}, `${error}.`),
    " It is written if the memory is kept on disk and ", el("code", {}, "logging.file"), " is on (after a restart): ",
    "see the ", el("a", { href: linkTo("config") }, "configuration"),
    ". Until then the log is on the service's standard output."));
}

/** The controls, and a part of the matching lines. */
class Screen {
  #log;
  #at;
  #level = "";
  #text = "";
  #isPaused = false;
  /** Numbers of the first line in sight and of the last one that was. */
  #from = 0;
  #to = 0;
  #list = el("ol.log", {}, el("li.log-none", {}, "Waiting for the log …"));
  #summary = el("span.muted.number");
  #announced = el("span.unseen", { role: "status" });
  #pause = button("Pause", () => (this.#isPaused ? this.#newest() : this.#hold()));
  #earlier = button("Earlier", () => this.#back());
  #later = button("Later", () => this.#forth());
  #unseen = button("New lines below ↓", () => this.#newest(), { class: "primary log-unseen", hidden: true });

  constructor(log, at) {
    this.#log = log;
    this.#at = at;
    const given = at.params.get("level");
    this.#level = LEVELS.includes(given) ? given : "";
    this.#text = at.params.get("text") ?? "";
    log.filter(this.#level, this.#text);
    this.scroller = el("div.log-scroll", { tabindex: 0, role: "region", "aria-label": "Lines of the log" }, this.#list);
    this.scroller.addEventListener("scroll", () => {
      if (this.#unseen.hidden || !this.#isAtEnd()) return;
      this.#unseen.hidden = true;
      this.grow();
    }, { passive: true });
    this.#list.addEventListener("keydown", moved);
    this.frame = el("div.log-frame", {}, this.scroller, this.#unseen);
    this.line = el("div.row", {}, this.#summary, this.#announced, this.#earlier, this.#later);
    this.toolbar = this.#controls();
    this.#describe();
  }

  #controls() {
    const level = choice(CHOICES, this.#level, { onchange: () => { this.#level = level.value; this.#filter(); } });
    const filterSoon = debounced(250, () => this.#filter());
    const text = el("input", { type: "search", value: this.#text, autocomplete: "off", spellcheck: "false",
      oninput: () => { this.#text = text.value; filterSoon(); } });
    return el("div.toolbar", {}, field("Level", level), el("div.grow", {}, field("Text", text)), this.#pause);
  }

  #filter() {
    this.#log.filter(this.#level, this.#text);
    this.#at.keep({ level: this.#level, text: this.#text });
    this.#unseen.hidden = true;
    this.show(this.#log.matching.length);
    fill(this.#announced, count(this.#log.matching.length, "line"));
  }

  /** Shows the lines before a position among the matching ones. */
  show(end, isAtTop = false) {
    const lines = this.#log.matching.slice(Math.max(0, end - ROWS), end);
    this.#from = lines[0]?.number ?? this.#log.last;
    this.#to = lines.at(-1)?.number ?? this.#log.last;
    fill(this.#list, lines.length > 0 ? lines.map(row) : el("li.log-none", {}, this.#nothing()));
    this.#describe();
    this.scroller.scrollTop = isAtTop ? 0 : this.scroller.scrollHeight;
  }

  /** Adds the lines that came since, unless it is paused. */
  grow() {
    const fresh = this.#log.matching.slice(this.#log.after(this.#to));
    if (!this.#isPaused && fresh.length > 0) {
      const follows = this.#isAtEnd() && !this.#list.querySelector("details[open]");
      if (follows) this.#follow(fresh);
      else this.#append(fresh.slice(0, Math.max(0, 2 * ROWS - this.#list.children.length)));
      this.#unseen.hidden = follows;
    }
    this.#describe();
  }

  #follow(fresh) {
    if (fresh.length >= ROWS || this.#list.querySelector(".log-none")) return this.show(this.#log.matching.length);
    this.#append(fresh);
    while (this.#list.children.length > ROWS) this.#list.firstChild.remove();
    this.#from = Number(this.#list.firstChild.dataset.number);
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /** While somebody reads above, what is read stays. */
  #append(lines) {
    this.#list.append(...lines.map(row));
    this.#to = lines.at(-1)?.number ?? this.#to;
  }

  #hold() {
    this.#isPaused = true;
    this.#describe();
  }

  #newest() {
    this.#isPaused = false;
    this.#unseen.hidden = true;
    this.show(this.#log.matching.length);
  }

  #back() {
    this.#isPaused = true;
    this.show(this.#log.after(this.#from - 1) + OVERLAP);
  }

  #forth() {
    const end = Math.min(this.#log.matching.length, this.#log.after(this.#to) - OVERLAP + ROWS);
    this.show(end, true);
  }

  #isAtEnd() {
    return this.scroller.scrollTop + this.scroller.clientHeight >= this.scroller.scrollHeight - 12;
  }

  #nothing() {
    return this.#log.lines.length > 0
      ? "No line fits the filters."
      : "No lines yet. They appear here as they are written.";
  }

  #describe() {
    const { matching, lines } = this.#log;
    const [first, end] = [this.#log.after(this.#from - 1), this.#log.after(this.#to)];
    const which = end > first && matching.length > end - first ? `${number(first + 1)}–${number(end)} of ` : "";
    const all = matching.length < lines.length ? ` among the last ${number(lines.length)}` : "";
    fill(this.#summary, `${which}${count(matching.length, "line")}${all}`);
    const news = matching.length - end;
    fill(this.#pause, !this.#isPaused ? "Pause" : news > 0 ? `Continue (${number(news)} new)` : "Continue");
    this.#pause.classList.toggle("primary", this.#isPaused);
    this.#earlier.hidden = first === 0;
    this.#later.hidden = !this.#isPaused || news === 0;
  }
}

function row(line) {
  const time = Number.isNaN(Date.parse(line.time)) ? line.time : clock(line.time);
  const summary = el("summary", {},
    el("span.log-time.muted", { title: line.time }, time),
    el("span.log-level", {}, line.level && badge(line.level, KINDS[line.level] ?? "")),
    el("span.log-event", {}, line.event || el("span.muted", {}, "(no text)"), " ", el("span.muted", {}, line.rest)));
  const details = el("details", {}, summary);
  details.addEventListener("toggle", () => {
    if (details.children.length === 1) details.append(everything(line));
    if (details.open) details.scrollIntoView({ block: "nearest" });
  });
  return el("li", { "data-number": line.number, class: KINDS[line.level] && `log-${line.level}` }, details);
}

const clock = (time) => `${moment(time).slice(11)}.${String(new Date(time).getMilliseconds()).padStart(3, "0")}`;

function everything(line) {
  return el("dl.facts.mono", {}, line.fields.map(([name, value]) =>
    [el("dt", {}, name), el("dd.pre", {}, asText(value))]));
}

/** Moves the focus from row to row with the arrow keys. */
function moved(event) {
  const steps = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" };
  if (!(event.key in steps) || event.target.tagName !== "SUMMARY") return;
  const next = event.target.closest("li")[steps[event.key]]?.querySelector("summary");
  if (!next) return;
  event.preventDefault();
  next.focus();
}
