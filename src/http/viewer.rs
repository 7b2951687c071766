//! A page that shows an OpenAPI document and sends requests: swagger-ui, from files inside the program.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, Scope, web};
use utoipa_swagger_ui::{Config, serve};

use super::document::Document;
use super::problem::{Problem, resource};
use super::{head_as_get, pages};

/// Only this service's own files and answers. The style sheet has images as data URLs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// swagger-ui's files that the page loads.
const VENDORED: [&str; 3] = ["swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"];
const INDEX: &str = include_str!("../../assets/viewer/index.html");
const SCRIPT: &str = include_str!("../../assets/viewer/viewer.js");
const STYLE: &str = include_str!("../../assets/viewer/viewer.css");

/// A page at a path of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Viewer {
    /// Path of the page; its files are below.
    pub prefix: &'static str,
    /// Path of the document.
    pub document: &'static str,
    pub title: &'static str,
}

static FILES: LazyLock<BTreeMap<&'static str, Document>> = LazyLock::new(|| {
    let config = Arc::new(Config::from("/"));
    let vendored = VENDORED.into_iter().filter_map(|name| {
        let file = serve(name, Arc::clone(&config)).ok().flatten()?;
        Some((name, Document::new(file.bytes.into_owned(), content_type(name))))
    });
    let own = [("viewer.js", SCRIPT), ("viewer.css", STYLE)];
    let own = own.map(|(name, text)| (name, Document::new(text, content_type(name))));
    vendored.chain(own).collect()
});

impl Viewer {
    /// Registers the page and its files.
    pub(super) fn configure<P: Problem>(self, cfg: &mut web::ServiceConfig) {
        cfg.service(self.scope::<P>());
    }

    /// The page and its files, for a service that guards them.
    pub(super) fn scope<P: Problem>(self) -> Scope {
        let page = Arc::new(self.page());
        let index = web::get().to(move |request: HttpRequest| {
            let answer = page.answer_with_policy(&request, POLICY);
            async { answer }
        });
        let slash = web::get().to(move || async move { pages::led(self.prefix) });
        web::scope(self.prefix)
            .service(resource::<P>("").route(index).wrap(from_fn(head_as_get)))
            .service(resource::<P>("/").route(slash).wrap(from_fn(head_as_get)))
            .service(
                resource::<P>("/{file}")
                    .route(web::get().to(file::<P>))
                    .wrap(from_fn(head_as_get)),
            )
    }

    fn page(&self) -> Document {
        let page = INDEX.replace("{prefix}", self.prefix);
        let page = page.replace("{document}", self.document);
        Document::new(page.replace("{title}", self.title), "text/html; charset=utf-8")
    }
}

async fn file<P: Problem>(request: HttpRequest, name: web::Path<String>) -> HttpResponse {
    match FILES.get(name.as_str()) {
        Some(file) => file.answer_with_policy(&request, POLICY),
        None => P::NO_ROUTE.error_response(),
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "png")) => "image/png",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_the_page_loads_is_inside_the_program() {
        let viewer = Viewer {
            prefix: "/docs",
            document: "/openapi.json",
            title: "Title",
        };
        let page = String::from_utf8(viewer.page().body.to_vec()).unwrap();
        let own = regex::Regex::new(r#"(?:src|href)="([^"]+)""#).unwrap();
        let loaded: Vec<&str> = own
            .captures_iter(&page)
            .filter_map(|found| found.get(1))
            .map(|found| found.as_str())
            .collect();
        assert_eq!(loaded.len(), 6, "{page}");
        for path in loaded {
            let name = path.strip_prefix("/docs/");
            let known = name.is_some_and(|name| FILES.contains_key(name));
            assert!(known || path == "/openapi.json", "{path}");
        }
        for inline in [
            "<style",
            "style=",
            "onload=",
            "<script>",
            "{prefix}",
            "{title}",
            "{document}",
            "//",
        ] {
            assert!(!page.contains(inline), "{inline}");
        }
    }
}
