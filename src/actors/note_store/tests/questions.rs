//! Questions that ask for related things: what the graph answers comes first, everything else stays as it was.

mod denials;
mod kinds;
mod work;

use super::*;
use crate::actors::note_store::graph::MemoryGraph;
use crate::actors::note_store::question::QuestionAnswers;
use crate::clock;
use crate::domain::memory::why::NoteWhy;
use crate::domain::question::{Kind, ModelReading, Question};
use crate::store::{StoredEntity, StoredRelation};

/// Notes of which most mention Sandworm and have words of the questions.
const NOTES: &[&str] = &[
    "Sandworm used Industroyer.",
    "Industroyer speaks four protocols of substations.",
    "What malware Sandworm may use next is a question that Sandworm watchers ask.",
    "Which malware, which tools, which techniques: Sandworm has them all, analysts say.",
    "Sandworm was in the news again.",
    "Turla uses Snake.",
    "APT28 uses X-Agent.",
    "Emotet downloads TrickBot.",
    "Sandworm used T0859.",
    "M0932 mitigates T0859.",
    "M0937 mitigates T0800.",
];

/// All notes that are alike in any way.
async fn asked_for_all(core: &NoteCore, query: &str, scope: Scope, k: usize) -> NotesFound {
    let message = RecallNotes {
        question: read(query),
        k,
        options: RecallOptions {
            scope,
            explain: true,
            min_score: Some(0.0),
        },
    };
    core.recall_notes(message).await.unwrap()
}

async fn asked(core: &NoteCore, query: &str, scope: Scope, k: usize) -> NotesFound {
    let message = RecallNotes {
        question: read(query),
        k,
        options: RecallOptions {
            scope,
            explain: true,
            ..RecallOptions::default()
        },
    };
    core.recall_notes(message).await.unwrap()
}

async fn told(core: &NoteCore, query: &str) -> Vec<(String, NoteWhy)> {
    let found = asked(core, query, Scope::default(), 10).await;
    let note = |found: FoundNote| (found.note.content, found.why.unwrap());
    found.notes.into_iter().map(note).collect()
}

async fn filled() -> Arc<NoteCore> {
    let core = fresh(tuning()).await;
    for content in NOTES {
        remember(&core, content).await;
    }
    core
}

async fn relate(core: &NoteCore, ends: [(&str, &str); 2], label: &str, seen: Option<&str>) {
    let [source, target] = ends.map(|(of_type, value)| EntityDraft::from_name(of_type, value, 1.0).unwrap());
    let seen = seen.map(|seen| ("first_seen".to_owned(), json!(seen)));
    let message = IngestRelationship {
        source,
        target,
        relationship: label.into(),
        properties: Map::from_iter(seen),
        from: HERE,
    };
    core.ingest_relationship(message).await.unwrap();
}

fn way(why: &NoteWhy) -> Vec<String> {
    let step = |step: &crate::domain::memory::why::EntityStep| {
        let by = match (&step.relationship, step.outgoing) {
            (Some(name), Some(true)) => format!("-{name}-> "),
            (Some(name), _) => format!("<-{name}- "),
            (None, _) => String::new(),
        };
        format!("{by}{}", step.id)
    };
    why.path.iter().map(step).collect()
}

#[test]
fn what_states_the_relationship_comes_first_then_what_is_on_the_answer() {
    run(async {
        let core = filled().await;
        for question in [
            "Which malware does Sandworm use?",
            "malware of Sandworm Team",
            "Sandworm's arsenal",
        ] {
            let found = told(&core, question).await;
            assert_eq!(found[0].0, NOTES[0], "{question}");
            assert_eq!(found[1].0, NOTES[1], "{question}");
            assert_eq!(
                way(&found[0].1),
                ["actor:sandworm-team", "-uses-> malware:industroyer"]
            );
            assert_eq!(found[0].1.passages[0].text, NOTES[0]);
        }
        for (question, first) in [
            ("Who uses Industroyer?", NOTES[0]),
            ("which groups use T0859", NOTES[8]),
            ("What mitigates T0859?", NOTES[9]),
            ("Which techniques does M0932 mitigate?", NOTES[9]),
        ] {
            assert_eq!(told(&core, question).await[0].0, first, "{question}");
        }
        let who = told(&core, "Who uses Industroyer?").await;
        assert_eq!(
            way(&who[0].1),
            ["malware:industroyer", "<-uses- actor:sandworm-team"]
        );
    });
}

