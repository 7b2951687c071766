// The local API (docs/api.md, "Local service").

import { Client } from "../lib/client.js";
import { askForKey, keyHeaders } from "./key.js";

const client = new Client({ headers: keyHeaders, unauthorized: askForKey });

export const api = {
  recall: (question, options) => client.post("/api/recall", question, options),
  lookup: (body, options) => client.post("/api/lookup", body, options),
  synthesize: (question, options) => client.post("/api/synthesize", question, options),
  remember: (note, options) => client.post("/api/remember", note, options),
  ingest: (items, options) => client.post("/api/ingest", { items }, options),
  note: (id, options) => client.get(`/api/notes/${encodeURIComponent(id)}`, options),
  correct: (id, correction, options) =>
    client.json("PATCH", `/api/notes/${encodeURIComponent(id)}`, { body: correction, ...options }),
  supersede: (id, by, options) => client.post(`/api/notes/${encodeURIComponent(id)}/supersede`, { by }, options),
  remove: (id, erase, options) =>
    client.json("DELETE", `/api/notes/${encodeURIComponent(id)}`, { query: erase ? { erase } : {}, ...options }),
  changes: (query, options) => client.get("/api/changes", { query, ...options }),
  domains: (options) => client.get("/api/domains", options),

  graphView: (query, options) => client.get("/api/graph/view", { query, ...options }),
  graphNode: (query, options) => client.get("/api/graph/node", { query, ...options }),
  merge: (from, into, options) => client.post("/api/entities/merge", { from, into }, options),
  unmerge: (entity, options) => client.post("/api/entities/unmerge", { entity }, options),
  entities: (query, options) => client.get("/api/entities", { query, ...options }),

  health: (options) => client.get("/api/health", options),
  stats: (options) => client.get("/api/stats", options),
  storage: (options) => client.get("/api/storage", options),
  version: (options) => client.get("/api/version", options),
  edition: (options) => client.get("/api/edition", options),
  telemetry: (options) => client.get("/api/telemetry", options),
  history: (query, options) => client.get("/api/history", { query, ...options }),
  logs: (query, options) => client.get("/api/logs", { query, ...options }),
  followLogs: (followed) => client.follow("/api/logs/stream", followed),
  followTelemetry: (followed) => client.follow("/api/telemetry/stream", followed),

  config: (options) => client.get("/api/config", options),
  configMeta: (options) => client.get("/api/config/meta", options),
  changeConfig: (changes, options) => client.json("PUT", "/api/config", { body: changes, ...options }),
  withdrawConfig: (path, options) => client.json("DELETE", `/api/config/pending/${encodeURIComponent(path)}`, options),
  configText: async (options) => {
    const response = await client.send("GET", "/api/config", { headers: { accept: "application/toml" }, ...options });
    return response.text();
  },
  changeConfigText: (text, options) =>
    client.json("PUT", "/api/config", { body: text, type: "application/toml", ...options }),
};
