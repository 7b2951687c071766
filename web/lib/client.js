// Speaks to an API of this origin: JSON requests, downloads and event streams.

import { duration } from "./format.js";

/**
 * A message as a sentence. A name at its beginning, such as that of a file or a field, stays as it is.
 *
 * @param {string} text
 */
export function sentence(text) {
  const begun = text.replace(/^[a-z][a-z’'-]*(?=[ ,;.!?]|$)(?!\.\w)/, (word) => word[0].toUpperCase() + word.slice(1));
  return /[.!?…]$/.test(begun) || begun === "" ? begun : `${begun}.`;
}

/** An answer that is an error, or no answer at all (`status` 0). */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} message For a person; becomes a sentence.
   * @param {{fields?: {path: string, message: string}[], retryAfter?: number, body?: unknown}} [more] `retryAfter` is in
   *   seconds.
   */
  constructor(status, message, { fields = [], retryAfter = 0, body = null } = {}) {
    super(sentence(message));
    this.name = "ApiError";
    this.status = status;
    this.fields = fields;
    this.retryAfter = retryAfter;
    this.body = body;
  }
}

/** Whether an error only says that a request was no longer wanted. */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

export class Client {
  /**
   * @param {{headers: () => Object<string, string>,
   *   unauthorized: (error: ApiError, sent: Object<string, string>) => Promise<boolean>,
   *   answered?: (response: Response) => void}} access `headers` holds the credential. `unauthorized` is asked after a
   *   401, with the credential that was sent, and tells whether to send the request again. `answered` sees each answer.
   */
  constructor(access) {
    this.access = access;
  }

  get(path, { query = {}, signal, headers } = {}) {
    return this.json("GET", path, { query, signal, headers });
  }

  post(path, body, { signal } = {}) {
    return this.json("POST", path, { body, signal });
  }

  /** The JSON of an answer; `null` if it has no body. */
  async json(method, path, options = {}) {
    const response = await this.send(method, path, options);
    const text = await response.text().catch((error) => {
      throw isAbort(error) ? error : new ApiError(0, "The answer broke off.");
    });
    try {
      return text === "" ? null : JSON.parse(text);
    } catch {
      throw new ApiError(response.status, "The answer is not from this service. Is a proxy in between?");
    }
  }

  /**
   * The answer to a request, if it is not an error.
   *
   * @param {string} method
   * @param {string} path
   * @param {{query?: Object<string, unknown>, body?: unknown, type?: string, signal?: AbortSignal,
   *   headers?: Object<string, string>}} [options] A `body` with a `type` is sent as it is, otherwise as JSON.
   * @returns {Promise<Response>}
   */
  async send(method, path, options = {}) {
    for (;;) {
      const credential = this.access.headers();
      const response = await this.#fetched(method, path, options, credential);
      this.access.answered?.(response);
      if (response.ok) return response;
      const error = await errorOf(response);
      if (response.status !== 401 || !(await this.access.unauthorized(error, credential))) throw error;
    }
  }

  async #fetched(method, path, { query = {}, body, type, signal, headers = {} }, credential) {
    const sent = { accept: "application/json", ...headers, ...credential };
    if (body !== undefined) sent["content-type"] = type ?? "application/json";
    const content = body === undefined || type ? body : JSON.stringify(body);
    try {
      return await fetch(withQuery(path, query), {
        method, headers: sent, body: content, signal, credentials: "omit", cache: "no-store", redirect: "error",
      });
    } catch (error) {
      if (isAbort(error)) throw error;
      throw new ApiError(0, "The service does not answer. Is it running?");
    }
  }

  /**
   * Follows an event stream until the signal ends it. After a break it connects again and goes on after the last event;
   * after a refused credential it ends.
   *
   * @param {string} path
   * @param {{event: (text: string) => void, state: (state: "open"|"waiting"|"ended", error?: ApiError) => void,
   *   signal: AbortSignal}} followed
   */
  async follow(path, { event, state, signal }) {
    let lastId = "";
    let pause = FIRST_PAUSE;
    while (!signal.aborted) {
      let problem;
      let opened = Infinity;
      try {
        const headers = { accept: "text/event-stream", ...(lastId && { "last-event-id": lastId }) };
        const response = await this.send("GET", path, { headers, signal });
        state("open");
        opened = Date.now();
        for await (const found of events(response.body)) {
          if (found.id) lastId = found.id;
          event(found.data);
        }
      } catch (error) {
        if (signal.aborted) return;
        problem = error instanceof ApiError ? error : new ApiError(0, "The stream broke off.");
      }
      // A stream may also open, repeat what it sent before and end, each time.
      if (Date.now() - opened >= STEADY_MS) pause = FIRST_PAUSE;
      pause = Math.max(pause, (problem?.retryAfter ?? 0) * 1000);
      if (problem?.status === 401) return state("ended", problem);
      state("waiting", problem);
      await waited(pause, signal);
      pause = Math.min(pause * 2, LONGEST_PAUSE);
    }
  }
}

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15_000;
/** How long a stream lasts that is not one of many attempts. */
const STEADY_MS = 10_000;

/** Waits, or less if the signal ends it. */
export function waited(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

/** The events of a stream (HTML standard, section 9.2.6). */
export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let data = [];
  let id = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (line === "" && data.length > 0) {
        yield { data: data.join("\n"), id };
        data = [];
      } else if (line.startsWith("data:")) {
        data.push(line.slice(5).replace(/^ /, ""));
      } else if (line.startsWith("id:")) {
        id = line.slice(3).trim();
      }
    }
  }
}

function withQuery(path, query) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  if (given.length === 0) return path;
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

/** What an error response says. The local API sends `detail`, the hosted one `error` and `details`. */
async function errorOf(response) {
  const body = await response.json().catch(() => null);
  const retryAfter = Number(response.headers.get("retry-after")) || 0;
  const detail = body?.detail;
  if (Array.isArray(detail)) {
    const fields = detail.map((issue) => ({ path: (issue.loc ?? []).slice(1).join("."), message: issue.msg }));
    const message = fields.map((field) => (field.path ? `${field.path}: ${field.message}` : field.message)).join("; ");
    return new ApiError(response.status, message || "The request is invalid.", { fields, retryAfter, body });
  }
  const text = sentence(String(detail ?? body?.error ?? `The service answered ${response.status}`));
  const limit = response.headers.get("ratelimit-limit");
  const said = limit && detail === LOCAL_LIMIT ? `${text.slice(0, -1)}: ${limit} a minute for all callers on this machine `
    + "(web.rate_limit_per_minute)." : text;
  const wait = retryAfter > 0 && response.status === 429 ? ` Try again in ${duration(retryAfter)}.` : "";
  return new ApiError(response.status, said + wait, { retryAfter, body });
}

/** What the local service says when its rate limit is exceeded (src/http/local/error.rs). */
const LOCAL_LIMIT = "Rate limit exceeded";