#[test]
fn two_steps_lead_over_what_is_between() {
    run(async {
        let core = filled().await;
        relate(
            &core,
            [("actor", "APT28"), ("organization", "GRU")],
            "attributed-to",
            None,
        )
        .await;
        let found = told(&core, "malware of groups attributed to the GRU").await;
        assert_eq!(found[0].0, NOTES[6]);
        assert_eq!(
            way(&found[0].1),
            [
                "organization:gru",
                "<-attributed-to- actor:apt28",
                "-uses-> malware:x-agent"
            ]
        );
        let found = told(&core, "which mitigations cover what Sandworm uses").await;
        assert_eq!(found[0].0, NOTES[9]);
        assert_eq!(
            way(&found[0].1),
            [
                "actor:sandworm-team",
                "-uses-> attack_pattern:t0859",
                "<-mitigates- course_of_action:m0932"
            ]
        );
        assert!(found[0].1.shares.graph > 0.0 && found[0].1.shares.evidence > 0.0);
        // The mitigation of another technique is no answer.
        let other = found.iter().find(|(content, _)| content == NOTES[10]);
        assert!(other.is_none_or(|(_, why)| why.path.is_empty()));
    });
}

#[test]
fn a_question_of_a_time_is_answered_by_what_is_of_it() {
    run(async {
        let core = fresh(tuning()).await;
        remember(&core, "In December 2016 Sandworm used Industroyer against Kyiv.").await;
        remember(&core, "In 2022 Sandworm used HermeticWiper and CaddyWiper.").await;
        remember(&core, "Sandworm used Mimikatz.").await;
        remember(&core, "Turla uses Snake.").await;
        let first = async |question: &str| told(&core, question).await.remove(0).0;
        for (question, year) in [
            ("Which malware did Sandworm use in 2016?", "In December 2016"),
            ("malware of Sandworm before 2020", "In December 2016"),
            (
                "Which malware has Sandworm used between 2021 and 2023?",
                "In 2022",
            ),
        ] {
            assert!(first(question).await.starts_with(year), "{question}");
        }
        let today = first("Which malware of Sandworm was added this year?").await;
        assert!(today.contains("Sandworm used"), "{today}");
        // A relationship can say when it was seen.
        relate(
            &core,
            [("actor", "Turla"), ("malware", "Kazuar")],
            "uses",
            Some("2014-05-01T00:00:00Z"),
        )
        .await;
        remember(&core, "Kazuar is written in C#.").await;
        for (year, is_answered) in [(2014, true), (2013, false)] {
            let question = format!("Which malware did Turla use in {year}?");
            let found = asked(&core, &question, Scope::default(), 10).await;
            let plan = found.question.unwrap().plan;
            assert_eq!(plan.is_some(), is_answered, "{year}");
            let is_first = found.notes[0].note.content.starts_with("Kazuar");
            assert_eq!(is_first, is_answered, "{year}");
        }
    });
}

#[test]
fn the_time_asked_for_is_that_of_campaigns_on_the_way() {
    run(async {
        let core = fresh(tuning()).await;
        let campaign = ("campaign", "Operation Reedbed");
        let seen = Some("2016-05-01T00:00:00Z");
        relate(&core, [campaign, ("actor", "Sandworm")], "attributed-to", seen).await;
        relate(&core, [campaign, ("malware", "Industroyer")], "uses", None).await;
        remember(&core, "Industroyer speaks four protocols of substations.").await;
        for (year, is_answered) in [(2016, true), (2013, false)] {
            let question = format!("Which malware was used in campaigns of Sandworm in {year}?");
            let found = told(&core, &question).await;
            let expected: &[&str] = if is_answered {
                &[
                    "actor:sandworm-team",
                    "<-attributed-to- campaign:operation-reedbed",
                    "-uses-> malware:industroyer",
                ]
            } else {
                &[]
            };
            let first = found.first().map_or_else(Vec::new, |(_, why)| way(why));
            assert_eq!(first, expected, "{year}");
        }
    });
}

#[test]
fn what_was_entered_in_a_time_may_have_been_seen_in_another() {
    run(async {
        let core = fresh(tuning()).await;
        let seen = Some("2014-05-01T00:00:00Z");
        relate(&core, [("actor", "Turla"), ("malware", "Kazuar")], "uses", seen).await;
        remember(&core, "Kazuar is written in C#.").await;
        let found = told(&core, "Which malware of Turla was added this year?").await;
        assert_eq!(way(&found[0].1), ["actor:turla", "-uses-> malware:kazuar"]);
    });
}

#[test]
fn what_uses_a_sub_technique_comes_after_what_uses_the_technique() {
    run(async {
        let core = fresh(tuning()).await;
        let [whole, part] = ["T1003", "T1003.001"].map(|id| ("attack_pattern", id));
        relate(&core, [("actor", "APT28"), part], "uses", None).await;
        relate(&core, [("actor", "Turla"), whole], "uses", None).await;
        let memory = core.memory().await.unwrap();
        let graph = memory.graph();
        let reading = Question::read("Which groups use T1003?", clock::now());
        let asked = graph.understand(&reading).unwrap();
        let answered = QuestionAnswers::to(&graph, asked, &Scope::default());
        let values = answered.answers.iter().map(|answer| {
            let entity = graph.entity_in(answer.thing).unwrap();
            entity.public_id()
        });
        assert_eq!(values.collect::<Vec<_>>(), ["actor:turla", "actor:apt28"]);
    });
}

