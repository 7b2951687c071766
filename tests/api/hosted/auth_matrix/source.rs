//! The routes that stand in the source.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

/// Every route of the source, as method and path.
pub(super) fn routes_in_the_source() -> BTreeSet<(String, String)> {
    let mut source = BTreeSet::new();
    collect(
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/hosted/mod.rs")),
        &mut source,
    );
    source
}

/// Every route of the source, such as `GET /health`.
pub fn routes_of_the_source() -> BTreeSet<String> {
    let routes = routes_in_the_source().into_iter();
    routes.map(|(method, path)| format!("{method} {path}")).collect()
}

/// Collects every `resource("…")` of a module and its submodules, with the methods of its `.route(…)` calls.
fn collect(file: &Path, into: &mut BTreeSet<(String, String)>) {
    let part = Regex::new(concat!(
        r#"(?m)\bresource\(\s*"([^"]+)"|\.route\(\s*web::(\w+)\(\)"#,
        r"|^(?:pub(?:\(\w+\))? )?mod (\w+);|\.route\(|web::scope\("
    ))
    .unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let mut path = None;
    for found in part.captures_iter(&text) {
        let group = |at| found.get(at).map(|part| part.as_str());
        match (group(1), group(2), group(3), path) {
            (Some(resource), ..) => path = Some(resource),
            (None, Some(method), None, Some(path)) => {
                into.insert((method.to_uppercase(), path.to_owned()));
            }
            (None, None, Some("tests"), _) => {}
            (None, None, Some(module), _) => {
                let own = file.with_extension("");
                // The modules of `mod.rs` are beside it, those of another file in a folder of its name.
                let folder = if file.ends_with("mod.rs") {
                    file.parent().unwrap()
                } else {
                    &own
                };
                let nested = folder.join(module).join("mod.rs");
                let beside = folder.join(module).with_extension("rs");
                collect(if nested.exists() { &nested } else { &beside }, into);
            }
            _ => panic!(
                "{}: {} is a way this test does not read",
                file.display(),
                &found[0]
            ),
        }
    }
}
