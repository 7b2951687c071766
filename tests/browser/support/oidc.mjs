// An OpenID Connect provider with a page on which its user allows or denies a sign-in.

import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";

const CLIENT = "threat-memory";

/** Starts a provider whose only user has this address. `environment` makes a service use it as `corp`. */
export async function provider(email) {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const codes = new Map();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, issuer);
    const answer = await (pages[`${request.method} ${url.pathname}`] ?? none)(url, request);
    const { status = 200, type = "application/json", body, location } = answer;
    response.writeHead(status, location ? { location } : { "content-type": type });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const none = () => ({ status: 404, body: "" });
  const pages = {
    "GET /.well-known/openid-configuration": () => ({ body: discovery(issuer) }),
    "GET /jwks": () => ({
      body: { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "1", alg: "RS256", use: "sig" }] },
    }),
    "GET /authorize": (url) => ({ type: "text/html", body: consent(url) }),
    "GET /decided": (url) => decided(url, codes),
    "POST /token": async (_, request) =>
      token(new URLSearchParams(await textOf(request)), { issuer, email, codes, privateKey }),
  };
  return {
    environment: (port) => ({
      THREAT_MEMORY_OAUTH__PUBLIC_URL: `http://127.0.0.1:${port}`,
      THREAT_MEMORY_OAUTH__PROVIDERS__CORP__KIND: "oidc",
      THREAT_MEMORY_OAUTH__PROVIDERS__CORP__ISSUER: issuer,
      THREAT_MEMORY_OAUTH__PROVIDERS__CORP__CLIENT_ID: CLIENT,
    }),
    end: () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  };
}

async function textOf(request) {
  let text = "";
  for await (const part of request.setEncoding("utf8")) text += part;
  return text;
}

const discovery = (issuer) => ({
  issuer,
  authorization_endpoint: `${issuer}/authorize`,
  token_endpoint: `${issuer}/token`,
  jwks_uri: `${issuer}/jwks`,
  response_types_supported: ["code"],
  subject_types_supported: ["public"],
  id_token_signing_alg_values_supported: ["RS256"],
  code_challenge_methods_supported: ["S256"],
});

const consent = (url) => `<!DOCTYPE html><title>Provider</title><h1>Provider</h1>
  <a href="/decided?allow=1&amp;${url.searchParams}">Allow</a> <a href="/decided?${url.searchParams}">Deny</a>`;

function decided(url, codes) {
  const asked = url.searchParams;
  const back = new URL(asked.get("redirect_uri"));
  back.searchParams.set("state", asked.get("state"));
  if (asked.has("allow")) {
    const code = randomUUID();
    codes.set(code, { nonce: asked.get("nonce"), challenge: asked.get("code_challenge") });
    back.searchParams.set("code", code);
  } else {
    back.searchParams.set("error", "access_denied");
  }
  return { status: 302, location: back.href, body: "" };
}

function token(form, { issuer, email, codes, privateKey }) {
  const grant = codes.get(form.get("code"));
  codes.delete(form.get("code"));
  const challenge = createHash("sha256")
    .update(form.get("code_verifier") ?? "")
    .digest("base64url");
  if (grant?.challenge !== challenge) return { status: 400, body: { error: "invalid_grant" } };
  const now = Math.floor(Date.now() / 1000);
  const claims = {
    iss: issuer,
    aud: CLIENT,
    sub: "1",
    iat: now,
    exp: now + 300,
    nonce: grant.nonce,
    email,
    email_verified: true,
  };
  const parts = [{ alg: "RS256", typ: "JWT", kid: "1" }, claims].map((part) =>
    Buffer.from(JSON.stringify(part)).toString("base64url"),
  );
  const signature = sign("sha256", Buffer.from(parts.join(".")), privateKey).toString("base64url");
  return {
    body: {
      access_token: randomUUID(),
      token_type: "Bearer",
      expires_in: 300,
      id_token: [...parts, signature].join("."),
    },
  };
}
