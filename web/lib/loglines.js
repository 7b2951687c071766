// Lines of the log, as the stream and as GET /api/logs write them.

export const LEVELS = ["trace", "debug", "info", "warn", "error"];

/**
 * A line.
 *
 * @typedef {Object} Line
 * @property {string} level
 * @property {string} time
 * @property {string} event
 * @property {string} rest Its other values in short.
 * @property {[string, unknown][]} fields All of them.
 * @property {string} text What the text filter looks at.
 * @property {number} [number] Its position in the log.
 */

/** The line that the stream sent: JSON, or any text. */
export function streamed(text) {
  let found = null;
  try {
    found = JSON.parse(text);
  } catch {
    // Shown as it is.
  }
  return found && typeof found === "object" && !Array.isArray(found) ? lineOf(found) : plain(text);
}

/** The line that GET /api/logs listed. */
export const listed = (entry) => (typeof entry.raw === "string" ? plain(entry.raw) : lineOf(entry));

function plain(text) {
  return { level: "", time: "", event: text, rest: "", fields: [["text", text]], text: text.toLowerCase() };
}

function lineOf({ timestamp, time = timestamp, level, fields, event, message, target, span, spans, ...others }) {
  const { message: said = event ?? message ?? "", ...values } = { ...others, ...fields };
  const name = String(level ?? "").toLowerCase().replace("warning", "warn");
  const all = [["time", time], ["level", name], ["message", said], ["target", target], ...Object.entries(values),
    ...Object.entries(span ?? {}).map(([key, value]) => [`span.${key}`, value]), ["spans", spans?.length > 1 && spans]]
    .filter(([, value]) => value !== "" && value !== undefined && value !== null && value !== false);
  return {
    level: name,
    time: String(time ?? ""),
    event: asText(said),
    rest: brief(values, span ?? {}),
    fields: all,
    text: all.map(([key, value]) => `${key}=${asText(value)}`).join(" ").toLowerCase(),
  };
}

/** A value as people read it. */
export const asText = (value) => (typeof value === "string" ? value : JSON.stringify(value));

/** The values that tell lines of the same message apart. */
function brief(values, { name: _name, request_id: _id, ...span }) {
  return Object.entries({ ...span, ...values }).sort().map(([key, value]) => `${key}=${asText(value)}`).join("  ");
}

/** The last lines of the log, and which of them fit the filters. */
export class Log {
  #known = new Map();
  #limit;

  /** @param {number} limit Most lines that are kept. */
  constructor(limit) {
    this.#limit = limit;
    this.lines = [];
    this.matching = [];
    this.last = 0;
    this.filter("", "");
  }

  /** Takes the lines that were written before. The stream begins with some of them, which are not added again. */
  open(lines) {
    for (const line of lines) {
      this.#push(line);
      const key = keyOf(line);
      this.#known.set(key, (this.#known.get(key) ?? 0) + 1);
    }
  }

  /** Takes the next line of the stream. */
  add(line) {
    const copies = this.#known.size > 0 && this.#known.get(keyOf(line));
    if (copies > 0) {
      this.#known.set(keyOf(line), copies - 1);
      return;
    }
    this.#known.clear();
    this.#push(line);
  }

  /** Chooses the lines of a level or above that contain a text; a line without a level is of every level. */
  filter(level, text) {
    const least = LEVELS.indexOf(level);
    const part = text.trim().toLowerCase();
    const isAmong = (line) => {
      const rank = LEVELS.indexOf(line.level);
      return rank < 0 || rank >= least;
    };
    this.fits = (line) => isAmong(line) && line.text.includes(part);
    this.matching = this.lines.filter(this.fits);
  }

  /** The position among the matching lines of the first one after a number. */
  after(number) {
    const at = this.matching.findIndex((line) => line.number > number);
    return at < 0 ? this.matching.length : at;
  }

  #push(line) {
    this.last += 1;
    line.number = this.last;
    this.lines.push(line);
    if (this.fits(line)) this.matching.push(line);
    if (this.lines.length <= this.#limit) return;
    this.lines.shift();
    if (this.matching[0]?.number < this.lines[0].number) this.matching.shift();
  }
}

/** What two copies of a line have in common, whichever way they came. */
const keyOf = (line) => [line.time, line.event, line.rest].join("\n");
