//! What leads in recall: exact rare words, and what a sentence states rather than the names in it.

use std::collections::{BTreeMap, HashSet};
use std::fs;

use serde_json::Value;
use test_support::{extent, shared};

use super::*;

const KINDS: [&str; 3] = ["attack-pattern", "malware", "tool"];
/// Mean reciprocal ranks that recall must reach: of techniques by sentences that state their use, and of notes by their names.
const BY_SENTENCES: f64 = 0.342;
const BY_NAMES: f64 = 0.93;

/// A text without links and citations.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        out.push_str(before);
        let Some((name, target)) = link.split_once("](") else {
            rest = link;
            continue;
        };
        out.push_str(name);
        rest = target.split_once(')').map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    let mut parts = out.split("(Citation:");
    let first = parts.next().unwrap_or_default().to_owned();
    let others = parts.filter_map(|part| part.split_once(')').map(|(_, rest)| rest));
    first + &others.collect::<String>()
}

fn text<'o>(object: &'o Value, key: &str) -> &'o str {
    object[key].as_str().unwrap_or_default()
}

/// Techniques and software by their ids, and sentences that state the use of a technique, with its id.
struct Library {
    objects: BTreeMap<String, Value>,
    sentences: Vec<(String, String)>,
}

fn library() -> Option<Library> {
    let bundle = fs::read(shared("data/attack/ics-attack.json")?).unwrap();
    let mut bundle: Value = serde_json::from_slice(&bundle).unwrap();
    let objects = bundle["objects"].as_array_mut().map(std::mem::take).unwrap();
    let is_current = |object: &Value| object["revoked"] != true && object["x_mitre_deprecated"] != true;
    let (relations, objects): (Vec<Value>, Vec<Value>) = objects
        .into_iter()
        .filter(is_current)
        .partition(|object| object["type"] == "relationship");
    let objects = objects
        .into_iter()
        .filter(|object| KINDS.contains(&text(object, "type")) && !text(object, "description").is_empty());
    let objects: BTreeMap<String, Value> = objects
        .map(|object| (text(&object, "id").to_owned(), object))
        .collect();
    let mut seen = HashSet::new();
    let sentences = relations
        .iter()
        .filter(|relation| relation["relationship_type"] == "uses");
    let sentences = sentences
        .map(|relation| {
            (
                plain(text(relation, "description")),
                text(relation, "target_ref").to_owned(),
            )
        })
        .filter(|(sentence, target)| {
            (1..1_000).contains(&sentence.len())
                && target.starts_with("attack-pattern")
                && objects.contains_key(target)
                && seen.insert(sentence.clone())
        });
    let sentences = sentences.collect();
    Some(Library { objects, sentences })
}

async fn reciprocal_rank(core: &NoteCore, query: &str, want: Uuid) -> f64 {
    let found = ids(core, query, None).await;
    found
        .iter()
        .position(|id| *id == want)
        .map_or(0.0, |at| 1.0 / (at + 1) as f64)
}

#[test]
fn a_sentence_is_found_by_what_it_states_and_a_name_by_its_note() {
    let Some(Library { objects, sentences }) = library() else {
        return;
    };
    run(async {
        let core = fresh(tuning()).await;
        let mut notes = HashMap::new();
        for (id, object) in &objects {
            let told = remember(
                &core,
                &format!("{}: {}", text(object, "name"), plain(text(object, "description"))),
            )
            .await;
            notes.insert(id.clone(), told.note_id);
        }
        let step = extent((sentences.len() / 80).max(1), 1);
        let (mut sum, mut asked) = (0.0, 0);
        for (sentence, target) in sentences.iter().step_by(step) {
            sum += reciprocal_rank(&core, sentence, notes[target]).await;
            asked += 1;
        }
        let by_sentences = sum / f64::from(asked);
        let mut sum = 0.0;
        for (id, object) in &objects {
            sum += reciprocal_rank(&core, text(object, "name"), notes[id]).await;
        }
        let by_names = sum / objects.len() as f64;
        eprintln!(
            "{asked} sentences: {by_sentences:.3}; {} names: {by_names:.3}",
            objects.len()
        );
        assert!(by_sentences >= BY_SENTENCES, "{by_sentences}");
        assert!(by_names >= BY_NAMES, "{by_names}");
    });
}

#[test]
fn the_only_note_with_a_code_word_comes_first() {
    run(async {
        let core = fresh(tuning()).await;
        let subjects = [
            "mail servers",
            "power grids",
            "windows services",
            "admin panels",
            "network drivers",
        ];
        let notes = (0..150).map(|number| {
            let subject = subjects[number % subjects.len()];
            let mut note = note(&format!(
                "Sandworm report {number}: malware leaves traces on {subject} and remote agents."
            ));
            note.evolve = false;
            note
        });
        tell(&core, notes.collect()).await;
        remember(&core, "Sandworm used Industroyer.").await;
        let words = [
            "zusuzuze",
            "agent-pavihy",
            "updmngr_k9",
            "HezomuqyControl",
            "/control/loader/nihy",
            "msdtcx.dll",
        ];
        for word in words {
            let long = "Operators went from plant to plant and opened breakers by hand. ".repeat(10);
            let told = remember(
                &core,
                &format!("{long} It leaves {word} there. {long} The plant was number {word}."),
            )
            .await;
            for query in [
                word.to_owned(),
                format!("network {word}"),
                format!("which malware leaves {word}"),
                format!("Which malware that Sandworm uses leaves {word}?"),
            ] {
                let found = ids(&core, &query, None).await;
                assert_eq!(found.first(), Some(&told.note_id), "{query}");
            }
        }
    });
}

#[test]
fn a_statement_is_no_question_about_the_names_in_it() {
    run(async {
        let core = fresh(tuning()).await;
        let notes = (0..40).map(|number| {
            let mut note = note(&format!(
                "Sandworm Team was in the news again, says report {number}."
            ));
            note.evolve = false;
            note
        });
        tell(&core, notes.collect()).await;
        let answer = remember(&core, "Sandworm used Industroyer.").await;
        let wiping = remember(
            &core,
            "T0809: files are deleted and the disks of workstations are wiped so that they no longer start.",
        )
        .await;
        let moving = remember(
            &core,
            "T0867: programs are copied to other workstations of the plant and run there to move laterally.",
        )
        .await;
        for (query, want) in [
            ("Sandworm Team used malware to wipe disks.", &wiping),
            ("Sandworm Team used malware to wipe disks", &wiping),
            (
                "Sandworm has used a tool that wipes the disks of workstations.",
                &wiping,
            ),
            ("Malware of the Sandworm Team wiped disks.", &wiping),
            (
                "Attackers of the Sandworm Team used tools to wipe disks of workstations.",
                &wiping,
            ),
            (
                "Adversaries used PsExec to move laterally across the workstations of the plant.",
                &moving,
            ),
        ] {
            // The note that shares name and verb may be as near, but nothing else.
            let found = ids(&core, query, None).await;
            assert!(found.iter().take(2).any(|id| *id == want.note_id), "{query}");
        }
        for query in [
            "malware used by the Sandworm Team",
            "Which malware did the Sandworm Team use to wipe disks?",
            "list malware that Sandworm Team used",
        ] {
            let found = ids(&core, query, None).await;
            assert_eq!(found.first(), Some(&answer.note_id), "{query}");
        }
    });
}
