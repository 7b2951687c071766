//! The check of a store that rests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rand::Rng;
use serde_json::{Value, json};
use test_support::extent;

use crate::helpers::run;
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

/// A store in which something was changed is named as not sound, or it holds all that it held.
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
        let sound = said(&check(dir.path(), false));
        let rows = sound.lines().next().unwrap().to_owned();
        assert!(rows.starts_with("store: sound, "), "{sound}");
        for case in 0..extent(12, 200) {
            let copied = tempfile::tempdir().unwrap();
            let to = copied.path().join("data");
            copy(dir.path(), &to);
            let all = files(&to.join("store"));
            let all: Vec<_> = all.into_iter().filter(|(_, size)| *size > 0).collect();
            let (path, size) = &all[rand::rng().random_range(0..all.len())];
            let place = rand::rng().random_range(0..*size);
            let mut bytes = fs::read(path).unwrap();
            let at = usize::try_from(place).unwrap();
            let is_cut = case % 3 == 0;
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
        }
    });
}
