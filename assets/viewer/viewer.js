"use strict";

const place = document.getElementById("viewer");

/** The key that the page of a local memory keeps for this tab (web/local/key.js). */
const key = sessionStorage.getItem("threat-memory.key");

const withKey = (request) => {
  if (key && !("X-API-Key" in request.headers)) request.headers["X-API-Key"] = key;
  return request;
};

/** Says where the key is given, if the document needs one. */
const refusals = (response) => {
  const isDocument = new URL(response.url, location.href).pathname === place.dataset.document;
  if (isDocument && response.status === 401) {
    const link = Object.assign(document.createElement("a"), { href: "/", textContent: "the page of this memory" });
    const text = document.createElement("p");
    text.append("The description is protected by a key. Give the key on ", link, ", then come back in the same tab.");
    place.replaceWith(text);
  }
  return response;
};

// Nothing is fetched from elsewhere, and nothing is stored: what *Authorize* takes is forgotten with the page.
SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  queryConfigEnabled: false,
  persistAuthorization: false,
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "list",
  tryItOutEnabled: true,
  displayRequestDuration: true,
  requestInterceptor: withKey,
  responseInterceptor: refusals,
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
