//! The data directory as an operator finds it after an accident: a disk that is not mounted, a log that is gone, an older
//! back-up, changed bytes, loose permissions, too few file descriptors.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::helpers::{Client, run};
use crate::process::{Service, finish, hosted, started_once};
use crate::stix::{object, text, with};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Hosted,
    Local,
}

impl Kind {
    fn command(self, dir: &Path) -> Command {
        match self {
            Self::Hosted => hosted(dir),
            Self::Local => crate::local::durability::local(dir, 2),
        }
    }

    fn start(self, dir: &Path) -> Service {
        Service::start(self.command(dir))
    }

    async fn client(self, service: &Service) -> Client {
        match self {
            Self::Hosted => service.admin().await,
            Self::Local => service.anonymous(),
        }
    }

    async fn write(self, service: &Service) {
        let client = self.client(service).await;
        if self == Self::Hosted {
            client.ingest(json!([object("tool", "Heron Loader")])).await;
        } else {
            let note = json!({"content": "Heron Loader talks to 198.51.100.7"});
            client.post("/api/remember", &note).await.expect(200).await;
        }
    }

    async fn found(self, service: &Service) -> String {
        let client = self.client(service).await;
        match self {
            Self::Hosted => client.search("Heron Loader").await["results"].to_string(),
            Self::Local => {
                let query = json!({"query": "Heron Loader"});
                let found = client.post("/api/recall", &query).await.expect(200).await;
                found["results"].to_string()
            }
        }
    }
}

