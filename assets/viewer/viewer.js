"use strict";

const place = document.getElementById("viewer");

// Nothing is fetched from elsewhere, and no credential is stored: it is forgotten with the page.
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
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
});
