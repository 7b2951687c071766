// Counts today's queries from the telemetry stream, as GET /api/telemetry does.

const LATENCIES = 60;
const LATEST = 8;

/** The time of a telemetry entry, in milliseconds. */
export const timeOf = (entry) => entry.timestamp * 1000;

/** The day of a time as the service counts days: in UTC. */
const dayOf = (time) => new Date(time).toISOString().slice(0, 10);

export class Tally {
  constructor() {
    this.reset();
  }

  reset() {
    this.day = "";
    this.seen = new Set();
    this.syntheses = 0;
    this.sum = 0;
    this.durations = new Map();
    this.intents = new Map();
    this.hours = new Array(24).fill(0);
    this.latencies = [];
    this.latest = [];
  }

  get count() {
    return this.seen.size;
  }

  /** Counts an entry once, however often the stream sends it; one of a new day begins anew. */
  add(entry) {
    if (entry.event_type !== "recall" && entry.event_type !== "synthesis") return;
    const day = dayOf(timeOf(entry));
    if (day > this.day) {
      this.reset();
      this.day = day;
    }
    if (day < this.day || this.seen.has(entry.query_id)) return;
    this.seen.add(entry.query_id);
    const latency = entry.duration_ms ?? 0;
    if (entry.event_type === "synthesis") this.syntheses += 1;
    this.sum += latency;
    this.durations.set(latency, (this.durations.get(latency) ?? 0) + 1);
    if (entry.intent) this.intents.set(entry.intent, (this.intents.get(entry.intent) ?? 0) + 1);
    this.hours[new Date(timeOf(entry)).getUTCHours()] += 1;
    this.latencies = [...this.latencies, latency].slice(-LATENCIES);
    const isOther = (known) => known.query !== entry.query || known.event_type !== entry.event_type;
    if (entry.query) this.latest = [entry, ...this.latest.filter(isOther)].slice(0, LATEST);
  }

  /** The totals, in the fields of the API. */
  totals() {
    return {
      total_queries: this.count,
      synthesis_count: this.syntheses,
      avg_latency_ms: this.count === 0 ? 0 : Math.round(this.sum / this.count),
      p50_ms: this.#percentile(50),
      p95_ms: this.#percentile(95),
      top_intents: Object.fromEntries(this.intents),
    };
  }

  /** The smallest latency that at least `percent` of all queries do not exceed. */
  #percentile(percent) {
    const wanted = Math.ceil((this.count * percent) / 100);
    let seen = 0;
    for (const latency of [...this.durations.keys()].sort((a, b) => a - b)) {
      seen += this.durations.get(latency);
      if (seen >= wanted) return latency;
    }
    return 0;
  }
}
