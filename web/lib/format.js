// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const STEPS = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** `12,345`. */
export const number = (value) => whole.format(value);

/** `1 note`, `2 notes`. */
export const count = (value, one, many = `${one}s`) => `${number(value)} ${value === 1 ? one : many}`;

/** A part of one as `82 %`. */
export const percent = (part) => `${Math.round(part * 100)} %`;

/** `3 minutes ago`. */
export function ago(time, now = Date.now()) {
  const seconds = Math.round((new Date(time).getTime() - now) / 1000);
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? STEPS.at(-1);
  return relative.format(Math.trunc(seconds / size), unit);
}

/** `2026-11-22 14:03:09` in the browser's time zone. */
export function moment(time) {
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) return String(time);
  const two = (part) => String(part).padStart(2, "0");
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join("-");
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(":")}`;
}

/** `2 d 3 h`, `4 min 5 s`. */
export function duration(seconds) {
  const units = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first < 0) return "0 s";
  return units.slice(first, first + 2).map(([name, size], position) => {
    const above = position === 0 ? Infinity : units[first][1];
    return `${Math.floor((seconds % above) / size)} ${name}`;
  }).join(" ");
}
