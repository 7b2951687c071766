// The management page of the local service.

import { el, fill } from "../lib/dom.js";
import { Shell } from "../lib/shell.js";
import { config } from "../views/config.js";
import { overview } from "../views/overview.js";
import { search } from "../views/search.js";
import { api } from "./api.js";

const views = [overview(api), search(api), config(api)];
const isConfig = location.pathname === "/config";
const shell = new Shell({ views, home: isConfig ? "config" : "overview" });
shell.start();

api.version().then(
  ({ version, edition }) => fill(document.getElementById("status"), el("span", {}, `${version} · ${edition}`)),
  () => {},
);