/// Both services, each with a data directory that was in use.
fn services() -> [(tempfile::TempDir, Kind); 2] {
    [
        (started_once(), Kind::Hosted),
        (crate::local::started_once(), Kind::Local),
    ]
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The command does not start, and says why on its standard error.
fn refused(mut command: Command) -> String {
    let output = finish(&mut command);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    said
}

fn accepting(mut command: Command) -> Command {
    command.arg("--accept-loss");
    command
}

/// Refused with the store, the numbers and the way on.
fn assert_refused(dir: &Path, kind: Kind, place: &str) {
    let said = refused(kind.command(dir));
    let store = dir.join("store").display().to_string();
    for part in ["--accept-loss", "the number ", "number ", &store] {
        assert!(said.contains(part), "{place}: {said}");
    }
}

#[test]
fn a_store_that_is_gone_or_empty_is_no_first_start() {
    for (dir, kind) in services() {
        let store = dir.path().join("store");
        fs::remove_dir_all(&store).unwrap();
        assert_refused(dir.path(), kind, "gone");
        fs::create_dir(&store).unwrap();
        assert_refused(dir.path(), kind, "empty");
        // The version before left no marker.
        fs::remove_file(dir.path().join("store.marker")).unwrap();
        assert_refused(dir.path(), kind, "without a marker");
        Service::start(accepting(kind.command(dir.path()))).stop();
        kind.start(dir.path()).stop();
    }
}

#[test]
fn a_store_of_the_version_before_has_no_marker_and_starts() {
    for (dir, kind) in services() {
        fs::remove_file(dir.path().join("store.marker")).unwrap();
        kind.start(dir.path()).stop();
        assert!(dir.path().join("store.marker").exists());
    }
}

fn remove_log(store: &Path) {
    for file in fs::read_dir(store.join("wal")).unwrap() {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
}

fn empty_log(store: &Path) {
    for file in fs::read_dir(store.join("wal")).unwrap() {
        fs::write(file.unwrap().path(), "").unwrap();
    }
}

#[test]
fn a_log_that_is_gone_after_a_crash_is_noticed() {
    run(async {
        type Loss = (&'static str, fn(&Path));
        let lose: [Loss; 2] = [("removed", remove_log), ("emptied", empty_log)];
        for (dir, kind) in services() {
            let service = kind.start(dir.path());
            kind.write(&service).await;
            service.kill();
            for (how, lose) in lose {
                let damaged = tempfile::tempdir().unwrap();
                copy(dir.path(), damaged.path());
                lose(&damaged.path().join("store"));
                // The engine itself may refuse the directory, with a reason of its own.
                let said = refused(kind.command(damaged.path()));
                assert!(said.contains("could not start"), "{how}: {said}");
            }
            // After the crash alone nothing is missing.
            kind.start(dir.path()).stop();
        }
    });
}

/// Writes into a directory, and puts the store of before back, without what is beside it.
async fn put_older_store_back(dir: &Path, kind: Kind) {
    let store = dir.join("store");
    let older = tempfile::tempdir().unwrap();
    copy(&store, older.path());
    let service = kind.start(dir);
    kind.write(&service).await;
    service.stop();
    fs::remove_dir_all(&store).unwrap();
    copy(older.path(), &store);
}

#[test]
fn an_older_store_under_a_newer_marker_is_noticed() {
    run(async {
        for (dir, kind) in services() {
            put_older_store_back(dir.path(), kind).await;
            assert_refused(dir.path(), kind, "an older store");
            // What was derived from the lost part is given up, too.
            let service = Service::start(accepting(kind.command(dir.path())));
            let found = kind.found(&service).await;
            assert!(!found.contains("Heron Loader"), "{found}");
            service.stop();
            kind.start(dir.path()).stop();
        }
    });
}

#[test]
fn what_was_derived_from_a_store_under_an_unreadable_marker_is_made_anew() {
    run(async {
        for (dir, kind) in services() {
            put_older_store_back(dir.path(), kind).await;
            fs::write(dir.path().join("store.marker"), "no number").unwrap();
            let said = refused(kind.command(dir.path()));
            assert!(said.contains("store.marker: it does not hold a number"), "{said}");
            let left_over = dir.path().join("index/left-over");
            fs::write(&left_over, "").unwrap();
            let service = Service::start(accepting(kind.command(dir.path())));
            let found = kind.found(&service).await;
            assert!(!found.contains("Heron Loader"), "{found}");
            assert!(!left_over.exists());
            service.stop();
        }
    });
}

/// Changes the first byte of this text wherever a table of the engine holds it.
fn damage_tables(dir: &Path, wanted: &str) -> usize {
    let mut changed = 0;
    for file in fs::read_dir(dir.join("store/sstables")).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let found = bytes.windows(wanted.len()).enumerate();
        let found = found.filter(|(_, part)| *part == wanted.as_bytes());
        for at in found.map(|(at, _)| at).collect::<Vec<_>>() {
            bytes[at] ^= 1;
            changed += 1;
        }
        fs::write(path, bytes).unwrap();
    }
    changed
}

#[test]
fn changed_bytes_are_answered_with_an_error() {
    run(async {
        let dir = started_once();
        let service = Service::start(hosted(dir.path()));
        let client = service.admin().await;
        // Nothing in it repeats, so it stays long when it is compressed.
        let words: Vec<String> = (0..6000u64)
            .map(|at| format!("{:x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect();
        let long = with(
            object("tool", "Otter Loader"),
            json!({"description": words.join(" ")}),
        );
        client.ingest(json!([long, object("tool", "Sedge Tool")])).await;
        let id = text(&client.search("Otter Loader").await["results"][0], "id").to_owned();
        let found = client.search("Otter Loader").await;
        let session = text(&found, "recall_id");
        // An erasure writes all that stays into tables.
        let other = client.search("Sedge Tool").await["results"][0]["id"].clone();
        client.erase(json!({"node_ids": [other]})).await;
        // Paths of what was read, and the part of the answer that never changes.
        let reads = [
            (format!("/api/nodes/{id}"), "node"),
            (format!("/api/recall/sessions/{session}/export.stix"), "objects"),
        ];
        let mut originals = Vec::new();
        for (path, part) in &reads {
            let original = client.get(path).await.expect(200).await[part].clone();
            assert!(original.to_string().len() > 50_000, "{path}");
            originals.push(original);
        }
        service.stop();
        let changed = damage_tables(dir.path(), &words[3000]);
        assert!(changed > 0, "no table has the value");
        let service = match Service::try_start(hosted(dir.path())) {
            Ok(service) => service,
            // The value can lie in one block with what a start reads.
            Err(said) => {
                assert!(said.contains("checksum verification failed"), "{said}");
                return;
            }
        };
        let client = service.admin().await;
        let mut refused = 0;
        for ((path, part), original) in reads.iter().zip(&originals) {
            let (status, body) = client.get(path).await.whole().await;
            match status {
                200 => {
                    let answer: Value = serde_json::from_str(&body).unwrap();
                    assert_eq!(&answer[part], original, "{path}");
                }
                500 => {
                    assert!(body.contains("damaged"), "{body}");
                    refused += 1;
                }
                other => panic!("{path}: {other}: {body}"),
            }
        }
        assert!(refused > 0, "no read has met any of {changed} changed bytes");
    });
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn loose_permissions_are_mended() {
    for (dir, kind) in services() {
        let secret = dir.path().join("jwt.secret");
        let marker = dir.path().join("store.marker");
        let set = |path: &PathBuf, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for loose in [0o644, 0o1644] {
            set(&secret, loose);
            set(&marker, 0o666);
            set(&dir.path().to_owned(), 0o755);
            kind.start(dir.path()).stop();
            assert_eq!(
                (mode(&secret), mode(&marker), mode(dir.path())),
                (0o600, 0o600, 0o700)
            );
        }
    }
}

/// The command under a limit of open files that it can't raise.
fn limited(command: &Command, files: u32) -> Command {
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &format!("ulimit -n {files}; exec \"$0\" \"$@\"")])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

#[test]
fn too_few_descriptors_are_told_at_the_start() {
    for (dir, kind) in services() {
        // Some are met before the runtime is built, and the last one where the service is known.
        for files in [8, 9, 10, 12, 16, 20, 24, 32, 64, 128, 199, 204] {
            let said = refused(limited(&kind.command(dir.path()), files));
            assert!(
                said.contains(&format!("open files is {files}")) && said.contains("ulimit -n "),
                "{said}"
            );
        }
        Service::start(limited(&kind.command(dir.path()), 1024)).stop();
    }
}
