// Reads the files that are chosen or dropped, and asks for the columns of tables.

import { el, fill, uniqueId } from "../lib/dom.js";
import { count } from "../lib/format.js";
import { button, choice, field } from "../lib/parts.js";
import { COLUMNS, EXTENSIONS, Refused, notesOf, readFile } from "./items.js";

/** Characters of a note that a preview shows. */
const SHOWN = 160;

/** What reads files. `take` puts notes on the list and returns those that can be sent. */
export function filePanel(take, longest) {
  const reports = el("ul.plain-list.reports");
  const tables = el("div.stack");
  const chooser = el("input.unseen", {
    type: "file", multiple: true, accept: EXTENSIONS, tabindex: -1, "aria-label": "Files",
  });
  const report = (name) => {
    const entry = el("li", {}, el("strong", {}, name), ": reading …");
    reports.append(entry);
    return (text, kind = "") => fill(entry, el("span", { class: kind }, el("strong", {}, name), `: ${text}`));
  };
  const took = (tell, name, reading) => {
    const { refused, remark = "" } = reading;
    const added = take(reading, name).length;
    const bad = refused.length > 0 ? `, ${count(refused.length, "entry was", "entries were")} refused` : "";
    tell(`${count(added, "note")} on the list${bad}. ${remark}`, bad && "partly");
  };
  const readOne = async (file) => {
    const tell = report(file.name);
    try {
      const reading = await readFile(file, longest);
      if (!reading.table) return took(tell, file.name, reading);
      tell(`${count(reading.table.rows.length, "row")}. Choose its columns.`);
      const done = (chosen) => (chosen ? took(tell, file.name, chosen) : tell("discarded."));
      tables.append(columnChoice(reading.table, done));
    } catch (error) {
      tell(faultOf(error), "fault");
    }
  };
  const read = async (all) => {
    fill(reports);
    for (const file of all) await readOne(file);
  };
  chooser.addEventListener("change", async () => {
    await read([...chooser.files]);
    chooser.value = "";
  });
  const zone = dropZone(chooser);
  return { element: el("div.stack", {}, zone, el("div", { role: "status" }, reports), tables), zone, read };
}

function faultOf(error) {
  if (error instanceof Refused) return `refused. ${error.message}`;
  // So browsers name what they say of a folder, and of a file that is gone.
  const isOutOfReach = ["NotReadableError", "NotFoundError"].includes(error.name);
  return `could not be read. ${isOutOfReach ? "Is it a folder?" : error.message}`;
}

const dropZone = (chooser) => el("div.drop", {},
  el("p", {}, el("strong", {}, "Drop files here"), " or ", button("Choose files", () => chooser.click()), chooser),
  el("ul.hint.formats", {},
    el("li", {}, el("code", {}, ".txt .md"), " one note per file, split between paragraphs if it is too long"),
    el("li", {}, el("code", {}, ".json"), " a list of texts or of objects with ", el("code", {}, "content"),
      " (also under ", el("code", {}, "items"), "), or one of them per line"),
    el("li", {}, el("code", {}, ".csv"), " one note per row; you choose the columns")));

/** Takes files that are dropped anywhere on the view: elsewhere the browser would open them in place of the page. */
export function acceptDrops(root, zone, dropped) {
  const over = (isOver) => (event) => {
    if (!event.dataTransfer.types.includes("Files")) return false;
    event.preventDefault();
    zone.classList.toggle("over", isOver);
    return true;
  };
  root.addEventListener("dragover", over(true));
  root.addEventListener("dragleave", over(false));
  root.addEventListener("drop", (event) => { if (over(false)(event)) dropped([...event.dataTransfer.files]); });
}

const COLUMN_TITLES = {
  content: "Text of the note", domain: "Domain", source_type: "Kind of source", source_ref: "Source",
};

/** Asks which column of a table is what; `done` is given the notes, or `null`. */
function columnChoice(table, done) {
  const { rows, name } = table;
  const head = el("input", { type: "checkbox", checked: hasTitles(rows), id: uniqueId("head") });
  const selects = Object.keys(COLUMNS).map((column) => [column, el("select", { required: column === "content" })]);
  const preview = el("p.hint.pre");
  const chosen = () => Object.fromEntries(selects.map(([column, select]) => [column, Number(select.value)]));
  const end = (reading) => {
    panel.remove();
    done(reading);
  };
  const add = button("", () => end(notesOf(table, chosen(), head.checked)), { class: "primary" });
  const draw = () => {
    for (const [column, select] of selects) offer(select, column, rows, head.checked);
    const sample = rows[head.checked ? 1 : 0]?.cells[chosen().content] ?? "";
    fill(preview, `First note: ${sample.slice(0, SHOWN)}${sample.length > SHOWN ? " …" : ""}`);
    fill(add, `Put ${count(rows.length - (head.checked ? 1 : 0), "row")} on the list`);
  };
  const panel = el("fieldset.columns", {}, el("legend", {}, `Columns of ${name}`),
    el("div.check", {}, head, el("label", { for: head.id }, "The first row names the columns")),
    el("div.grid", {}, selects.map(([column, select]) => field(COLUMN_TITLES[column], select))),
    preview, el("div.row", {}, add, button("Discard", () => end(null))));
  panel.addEventListener("change", draw);
  draw();
  return panel;
}

const columnOf = (name, cells) => cells.findIndex((title) => COLUMNS[name].test(title.trim()));

/** Up to three words without punctuation. */
const isTitle = (cell) => cell.length < 40 && /^\p{L}[\p{L}\p{N}_-]*(?: [\p{L}\p{N}_-]+){0,2}$/u.test(cell.trim());

/** Whether the first row of a table names the columns: then it has known names, or later rows are different. */
function hasTitles([{ cells }, ...others]) {
  const given = cells.filter((cell) => cell.trim() !== "");
  if (!given.every(isTitle)) return false;
  if (Object.keys(COLUMNS).some((name) => columnOf(name, cells) >= 0)) return true;
  return given.length === cells.length && others.slice(0, 20).some((row) => !row.cells.every(isTitle));
}

/** Offers the columns of a table, with the likeliest one chosen at first. */
function offer(select, name, rows, isNamed) {
  const [{ cells }] = rows;
  const titles = cells.map((title, at) => [at, (isNamed && title.trim()) || `column ${at + 1}`]);
  let wanted = select.value === "" ? columnOf(name, isNamed ? cells : []) : Number(select.value);
  if (name === "content" && wanted < 0) wanted = longestColumn(rows);
  fill(select, [...choice(name === "content" ? titles : [[-1, "–"], ...titles], wanted).children]);
  select.value = String(wanted);
}

/** The column that holds most text in the first rows. */
function longestColumn(rows) {
  const size = (at) => rows.slice(0, 20).reduce((sum, { cells }) => sum + (cells[at]?.length ?? 0), 0);
  const sizes = rows[0].cells.map((_, at) => size(at));
  return sizes.indexOf(Math.max(...sizes));
}
