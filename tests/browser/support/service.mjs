// Runs the program with a data directory of its own, and speaks to its API.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { model } from "./model.mjs";

const BINARY =
  process.env.THREAT_MEMORY_BINARY ?? fileURLToPath(new URL("../../../target/debug/threat-memory", import.meta.url));
const START_MS = 120_000;
const STOP_MS = 60_000;
const UNLIMITED = "1000000";

export const ADMIN = { email: "admin@example.com", password: "a long enough password" };

/** An answer that is not the one a test needs. */
class Unexpected extends Error {}

export class Service {
  /**
   * @param {"local"|"hosted"} kind
   * @param {{environment?: Object<string, string>, key?: string, model?: object}} [options] The `environment` of the
   *   program, besides a free port and a rate limit that no test reaches. `key` protects the local API. `model` is what
   *   a language model says (model.mjs).
   */
  constructor(kind, { environment = {}, key, model } = {}) {
    this.kind = kind;
    this.environment = environment;
    this.key = key;
    this.says = model;
    this.model = null;
    this.port = 0;
    this.token = null;
    this.process = null;
    this.said = [];
  }

  /** Starts the program; once more, on the port it had before. */
  async start() {
    this.directory ??= await mkdtemp(path.join(tmpdir(), "threat-memory-browser-"));
    if (this.says) this.model ??= await model(this.says);
    const own = /^(THREAT_MEMORY_|LOCAL_|PLATFORM_|TAXII_)/;
    const inherited = Object.entries(process.env).filter(([name]) => !own.test(name));
    const env = {
      ...Object.fromEntries(inherited),
      ...this.#settings(),
      ...this.model?.environment,
      ...this.environment,
    };
    const args =
      this.kind === "local" ? ["local", "--port", String(this.port), "--data-dir", "data/local"] : ["hosted"];
    this.process = spawn(BINARY, args, { cwd: this.directory, env, stdio: ["ignore", "ignore", "pipe"] });
    children.add(this.process);
    this.process.once("exit", function ended() {
      children.delete(this);
    });
    this.base = await this.#ready();
    this.port = Number(new URL(this.base).port);
    if (this.kind === "hosted") this.token = await this.signIn(ADMIN);
    return this;
  }

  #settings() {
    if (this.kind === "local") {
      return {
        LOCAL_WEB_ADMIN_BIND: "127.0.0.1:0",
        LOCAL_WEB_RATE_LIMIT_PER_MINUTE: UNLIMITED,
        ...(this.key && { LOCAL_WEB_API_KEY: this.key }),
      };
    }
    return {
      THREAT_MEMORY_SERVER__BIND: `127.0.0.1:${this.port}`,
      THREAT_MEMORY_SERVER__ADMIN_BIND: "127.0.0.1:0",
      THREAT_MEMORY_LIMITS__TIERS__ENTERPRISE: UNLIMITED,
      THREAT_MEMORY_LIMITS__TIERS__TEAM: UNLIMITED,
      THREAT_MEMORY_LIMITS__TIERS__PILOT: UNLIMITED,
      THREAT_MEMORY_ADMIN_EMAIL: ADMIN.email,
      THREAT_MEMORY_ADMIN_PASSWORD: ADMIN.password,
    };
  }

  /** The base URL, once the program says that it is ready. */
  #ready() {
    const child = this.process;
    return new Promise((resolve, reject) => {
      const failed = (what) => {
        child.kill("SIGKILL");
        reject(new Error(`${BINARY} ${what}:\n${this.said.join("")}`));
      };
      const timer = setTimeout(failed, START_MS, "does not start");
      child.once("error", (error) => failed(`can't be run: ${error.message}`));
      child.once("exit", (code) => {
        clearTimeout(timer);
        failed(`ended with ${code}`);
      });
      let rest = "";
      child.stderr.setEncoding("utf8").on("data", (text) => {
        this.said = [...this.said, text].slice(-40);
        rest = (rest + text).slice(-2000);
        const found = /API on (http:\/\/[^\s,]+)[,\s]/.exec(rest);
        if (found) {
          clearTimeout(timer);
          resolve(found[1]);
        }
      });
    });
  }

  /** Ends the program and keeps its data. */
  async stop() {
    const child = this.process;
    this.process = null;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  }

  async restart() {
    await this.stop();
    return this.start();
  }

  /** Ends the program and removes its data. */
  async end() {
    await this.stop();
    await this.model?.end();
    if (this.directory) await rm(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  async signIn({ email, password, workspace }) {
    const answer = await this.ask("POST", "/api/auth/login", { email, password, workspace }, { token: null });
    return answer.access_token;
  }

  /** The parsed answer to a request, which must succeed. */
  async ask(method, path, body, { token = this.token, status } = {}) {
    const response = await this.send(method, path, body, { token });
    const text = await response.text();
    if (status ? response.status !== status : !response.ok) {
      throw new Unexpected(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
    }
    return text === "" ? null : JSON.parse(text);
  }

  /** The answer to a request, whatever it is. */
  send(method, path, body, { token = this.token, headers = {} } = {}) {
    const credential = token ? { authorization: `Bearer ${token}` } : this.key ? { "x-api-key": this.key } : {};
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const content = body === undefined ? undefined : JSON.stringify(body);
    return fetch(this.base + path, { method, headers: { ...type, ...credential, ...headers }, body: content });
  }
}

/** A running service. Whoever starts it ends it. */
export async function running(kind, options) {
  const service = new Service(kind, options);
  try {
    return await service.start();
  } catch (error) {
    await service.end();
    throw error;
  }
}

// No service outlives the tests, however they end.
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
