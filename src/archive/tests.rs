//! Archives of made-up tables: written, checked, cut and changed.

use std::path::{Path, PathBuf};

use chrono::DateTime;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use secrecy::SecretString;
use serde_json::json;
use tempfile::TempDir;

use super::cut::Cutter;
use super::*;

/// A table of rows with these keys and texts.
type Table = Vec<(String, String)>;

fn table(rows: usize, seed: u64) -> Table {
    let mut random = StdRng::seed_from_u64(seed);
    let mut keys: Vec<u64> = (0..rows).map(|_| random.random()).collect();
    keys.sort_unstable();
    let row = |key: u64| {
        (
            format!("{key:016x}"),
            json!({"id": key, "text": format!("text {key}")}).to_string(),
        )
    };
    keys.into_iter().map(row).collect()
}

fn chunks(table: &Table) -> Vec<cut::CutChunk> {
    let mut cutter = Cutter::default();
    let mut chunks: Vec<_> = table
        .iter()
        .filter_map(|(key, row)| cutter.add(key.as_bytes(), row.as_bytes()))
        .collect();
    chunks.extend(cutter.end());
    chunks
}

/// Writes the tables into a file; an increment if there is an archive before.
fn write(path: &Path, before: Option<&SoundArchive>, tables: &[(&str, &Table)]) -> Manifest {
    let since = before.map(|before| {
        let known = before.state.iter().map(|line| (line.digest, line.archive));
        Since::new(before.header.archives.clone(), known)
    });
    let since = since.unwrap_or_default();
    let header = Header::new(ServiceKind::Hosted, 37, DateTime::UNIX_EPOCH, &since.archives);
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArchiveWriter::begin(file, header, since).unwrap();
    for (name, rows) in tables {
        for chunk in chunks(rows) {
            writer.add_chunk(name, &chunk).unwrap();
        }
    }
    writer.finish(Vec::new()).unwrap().1
}

/// The rows of a state, read from its archives.
fn rows(paths: &[PathBuf]) -> Vec<String> {
    let all = inspect_all(paths).unwrap();
    let feeds: Vec<ChunkFeed> = paths.iter().map(|path| ChunkFeed::open(path)).collect();
    let chunks = all.last().unwrap().state.iter();
    let texts = chunks.map(|line| feeds[line.archive].find(line.digest).unwrap().text);
    let texts: Vec<String> = texts.map(|text| String::from_utf8(text).unwrap()).collect();
    texts
        .iter()
        .flat_map(|text| text.lines().map(str::to_owned))
        .collect()
}

fn texts(tables: &[&Table]) -> Vec<String> {
    tables
        .iter()
        .flat_map(|table| table.iter().map(|(_, row)| row.clone()))
        .collect()
}

fn dir() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn increments_hold_what_changed_and_restore_the_whole() {
    let dir = dir();
    let mut random = StdRng::seed_from_u64(1);
    let (mut nodes, edges) = (table(5_000, 1), table(3_000, 2));
    let mut paths = vec![dir.path().join("0")];
    write(&paths[0], None, &[("node", &nodes), ("edge", &edges)]);
    for round in 1..6 {
        let places: Vec<usize> = (0..10).map(|_| random.random_range(0..nodes.len())).collect();
        for place in places {
            match random.random_range(0..3) {
                0 => drop(nodes.remove(place)),
                1 => nodes[place].1 = json!({"id": round, "text": random.random::<u64>()}).to_string(),
                _ => nodes.push((
                    format!("{:016x}", random.random::<u64>()),
                    json!({"new": round}).to_string(),
                )),
            }
            nodes.sort();
        }
        let before = inspect(paths.last().unwrap()).unwrap();
        let path = dir.path().join(round.to_string());
        let manifest = write(&path, Some(&before), &[("node", &nodes), ("edge", &edges)]);
        paths.push(path);
        assert!(
            manifest.chunks <= 20,
            "10 changes rewrite {} chunks",
            manifest.chunks
        );
        assert_eq!(rows(&paths), texts(&[&nodes, &edges]), "round {round}");
    }
    let mut shuffled = paths.clone();
    shuffled.shuffle(&mut random);
    assert!(shuffled == paths || inspect_all(&shuffled).is_err());
    for missing in 0..paths.len() {
        let mut some = paths.clone();
        some.remove(missing);
        // Without the last one it is the state of an earlier archive.
        assert_eq!(
            inspect_all(&some).is_ok(),
            missing == paths.len() - 1,
            "{missing}"
        );
    }
}

