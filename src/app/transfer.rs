//! The commands `export` and `import`: the STIX objects of one workspace of a hosted service, as its own TAXII server gives them
//! to the caller and as its own ingest takes them, so that markings, grants, limits and the audit log hold as for any client.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use url::form_urlencoded::byte_serialize;
use uuid::Uuid;

use super::client::{Credential, ServiceClient};
use super::part_file::PartFile;
use crate::archive::Digest;
use crate::lifecycle::StartError;

/// Media type of TAXII 2.1 (section 1.6.8).
const TAXII: &str = "application/taxii+json;version=2.1";
/// Objects of a page.
const PAGE: usize = 1000;
/// Objects of a request that ingests, and about the bytes of its body at most.
const MOST_OBJECTS: usize = 1000;
const MOST_BYTES: usize = 8 << 20;
/// Reasons for objects that were left out that are shown.
const SHOWN: usize = 20;

/// What to export from, or to import into, and the file.
pub struct TransferTask {
    /// A hosted service.
    pub url: String,
    pub credential: Option<Credential>,
    /// `-` is standard output or input.
    pub file: PathBuf,
}

#[derive(Deserialize)]
struct Discovery {
    #[serde(default)]
    api_roots: Vec<String>,
}

/// An envelope (section 3.7).
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    more: bool,
    next: Option<String>,
    #[serde(borrow, default)]
    objects: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Bundle<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow, default)]
    objects: Vec<&'a RawValue>,
}

/// The body of a request that ingests.
#[derive(Serialize)]
struct Ingest<'a> {
    bundle: Piece<'a>,
}

#[derive(Serialize)]
struct Piece<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: String,
    objects: &'a [&'a RawValue],
}

/// Writes everything of the caller's workspace that may leave it into a bundle; returns what was written, in lines.
///
/// # Errors
/// In words: the service can't be reached or refuses, or the file can't be written. There is no file then.
pub async fn export(task: TransferTask) -> Result<String, StartError> {
    let client = ServiceClient::new(&task.url, task.credential.as_ref()).await?;
    if task.file == Path::new("-") {
        let (_, held_back) = write_bundle(&client, &mut io::stdout().lock()).await?;
        eprint!("{}", told(held_back));
        return Ok(String::new());
    }
    let part = PartFile::begin(&task.file)?;
    let mut out = io::BufWriter::new(part.writer()?);
    let (objects, held_back) = write_bundle(&client, &mut out).await?;
    drop(out);
    part.finish()?;
    let objects = format!("{}: {objects} objects\n", task.file.display());
    Ok(objects + &told(held_back))
}

/// What is said of objects that were held back.
fn told(held_back: u64) -> String {
    match held_back {
        0 => String::new(),
        count => {
            format!("{count} more may not leave the workspace: their marking or their feed forbids it.\n")
        }
    }
}

/// Writes a bundle page by page; returns its objects, and how many were held back.
async fn write_bundle(client: &ServiceClient, out: &mut impl Write) -> Result<(usize, u64), StartError> {
    let found = client.get("taxii2/", TAXII).await?.body;
    let found: Discovery = read(&found)?;
    let root = found
        .api_roots
        .first()
        .and_then(|root| root.trim_end_matches('/').rsplit('/').next());
    let root =
        root.ok_or_else(|| StartError::Setup("the service names no workspace of the caller".into()))?;
    let failed = |error| StartError::Io("the bundle".into(), error);
    write!(
        out,
        "{{\"type\":\"bundle\",\"id\":\"bundle--{}\",\"objects\":[",
        Uuid::new_v4()
    )
    .map_err(failed)?;
    let (mut written, mut held_back, mut next) = (HashSet::new(), 0, None::<String>);
    loop {
        let mut path = format!("taxii2/{root}/collections/all/objects/?limit={PAGE}");
        if let Some(next) = &next {
            path.extend(["&next="].into_iter().chain(byte_serialize(next.as_bytes())));
        }
        let page = client.get(&path, TAXII).await?;
        let held = page
            .headers
            .get("x-held-back")
            .and_then(|held| held.to_str().ok()?.parse().ok());
        held_back += held.unwrap_or(0);
        let envelope: Envelope<'_> = read(&page.body)?;
        for object in envelope.objects {
            // What was added again comes again.
            if written.insert(Digest::of(object.get().as_bytes())) {
                let before = if written.len() == 1 { "\n" } else { ",\n" };
                write!(out, "{before}{}", object.get()).map_err(failed)?;
            }
        }
        match envelope.next.filter(|_| envelope.more) {
            Some(place) => next = Some(place),
            None => break,
        }
    }
    out.write_all(b"\n]}\n")
        .and_then(|()| out.flush())
        .map_err(failed)?;
    Ok((written.len(), held_back))
}

