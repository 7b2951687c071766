//! The web pages: plain HTML, CSS and ES modules inside the program. See `web/`.
//!
//! Their files are served below a path that names their digest, so that a browser may keep them for ever and never
//! mixes two versions of the program.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, HeaderValue, LOCATION};
use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use include_dir::{Dir, include_dir};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::document::Document;
use super::head_as_get;
use super::problem::{Problem, resource};

/// Only this service's own files and answers, no inline code, and no text that becomes HTML (W3C, Content Security
/// Policy Level 3 and Trusted Types).
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";
/// The path of the files names their digest.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const HTML: &str = "text/html; charset=utf-8";
/// The paths of files begin so.
pub(super) const FILES_BELOW: &str = "/assets/";
/// Path of a file.
const FILE: &str = "/assets/{digest}/{file:.*}";
const FRAME: &str = include_str!("../../web/index.html");
const HANDOVER: &str = include_str!("../../web/handover.html");

/// The folders of `web/` that pages load files from. Cargo watches the files that it knows: a new one is found when another
/// changes, as the one that loads it does.
static FOLDERS: [(&str, Dir<'_>); 8] = [
    ("console", include_dir!("$CARGO_MANIFEST_DIR/web/console")),
    ("graph", include_dir!("$CARGO_MANIFEST_DIR/web/graph")),
    ("ingest", include_dir!("$CARGO_MANIFEST_DIR/web/ingest")),
    ("lib", include_dir!("$CARGO_MANIFEST_DIR/web/lib")),
    ("local", include_dir!("$CARGO_MANIFEST_DIR/web/local")),
    ("review", include_dir!("$CARGO_MANIFEST_DIR/web/review")),
    ("style", include_dir!("$CARGO_MANIFEST_DIR/web/style")),
    ("views", include_dir!("$CARGO_MANIFEST_DIR/web/views")),
];
/// Files in folders that hold other things too.
const SINGLE_FILES: [(&str, &[u8]); 2] = [
    ("icon.svg", include_bytes!("../../web/icon.svg")),
    ("vendor/d3.js", include_bytes!("../../web/vendor/d3.js")),
];

/// The files of `web/` that pages load, by their paths.
static FILES: LazyLock<BTreeMap<String, Document>> = LazyLock::new(|| {
    let in_folders = FOLDERS.iter().flat_map(|(folder, dir)| {
        let files = dir.files();
        files.map(move |file| (format!("{folder}/{}", file.path().display()), file.contents()))
    });
    let single = SINGLE_FILES.map(|(name, bytes)| (name.to_owned(), bytes));
    let documents = in_folders.chain(single).map(|(name, bytes)| {
        let document = Document::new(Bytes::from_static(bytes), content_type(&name));
        (name, document)
    });
    documents.collect()
});

/// Names and contents of all files in 16 hexadecimal digits.
static DIGEST: LazyLock<String> = LazyLock::new(|| {
    let sum = FILES.iter().fold(Sha256::new(), |sum, (name, file)| {
        sum.chain_update(name).chain_update([0]).chain_update(&file.body)
    });
    hex::encode(&sum.finalize()[..8])
});

/// The page of a service.
#[derive(Debug, Clone, Copy)]
pub(super) enum Page {
    /// Management of the local service.
    Local,
    /// Console of the hosted service.
    Console,
}

impl Page {
    /// Registers the page and the files. They hold no data and need no credential.
    pub(super) fn configure<P: Problem>(self, cfg: &mut web::ServiceConfig, path: &'static str) {
        let page = move |request: HttpRequest| async move { self.answer(&request) };
        for (path, route) in [(path, web::get().to(page)), (FILE, web::get().to(file::<P>))] {
            cfg.service(resource::<P>(path).route(route).wrap(from_fn(head_as_get)));
        }
    }

    /// The page, or 304.
    pub(super) fn answer(self, request: &HttpRequest) -> HttpResponse {
        self.document().answer_with_policy(request, POLICY)
    }

    /// The page in place of a refusal.
    pub(super) fn refusal(self, status: StatusCode) -> HttpResponse {
        self.document().once(status, POLICY)
    }

    fn document(self) -> &'static Document {
        static LOCAL: LazyLock<Document> = LazyLock::new(|| page("local"));
        static CONSOLE: LazyLock<Document> = LazyLock::new(|| page("console"));
        match self {
            Self::Local => &LOCAL,
            Self::Console => &CONSOLE,
        }
    }
}

/// Leads from one path of this service to another: what a person types finds the page, with or without a slash at its end.
pub(super) fn lead<P: Problem>(cfg: &mut web::ServiceConfig, from: &'static str, to: &'static str) {
    answer_at::<P>(cfg, from, move || led(to));
}

