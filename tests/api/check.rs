//! The check of a store that rests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rand::Rng;
use serde_json::{Value, json};
use test_support::{extent, is_full};

use crate::helpers::{ADMIN, PASSWORD, run};
use crate::process::{Service, finish, hosted, program, started_once};
use crate::stix::object;

fn check(dir: &Path, repair: bool) -> Output {
    let mut command = program();
    command.args(["check", "--storage"]);
    command.arg(format!("surrealkv://{}", dir.display()));
    if repair {
        command.arg("--repair");
    }
    finish(&mut command)
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    out + &err
}

/// Every file below a directory, with its size.
fn files(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), entry.metadata().unwrap().len())),
        }
    }
    all
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

#[test]
fn a_damaged_index_is_named_and_made_anew() {
    run(async {
        let dir = started_once();
        let service = Service::start(hosted(dir.path()));
        let admin = service.admin().await;
        let tools: Value = (0..40)
            .map(|at| object("tool", &format!("Kept tool {at}")))
            .collect();
        admin.ingest(tools).await;
        admin.search("Kept tool").await;
        let output = check(dir.path(), false);
        assert!(said(&output).contains("in use"), "{}", said(&output));
        service.stop();
        let output = check(dir.path(), false);
        let text = said(&output);
        assert!(output.status.success() && text.contains("store: sound"), "{text}");
        let all = files(&dir.path().join("index"));
        let (largest, _) = all
            .iter()
            .filter(|(path, _)| path.extension().is_some_and(|end| end == "idx" || end == "term"))
            .max_by_key(|(_, size)| *size)
            .unwrap();
        let mut bytes = fs::read(largest).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0xff;
        fs::write(largest, bytes).unwrap();
        let output = check(dir.path(), false);
        assert!(
            !output.status.success() && said(&output).contains("damaged"),
            "{}",
            said(&output)
        );
        let output = check(dir.path(), true);
        assert!(
            output.status.success() && said(&output).contains("removed"),
            "{}",
            said(&output)
        );
        let service = Service::start(hosted(dir.path()));
        let found = service.admin().await.search("Kept tool 7").await;
        assert_eq!(found["results"][0]["name"], json!("Kept tool 7"));
        service.stop();
    });
}

/// The nodes that a service over this store answers, in order; `None` if it does not start or answers with an error.
async fn served(dir: &Path) -> Option<Vec<Value>> {
    let service = Service::try_start(hosted(dir)).ok()?;
    let client = service.anonymous();
    let account = json!({"email": ADMIN, "password": PASSWORD});
    let signed_in = client.post("/api/auth/login", &account).await;
    if signed_in.status() != 200 {
        return None;
    }
    let token = signed_in.expect(200).await["access_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let graph = client.bearer(&token).get("/api/graph?limit=200").await;
    if graph.status() != 200 {
        return None;
    }
    let mut nodes = graph.expect(200).await["nodes"].as_array().unwrap().clone();
    nodes.sort_by_key(ToString::to_string);
    Some(nodes)
}

/// A store in which something was changed is named as not sound, or it holds all that it held. A service over it answers with what
/// is true or with an error.
#[test]
fn a_store_that_was_changed_anywhere_is_named_or_whole() {
    run(async {
        let dir = started_once();
        let service = Service::start(hosted(dir.path()));
        let admin = service.admin().await;
        let tools: Value = (0..100)
            .map(|at| object("tool", &format!("Kept tool {at}")))
            .collect();
        admin.ingest(tools).await;
        service.stop();
        // The sign-in of this service is in the audit log, too.
        let truth = served(dir.path()).await.unwrap();
        let sound = said(&check(dir.path(), false));
        let rows = sound.lines().next().unwrap().to_owned();
        assert!(rows.starts_with("store: sound, "), "{sound}");
        assert_eq!(truth.len(), 100);
        let (mut started, mut refused) = (0, 0);
        for number in 0..extent(12, 200) {
            let copied = tempfile::tempdir().unwrap();
            let to = copied.path().join("data");
            copy(dir.path(), &to);
            let all = files(&to.join("store"));
            let all: Vec<_> = all.into_iter().filter(|(_, size)| *size > 0).collect();
            let (path, size) = &all[rand::rng().random_range(0..all.len())];
            let place = rand::rng().random_range(0..*size);
            let mut bytes = fs::read(path).unwrap();
            let at = usize::try_from(place).unwrap();
            let is_cut = number % 3 == 0;
            match is_cut {
                true => bytes.truncate(at),
                false => bytes[at] ^= 1 << rand::rng().random_range(0..8),
            }
            fs::write(path, bytes).unwrap();
            let output = check(&to, false);
            let text = said(&output);
            let case = format!("{} at {place} of {size}, cut: {is_cut}", path.display());
            if output.status.success() {
                assert_eq!(text.lines().next().unwrap(), rows, "{case}");
            } else {
                assert!(
                    !text.trim().is_empty() && !text.contains("panicked"),
                    "{case}: {text}"
                );
            }
            if number % 4 == 0 || is_full() {
                match served(&to).await {
                    Some(nodes) => assert_eq!(nodes, truth, "{case}"),
                    None => refused += 1,
                }
                started += 1;
            }
        }
        assert!(
            refused < started || !is_full(),
            "{refused} of {started} services answer nothing any more"
        );
    });
}