/// Ingests a bundle piece by piece into the caller's workspace; returns what became of its objects, in lines. After an error the
/// pieces before it are ingested; the same bundle again makes nothing double.
///
/// # Errors
/// In words: the file is no bundle, or the service can't be reached or refuses.
pub async fn import(task: TransferTask) -> Result<String, StartError> {
    let text = match task.file == Path::new("-") {
        true => io::read_to_string(io::stdin()),
        false => std::fs::read_to_string(&task.file),
    };
    let name = task.file.display().to_string();
    let text = text.map_err(|error| StartError::Io(name.clone(), error))?;
    let no_bundle = |why: &str| StartError::Setup(format!("{name}: is no STIX bundle: {why}"));
    let bundle: Bundle<'_> = serde_json::from_str(&text).map_err(|error| no_bundle(&error.to_string()))?;
    if bundle.kind != "bundle" {
        return Err(no_bundle("its type is not \"bundle\""));
    }
    let client = ServiceClient::new(&task.url, task.credential.as_ref()).await?;
    let mut summary = Summary::default();
    for objects in pieces(&bundle.objects) {
        let bundle = Piece {
            kind: "bundle",
            id: format!("bundle--{}", Uuid::new_v4()),
            objects,
        };
        let answer = client.post("api/ingest/stix", &Ingest { bundle }).await;
        let answer = answer.map_err(|error| summary.interrupted(&error))?;
        let results = answer["results"].as_object().ok_or_else(|| {
            let error = StartError::Setup(format!("{} does not answer as this service does", task.url));
            summary.interrupted(&error)
        })?;
        summary.add(objects.len(), results);
    }
    Ok(summary.lines())
}

/// The objects in pieces of at most so many, and of about so many bytes.
fn pieces<'a>(objects: &'a [&'a RawValue]) -> impl Iterator<Item = &'a [&'a RawValue]> {
    let mut rest = objects;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |object: &&&RawValue| {
            bytes += object.get().len();
            bytes <= MOST_BYTES
        };
        let count = rest.iter().take(MOST_OBJECTS).take_while(fits).count().max(1);
        let (piece, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(piece)
    })
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, StartError> {
    serde_json::from_slice(body)
        .map_err(|error| StartError::Setup(format!("the answer can't be read: {error}")))
}

/// What became of the objects of all pieces.
#[derive(Debug, Default)]
struct Summary {
    objects: usize,
    counts: BTreeMap<String, u64>,
    skipped: Vec<String>,
}

impl Summary {
    fn add(&mut self, objects: usize, results: &Map<String, Value>) {
        self.objects += objects;
        for (name, value) in results {
            if let Some(count) = value.as_u64() {
                *self.counts.entry(name.clone()).or_default() += count;
            }
        }
        let skipped = results.get("skipped_objects").and_then(Value::as_array);
        for skipped in skipped.into_iter().flatten() {
            if self.skipped.len() < SHOWN {
                self.skipped.push(skipped.to_string());
            }
        }
    }

    fn interrupted(&self, error: &StartError) -> StartError {
        StartError::Setup(format!("{error}; {} objects before are imported", self.objects))
    }

    fn lines(&self) -> String {
        let mut text = format!("{} objects\n", self.objects);
        for (name, count) in self.counts.iter().filter(|(_, count)| **count > 0) {
            writeln!(text, "  {name:<20} {count}").ok();
        }
        for skipped in &self.skipped {
            writeln!(text, "  left out: {skipped}").ok();
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_hold_every_object_once_in_order_within_their_limits() {
        let large = format!("\"{}\"", "x".repeat(MOST_BYTES / 3));
        let huge = format!("\"{}\"", "x".repeat(MOST_BYTES + 1));
        let mut texts: Vec<String> = (0..2500).map(|at| at.to_string()).collect();
        texts.extend([
            large.clone(),
            large.clone(),
            large.clone(),
            huge,
            large,
            "1".into(),
        ]);
        let text = format!("[{}]", texts.join(","));
        let objects: Vec<&RawValue> = serde_json::from_str(&text).unwrap();
        let all: Vec<_> = pieces(&objects).collect();
        let again: Vec<&str> = all.iter().copied().flatten().map(|object| object.get()).collect();
        assert_eq!(again, texts);
        for piece in all {
            let bytes: usize = piece.iter().map(|object| object.get().len()).sum();
            assert!(piece.len() <= MOST_OBJECTS && (bytes <= MOST_BYTES || piece.len() == 1));
        }
        assert_eq!(pieces(&[]).count(), 0);
    }
}