/// Registers an answer that depends on nothing.
pub(super) fn answer_at<P: Problem>(
    cfg: &mut web::ServiceConfig,
    path: &'static str,
    answer: impl Fn() -> HttpResponse + Copy + 'static,
) {
    let route = web::get().to(move || async move { answer() });
    cfg.service(resource::<P>(path).route(route).wrap(from_fn(head_as_get)));
}

/// A redirect that is not kept, as settings may move the page.
pub(super) fn led(to: &'static str) -> HttpResponse {
    HttpResponse::Found().insert_header((LOCATION, to)).finish()
}

/// The page that hands the answer to a sign-in over to the console listening on this channel.
pub(super) fn handover(status: StatusCode, channel: &str, answer: &Value) -> HttpResponse {
    let page = HANDOVER.replace("{assets}", &assets());
    let page = page.replace("{channel}", &quote_attribute(channel));
    let page = page.replace("{answer}", &quote_attribute(&answer.to_string()));
    Document::new(page, HTML).once(status, POLICY)
}

/// A text as the value of an attribute (HTML standard, section 13.1.2.3).
fn quote_attribute(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;").replace('>', "&gt;")
}

fn assets() -> String {
    format!("/assets/{}", *DIGEST)
}

/// The frame with the main module of a folder of `web/`.
fn page(app: &str) -> Document {
    let page = FRAME.replace("{assets}", &assets());
    Document::new(page.replace("{app}", app), HTML)
}

async fn file<P: Problem>(request: HttpRequest, place: web::Path<(String, String)>) -> HttpResponse {
    let (digest, name) = place.into_inner();
    match FILES.get(name.as_str()) {
        Some(file) if digest == *DIGEST => {
            let mut answer = file.answer_with_policy(&request, POLICY);
            answer.headers_mut().insert(CACHE_CONTROL, FOR_EVER);
            answer
        }
        Some(_) | None => P::NO_ROUTE.error_response(),
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::Path;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// What is in `web/` for people and not for browsers.
    const NOT_SERVED: [&str; 4] = ["index.html", "handover.html", "vendor/build/", ".LICENSE"];

    fn below(dir: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below(&path, root, found);
                continue;
            }
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            if !NOT_SERVED
                .iter()
                .any(|not| name.starts_with(not) || name.ends_with(not))
            {
                found.push(name);
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_inside_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let mut found = Vec::new();
        below(&root, &root, &mut found);
        found.sort();
        let served: Vec<String> = FILES.keys().cloned().collect();
        assert_eq!(found, served);
    }

    #[test]
    fn what_a_module_loads_is_inside_the_program() {
        let import = regex::Regex::new(r#"(?:from|import)\s*\(?\s*"(\.[^"]+)""#).unwrap();
        let mut imports = 0;
        for (name, file) in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let text = std::str::from_utf8(&file.body).unwrap();
            for found in import.captures_iter(text) {
                let mut path: Vec<&str> = name.split('/').collect();
                path.pop();
                for step in found[1].split('/') {
                    match step {
                        "." => {}
                        ".." => drop(path.pop()),
                        step => path.push(step),
                    }
                }
                assert!(
                    FILES.contains_key(path.join("/").as_str()),
                    "{name}: {}",
                    &found[1]
                );
                imports += 1;
            }
        }
        assert!(imports > 5, "{imports}");
    }

    /// Bytes that are sent.
    fn compressed(file: &[u8]) -> usize {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(file).unwrap();
        gzip.finish().unwrap().len()
    }

    #[test]
    fn the_pages_are_small_and_load_nothing_from_elsewhere() {
        let all: usize = FILES.values().map(|file| compressed(&file.body)).sum();
        assert!(all < 226_000, "{all}");
        for app in ["local", "console"] {
            let text = String::from_utf8(page(app).body.to_vec()).unwrap();
            for unwanted in [
                "http:", "https:", "style=", "<style", "<script>", "{assets}", "{app}",
            ] {
                assert!(!text.contains(unwanted), "{app}: {unwanted}");
            }
            assert!(text.contains(&format!("/assets/{}/{app}/main.js", *DIGEST)));
        }
    }

    #[test]
    fn no_script_makes_html_of_text() {
        let own = FILES
            .iter()
            .filter(|(name, _)| name.ends_with(".js") && !name.starts_with("vendor/"));
        for (name, file) in own {
            let text = std::str::from_utf8(&file.body).unwrap();
            for unwanted in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "localStorage",
                "document.cookie",
            ] {
                assert!(!text.contains(unwanted), "{name}: {unwanted}");
            }
        }
    }
}
