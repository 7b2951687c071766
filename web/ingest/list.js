// The list of notes to be ingested: what became of each, and what can be done.

import { el, fill } from "../lib/dom.js";
import { count, number } from "../lib/format.js";
import { badge, button, joined } from "../lib/parts.js";
import { emptiness, linkTo } from "../lib/shell.js";
import { STATES } from "./sender.js";

const PAGE = 50;
/** Characters of a note that the list shows. */
const SHOWN = 160;
const KINDS = { created: "good", updated: "accent", failed: "bad", sending: "warn" };
const ICONS = { waiting: "·", sending: "…", created: "✓", duplicate: "=", updated: "↑", failed: "✕" };

/** The list of all notes, a page of it at a time. */
export function itemList(sender, send, at) {
  const state = { only: "", page: 0, expected: false, drawn: "" };
  const rows = el("ol.plain-list.items");
  const draw = () => {
    state.expected = false;
    if (at.signal.aborted) return;
    head.draw();
    drawRows(sender, state, rows);
    pager.draw();
  };
  const head = listHead(sender, send, state, draw);
  const pager = listPager(sender, state, draw);
  sender.changed = () => {
    if (state.expected) return;
    state.expected = true;
    requestAnimationFrame(draw);
  };
  const clock = setInterval(() => { if (sender.pause) draw(); }, 1000);
  at.signal.addEventListener("abort", () => clearInterval(clock));
  draw();
  return {
    element: el("section.stack", { "aria-label": "Notes on the list" },
      el("div.spread", {}, el("h2.list-title", {}, "Notes"), head.progress), head.elements, rows, pager.element),
    toStart() { Object.assign(state, { only: "", page: 0 }); },
  };
}

const heldIn = ({ items }) => items.filter((item) => item.state === "waiting" && !item.isQueued);
const failedIn = ({ items }) => items.filter((item) => item.state === "failed" && !item.hopeless);

/** Progress and what can be done. Its buttons stay the same elements, so that a redraw swallows no click. */
function listHead(sender, send, state, draw) {
  const progress = el("p.progress-text", { role: "status" });
  const bar = el("progress", { max: 1, value: 0, "aria-label": "Notes handled" });
  const notice = el("div");
  const sendAll = button("Send", () => { send(heldIn(sender)); }, { class: "primary" });
  const stop = button("Stop", () => { sender.stop(); });
  const again = button("Try again", () => { send(failedIn(sender)); });
  const clear = button("Clear the list", () => { sender.clear(); });
  const narrow = (of) => () => {
    Object.assign(state, { only: state.only === of ? "" : of, page: 0 });
    draw();
  };
  const chips = STATES.map((of) => el("button.chip", { type: "button", onclick: narrow(of) }));
  const actions = el("div.row", {}, sendAll, stop, again, clear);
  const filters = el("div.chips", { role: "group", "aria-label": "Only notes with this status" }, chips);
  return {
    progress,
    elements: [bar, notice, actions, filters],
    draw() {
      const { items, counts, isBusy, isStopping } = sender;
      const done = items.length - counts.waiting - counts.sending;
      const [held, hopes] = [heldIn(sender).length, failedIn(sender).length];
      for (const part of [bar, actions, filters]) part.hidden = items.length === 0;
      bar.value = done / (items.length || 1);
      tell(progress, items.length > 0 ? progressOf(sender, done) : "");
      fill(notice, noticeOf(sender));
      notice.hidden = !notice.firstChild;
      relabel(sendAll, `Send ${count(held, "note")}`, held > 0 && !isStopping);
      relabel(stop, isStopping ? "Stopping …" : "Stop", isBusy);
      relabel(again, `Try ${count(hopes, "failed note")} again`, hopes > 0 && !isStopping);
      relabel(clear, "Clear the list", !isBusy);
      chips.forEach((chip, position) => {
        const of = STATES[position];
        relabel(chip, `${of} ${number(counts[of])}`, counts[of] > 0 || state.only === of);
        chip.setAttribute("aria-pressed", String(state.only === of));
      });
    },
  };
}

function progressOf({ items, counts, pause }, done) {
  const outcome = counts.failed > 0 ? `handled, ${number(counts.failed)} failed` : "done";
  return `${number(done)} of ${count(items.length, "note")} ${outcome}${pause ? "; waiting for the service" : ""}`;
}

/** Writes only what is new, as a screen reader says whatever is written. */
function tell(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

function relabel(made, text, isShown) {
  if (made.textContent !== text) fill(made, text);
  made.hidden = !isShown;
}

function noticeOf({ pause, problem }) {
  if (pause) {
    const seconds = Math.max(0, Math.ceil((pause.until - Date.now()) / 1000));
    return el("div.notice.warn", {}, `${pause.why} Going on by itself in ${seconds} s.`);
  }
  return problem && el("div.notice.bad", {}, `${problem.message} What was not sent is still waiting.`);
}

const listed = ({ items }, { only }) => (only ? items.filter((item) => item.state === only) : items);

function listPager(sender, state, draw) {
  const turn = (by) => () => { state.page += by; draw(); };
  const back = button("Previous", turn(-1));
  const next = button("Next", turn(1));
  const place = el("span.muted");
  const element = el("div.row", {}, back, next, place);
  return {
    element,
    draw() {
      const { length: size } = listed(sender, state);
      const first = state.page * PAGE;
      element.hidden = size <= PAGE;
      back.disabled = state.page === 0;
      next.disabled = first + PAGE >= size;
      fill(place, `${number(first + 1)}–${number(Math.min(first + PAGE, size))} of ${number(size)}`);
    },
  };
}

function drawRows(sender, state, rows) {
  const items = listed(sender, state);
  state.page = Math.max(0, Math.min(state.page, Math.ceil(items.length / PAGE) - 1));
  const shown = items.slice(state.page * PAGE, (state.page + 1) * PAGE);
  const { only, page } = state;
  const drawn = JSON.stringify([only, page, sender.items.length, shown.map((item) => [item.state, item.from])]);
  if (drawn === state.drawn) return;
  state.drawn = drawn;
  if (sender.items.length > 0) fill(rows, shown.map(row));
  else fill(rows, el("li", {}, emptiness("Nothing on the list yet.",
    "Write a note, paste some, or choose files. What becomes of each is shown here.")));
}

function row({ note, from, state, error, id, entities = [] }) {
  const text = note.content.slice(0, SHOWN).replace(/\s+/g, " ");
  const isCut = note.content.length > SHOWN;
  const more = entities.length > 4 ? ` and ${entities.length - 4} more` : "";
  return el("li.item", {},
    badge(`${ICONS[state]} ${state}`, KINDS[state] ?? ""),
    el("div.item-text", {},
      text && el("p", {}, id ? el("a", { href: linkTo("note", { id }) }, text) : el("bdi", {}, text), isCut && " …"),
      error && el("p.field-error", {}, error),
      el("p.hint", {}, el("bdi", {}, from), note.domain && [" · ", el("bdi", {}, note.domain)],
        entities.length > 0 && [" · ", joined(entities.slice(0, 4)), more])));
}