#[test]
fn a_question_that_names_nothing_relational_has_the_scores_of_search_and_neighbourhood() {
    run(async {
        let core = filled().await;
        let memory = core.memory().await.unwrap();
        for question in [
            "Sandworm",
            "Tell me about Industroyer",
            "Emotet activity since 2020",
            "protocols of substations",
            "Is Sandworm in the news?",
            "What is Snake?",
            "CVE-2024-3094",
            "",
        ] {
            let scope = Scope::default();
            let answered = core
                .answer_note_question(memory, &read(question), &scope)
                .await
                .unwrap();
            assert!(answered.is_none(), "{question}");
            let found = asked(&core, question, scope, 10).await;
            assert!(found.question.unwrap().plan.is_none());
            let plain = RecallNotes {
                question: read(question),
                k: 10,
                options: RecallOptions::default(),
            };
            let plain = core.recall_notes(plain).await.unwrap();
            let scores = |notes: &[FoundNote]| -> Vec<(Uuid, f32)> {
                notes.iter().map(|found| (found.note.id, found.score)).collect()
            };
            let (plain, told) = (scores(&plain.notes), scores(&found.notes));
            let ids = |scores: &[(Uuid, f32)]| scores.iter().map(|(id, _)| *id).collect::<Vec<_>>();
            assert_eq!(ids(&plain), ids(&told), "{question}");
        }
    });
}

#[test]
fn the_reasons_add_up_and_name_what_matched() {
    run(async {
        let core = filled().await;
        for question in [
            "Which malware does Sandworm use?",
            "Sandworm",
            "protocols",
            "Voodoo Bear news",
        ] {
            for (content, why) in told(&core, question).await {
                let shares = why.shares;
                let sum = shares.words + shares.meaning + shares.graph + shares.evidence;
                assert!((sum - 1.0).abs() < 1e-4, "{question}: {content}: {shares:?}");
                let evidence: f32 = why.passages.iter().map(|passage| passage.share).sum();
                assert!(evidence <= shares.evidence + 1e-6);
            }
        }
        let found = told(&core, "Voodoo Bear news").await;
        let matched = found[0].1.matched.clone().unwrap();
        assert_eq!(
            (matched.text.as_str(), matched.kind.as_str()),
            ("Voodoo Bear", "alias")
        );
        let question = asked(&core, "Who uses Industroyer?", Scope::default(), 5)
            .await
            .question
            .unwrap();
        assert_eq!(question.names[0].id, "malware:industroyer");
        assert_eq!(question.plan.unwrap().wanted[0], Kind::Group);
    });
}

#[test]
fn notes_of_a_time_fill_the_answer() {
    run(async {
        let core = fresh(tuning()).await;
        let mut notes = Vec::new();
        for number in 0..40 {
            let told = remember(
                &core,
                &format!("Report {number}: Sandworm used Industroyer on grid {number}."),
            )
            .await;
            notes.push(core.read_note(ReadNote(told.note_id)).await.unwrap().note);
        }
        let scope = Scope {
            since: Some(notes[10].created_at),
            until: Some(notes[20].created_at),
            ..Scope::default()
        };
        for question in [
            "Sandworm grid",
            "Who uses Industroyer?",
            "Sandworm",
            "unrelated words",
        ] {
            let found = asked_for_all(&core, question, scope.clone(), 11).await;
            let mut ids: Vec<Uuid> = found.notes.iter().map(|found| found.note.id).collect();
            let mut expected: Vec<Uuid> = notes[10..=20].iter().map(|note| note.id).collect();
            ids.sort_unstable();
            expected.sort_unstable();
            assert_eq!(ids, expected, "{question}");
        }
        let elsewhere = Scope {
            domain: Some("other".into()),
            ..scope
        };
        assert!(asked(&core, "Sandworm", elsewhere, 11).await.notes.is_empty());
    });
}

#[test]
fn what_a_language_model_read_is_answered_from_the_graph() {
    run(async {
        let core = filled().await;
        let ask = async |meant: Option<ModelReading>| {
            let message = RecallNotes {
                question: Arc::new(
                    Question::read("Where has Industroyer turned up?", clock::now())
                        .with_model_reading(meant),
                ),
                k: 10,
                options: RecallOptions {
                    explain: true,
                    ..RecallOptions::default()
                },
            };
            core.recall_notes(message).await.unwrap()
        };
        let meant = |names: &[&str]| ModelReading {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            wanted: vec![Kind::Group],
            ..ModelReading::default()
        };
        let found = ask(Some(meant(&["Industroyer"]))).await;
        assert_eq!(found.notes[0].note.content, NOTES[0]);
        assert_eq!(way(found.notes[0].why.as_ref().unwrap()).len(), 2);
        assert!(found.question.unwrap().plan.is_some());
        let unknown = ask(Some(meant(&["Nobody"]))).await;
        let plain = ask(None).await;
        let ids = |found: &NotesFound| found.notes.iter().map(|found| found.note.id).collect::<Vec<_>>();
        assert_eq!(ids(&unknown), ids(&plain));
    });
}