#[test]
fn an_archive_that_was_cut_or_changed_anywhere_is_refused_or_says_the_same() {
    let dir = dir();
    let path = dir.path().join("a");
    let nodes = table(2_000, 3);
    write(&path, None, &[("node", &nodes)]);
    let sound = std::fs::read(&path).unwrap();
    let changed = dir.path().join("b");
    let mut random = StdRng::seed_from_u64(4);
    for case in 0..400 {
        let mut bytes = sound.clone();
        let place = random.random_range(0..bytes.len());
        match case % 4 {
            0 => bytes.truncate(place),
            1 => bytes.insert(place, random.random()),
            2 => bytes.extend_from_slice(&sound[place..]),
            _ => bytes[place] ^= 1 << random.random_range(0..8),
        }
        std::fs::write(&changed, &bytes).unwrap();
        match inspect(&changed) {
            // A bit that has no meaning, such as one of an unused field of the frame.
            Ok(_) => assert_eq!(
                rows(std::slice::from_ref(&changed)),
                texts(&[&nodes]),
                "case {case} at {place}"
            ),
            Err(
                ArchiveError::Damaged { .. }
                | ArchiveError::Unfinished(_)
                | ArchiveError::Foreign(_)
                | ArchiveError::TooNew { .. },
            ) => {}
            Err(error) => panic!("case {case} at {place}: {error}"),
        }
    }
}

#[test]
fn a_row_that_comes_or_goes_changes_its_own_chunk() {
    let mut rows = table(20_000, 5);
    let before = chunks(&rows);
    let sizes: Vec<u64> = before.iter().map(|chunk| chunk.rows).collect();
    let average = 20_000 / sizes.len() as u64;
    assert!((32..=128).contains(&average), "{average} rows a chunk");
    rows.remove(10_000);
    rows.insert(3, ("0".repeat(16), "{}".to_owned()));
    rows.sort();
    let new = chunks(&rows).into_iter().filter(|chunk| !before.contains(chunk));
    assert!(new.count() <= 4);
}

#[test]
fn secrets_need_their_passphrase_and_their_archive() {
    let passphrase = |text: &str| SecretString::from(text.to_owned());
    let id = uuid::Uuid::new_v4();
    let secrets = SecretRows {
        rows: vec![("api_key".into(), json!({"key_hash": "h"}))],
        fields: vec![("user".into(), json!("id"), "password_hash".into(), json!("p"))],
    };
    let sealed = SealedSecrets::seal(&secrets, id, &passphrase("a long passphrase")).unwrap();
    let text = serde_json::to_string(&sealed).unwrap();
    assert!(!text.contains("key_hash"));
    let sealed: SealedSecrets = serde_json::from_str(&text).unwrap();
    assert_eq!(
        sealed.open(id, &passphrase("a long passphrase")).unwrap(),
        secrets
    );
    let other = sealed.open(id, &passphrase("another passphrase"));
    assert!(matches!(other, Err(ArchiveError::Passphrase)));
    let moved = sealed.open(uuid::Uuid::new_v4(), &passphrase("a long passphrase"));
    assert!(matches!(moved, Err(ArchiveError::Passphrase)));
}

#[test]
fn an_increment_whose_chunks_are_not_in_its_archives_is_refused() {
    let dir = dir();
    let (small, large) = (table(10, 1), table(2_000, 1));
    let [first, other, last] = ["0", "other", "1"].map(|name| dir.path().join(name));
    write(&first, None, &[("node", &small)]);
    write(&other, None, &[("node", &large)]);
    // Names the first archive, with the chunks of another one.
    let mut before = inspect(&other).unwrap();
    before.header = inspect(&first).unwrap().header;
    write(&last, Some(&before), &[("node", &large)]);
    let said = inspect_all(&[first, last]).unwrap_err().to_string();
    assert!(said.contains("node") && said.contains("should be"), "{said}");
}

#[test]
fn an_entry_that_is_no_file_or_too_large_is_not_read() {
    let dir = dir();
    let path = dir.path().join("0");
    write(&path, None, &[("node", &table(10, 1))]);
    let whole = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
    let header = &whole[..1024];
    for kind in [
        tar::EntryType::GNULongName,
        tar::EntryType::XHeader,
        tar::EntryType::Symlink,
        tar::EntryType::Directory,
        tar::EntryType::Regular,
    ] {
        let mut entry = tar::Header::new_gnu();
        entry.set_entry_type(kind);
        entry.set_path("rows/node/0.jsonl").unwrap();
        entry.set_size(3 << 40);
        entry.set_cksum();
        let bytes = [header, entry.as_bytes(), &[0; 2048]].concat();
        std::fs::write(&path, zstd::encode_all(&bytes[..], 1).unwrap()).unwrap();
        let said = inspect(&path).unwrap_err().to_string();
        assert!(said.contains("is no file of at most"), "{kind:?}: {said}");
    }
}
