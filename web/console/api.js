// The hosted API (docs/api.md, "Hosted service"), as far as the console needs it.

import { ApiError, Client } from "../lib/client.js";
import { number } from "../lib/format.js";
import { answered, credential, signInAgain, who } from "./session.js";

const client = new Client({ headers: credential, unauthorized: signInAgain, answered });
/** For requests without a credential, or with one that is being tried. */
const door = new Client({ headers: () => ({}), unauthorized: async () => false });

const at = (prefix, ...ids) => [prefix, ...ids.map(encodeURIComponent)].join("/");
/** Most characters of a question that the service takes (docs/limits.md). */
const LONGEST_QUESTION = 4000;

/** A query, if its question is short enough: a longer one may not even fit into a URL. */
function asked(query) {
  const length = [...query.q].length;
  if (length <= LONGEST_QUESTION) return query;
  throw new ApiError(400, `The question has ${number(length)} characters; a search takes ${number(LONGEST_QUESTION)}. `
    + "Shorten it, or paste a long text into “Review”.");
}

const feedBatch = (id) => at("/api/threat-intel/batches", id);
const feedItem = (id, item) => `${feedBatch(id)}/${at("items", item)}`;

/** The node that was opened last, and by whom. */
let lastNode = null;

export const api = {
  providers: () => client.get("/api/auth/providers"),

  /** `{email, password, workspace?}`. */
  signIn: (form, options) => door.post("/api/auth/login", form, options),
  /** Who holds this credential, given as headers. */
  who: (headers, options) => door.get("/api/auth/me", { headers, ...options }),
  health: (options) => door.get("/api/health", options),
  /** Settings of the workspace; for administrators. */
  workspace: (options) => client.get("/api/admin/workspace", options),

  /**
   * `{q, mode?, limit?, include_rejected?, explain?, node_type?, source?, since?, until?, min_confidence?}`. The answer
   * has a `recall_id`.
   */
  search: async (query, options) => client.get("/api/recall/search", { query: asked(query), ...options }),
  /** The same without `mode`. The answer has no `recall_id`, so that it can't be exported. */
  semantic: async (query, options) => client.get("/api/recall/semantic", { query: asked(query), ...options }),
  /** `{values}` or `{text}`: what is known of each value, with a `recall_id`. */
  lookup: (body, options) => client.post("/api/recall/lookup", body, options),
  /** `{limit?, offset?}`: one's own, newest first. */
  sessions: (query, options) => client.get("/api/recall/sessions", { query, ...options }),
  session: (id, options) => client.get(at("/api/recall/sessions", id), options),
  /** The STIX bundle of a recall session as a text, and how many objects were held back. */
  exportSession: async (id, options) => {
    const path = `${at("/api/recall/sessions", id)}/export.stix`;
    const response = await client.send("GET", path, { headers: { accept: STIX }, ...options });
    return { text: await response.text(), heldBack: Number(response.headers.get("x-held-back")) || 0 };
  },

  /** `{limit?, offset?, include_rejected?}`: the node, a page of its relationships, its newest evidence. */
  node: async (id, query, options) => {
    const answer = await client.send("GET", at("/api/nodes", id), { query, ...options });
    lastNode = { id, who: who()?.user?.id };
    return { ...await answer.json(), tag: answer.headers.get("etag") };
  },
  /** `{name?, description?, aliases?, confidence?, tlp?, status?, clear?, reason?}`. */
  correctNode: (id, body, options) => client.json("PATCH", at("/api/nodes", id), { body, ...options }),
  /** `{status, reason?}`. */
  correctEdge: (id, body, options) => client.json("PATCH", at("/api/edges", id), { body, ...options }),
  correctEvidence: (id, body, options) => client.json("PATCH", at("/api/evidence", id), { body, ...options }),
  /** `{since?, until?, kind?, limit?}`. */
  changes: (query, options) => client.get("/api/changes", { query, ...options }),
  /** The id of the node that the caller opened last, or found last in an earlier visit. */
  lastNode: async (options) => {
    if (lastNode !== null && lastNode.who === who()?.user?.id) return lastNode.id;
    const { sessions } = await api.sessions({ limit: 10 }, options);
    return sessions.find(({ node_ids: found }) => found.length > 0)?.node_ids[0] ?? null;
  },
  /** The best connected nodes, and the relationships among them. */
  graph: (options) => client.get("/api/graph", options),
  /** `{into, reason?}`: the other node stands for this one from now on. */
  mergeNode: (id, body, options) => client.post(`${at("/api/nodes", id)}/merge`, body, options),
  unmergeNode: (id, options) => client.json("POST", `${at("/api/nodes", id)}/unmerge`, options),
  /** `{node_type?, limit?, cursor?}`: pairs of nodes that are likely the same. */
  duplicates: (query, options) => client.get("/api/nodes/duplicates", { query, ...options }),
  markDistinct: (id, from, options) => client.post(`${at("/api/nodes", id)}/distinct`, { from }, options),
  evidence: (id, query, options) => client.get(at("/api/evidence", id), { query, ...options }),

  /** `{text, source_type?, session_id?, ingest_mode?, default_tlp?, default_confidence?}`. */
  preview: (text, options) => client.post("/api/ingest/preview", text, options),
  /** `{status?, limit?, offset?}`. */
  batches: (query, options) => client.get("/api/ingest/batch", { query, ...options }),
  batch: (id, options) => client.get(at("/api/ingest/batch", id), options),
  /** `{status, resolved_tlp?, merge_target_id?}`. */
  decide: (entity, decision, options) =>
    client.json("PATCH", at("/api/ingest/staging", entity), { body: decision, ...options }),
  commit: (id, options) => client.json("POST", `${at("/api/ingest/batch", id)}/commit`, options),

  /** Of the TAXII server; for administrators. */
  collections: (options) => client.get("/api/admin/collections", options),
  /** `{title, alias?, description?, filter?, readable_by?, writable_by?, hand_in?}`. */
  addCollection: (collection, options) => client.post("/api/admin/collections", collection, options),
  changeCollection: (id, changes, options) =>
    client.json("PATCH", at("/api/admin/collections", id), { body: changes, ...options }),
  removeCollection: (id, options) => client.send("DELETE", at("/api/admin/collections", id), options),
  /** How busy the service is; for the operator. */
  actors: (options) => client.get("/api/admin/actors", options),
  apiKeys: (options) => client.get("/api/admin/api-keys", options),

  feeds: (options) => client.get("/api/threat-intel/feeds", options),
  feed: (id, options) => client.get(at("/api/threat-intel/feeds", id), options),
  addFeed: (feed, options) => client.post("/api/threat-intel/feeds", feed, options),
  changeFeed: (id, changes, options) =>
    client.json("PATCH", at("/api/threat-intel/feeds", id), { body: changes, ...options }),
  removeFeed: (id, options) => client.send("DELETE", at("/api/threat-intel/feeds", id), options),
  /** `{feed?, status?, limit?, offset?}`. */
  feedBatches: (query, options) => client.get("/api/threat-intel/batches", { query, ...options }),
  /** `{status?, after?, limit?}`: the batch with a page of its items. */
  feedBatch: (id, query, options) => client.get(feedBatch(id), { query, ...options }),
  pullFeed: (feed, options) =>
    client.post("/api/threat-intel/batches", { input_kind: "taxii_2_1_pull", feed_source_id: feed }, options),
  /** `{bundle, feed_source_id?, default_tlp?}`: stages a bundle for review. */
  uploadBundle: (upload, options) =>
    client.post("/api/threat-intel/batches", { input_kind: "stix_bundle", ...upload }, options),
  resumeFeedBatch: (id, options) => client.json("POST", `${feedBatch(id)}/resume`, options),
  feedItem: (id, item, options) => client.get(feedItem(id, item), options),
  /** `{status?, resolved_tlp?}`. */
  decideFeedItem: (id, item, decision, options) => client.post(feedItem(id, item), decision, options),
  /** Commits these items, or all accepted ones. */
  commitFeedBatch: (id, items, options) => client.json("POST", `${feedBatch(id)}/commit`,
    items ? { body: { item_ids: items }, ...options } : options),

  /** `{user_id?, from?, to?, limit?, offset?}`. */
  auditLogs: (query, options) => client.get("/api/audit/logs", { query, ...options }),
  auditVerify: (options) => client.get("/api/audit/verify", options),
  /** The log as CSV. `{from?, to?, limit?}`. */
  auditExport: async (query, options) => {
    const headers = { accept: "text/csv" };
    const response = await client.send("GET", "/api/audit/export", { query, headers, ...options });
    return response.text();
  },
};

const STIX = "application/stix+json;version=2.1";
