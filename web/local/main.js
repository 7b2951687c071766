// The management page of the local service.

import { el, fill } from "../lib/dom.js";
import { Shell, later } from "../lib/shell.js";
import { api } from "./api.js";

const views = [
  later("overview", "Overview", async () => (await import("../views/overview.js")).overview(api)),
  later("search", "Search", async () => {
    const [{ search }, { localSource }] = await Promise.all([import("../views/search.js"), import("./source.js")]);
    return search(localSource(api));
  }),
  later("lookup", "Look-up", async () => {
    const [{ lookup }, { lookupSource }] = await Promise.all([import("../views/lookup.js"), import("./lookup-source.js")]);
    return lookup(lookupSource(api));
  }),
  later("graph", "Graph", async () => {
    const [{ graph }, { graphSource }] = await Promise.all([import("../views/graph.js"), import("./graph-source.js")]);
    return graph(graphSource(api));
  }),
  later("ingest", "Ingest", async () => (await import("../views/ingest.js")).ingest(api)),
  later("entities", "Entities", async () => (await import("../views/entities.js")).entities(api)),
  later("changes", "Changes", async () => {
    const [{ changes }, { changesSource }] = await Promise.all([import("../views/changes.js"), import("./changes-source.js")]);
    return changes(changesSource(api));
  }),
  later("history", "History", async () => (await import("../views/history.js")).history(api)),
  later("logs", "Logs", async () => (await import("../views/logs.js")).logs(api)),
  later("config", "Configuration", async () => (await import("../views/config.js")).config(api)),
  later("note", "Note", async () => (await import("../views/note.js")).note(api), "search"),
];
const isConfig = location.pathname === "/config";
const shell = new Shell({ views, home: isConfig ? "config" : "overview", elsewhere: isConfig ? "/" : "" });
shell.start();

api.version().then(
  ({ version, edition }) => fill(document.getElementById("status"), el("span", {}, `${version} · ${edition}`)),
  () => {},
);
