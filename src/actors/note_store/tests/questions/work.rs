//! What a question costs, whatever the graph or its words.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use test_support::extent;

use super::*;

/// A graph in which one actor has many indicators and, among them, one tool.
fn hub(relations: u128) -> MemoryGraph {
    let at: DateTime<Utc> = "2024-01-01T00:00:00Z".parse().unwrap();
    let entity = |id: u128, of_type: &str, value: &str| StoredEntity {
        id: Uuid::from_u128(id),
        draft: EntityDraft::from_name(of_type, value, 1.0).unwrap(),
        created_at: at,
        merged_into: None,
    };
    let mut entities = vec![entity(1, "actor", "Sandworm"), entity(2, "tool", "Mimikatz")];
    let relation = |number: u128, target: u128, label: &str| StoredRelation {
        id: Uuid::from_u128(10_000_000 + number),
        source: Uuid::from_u128(1),
        target: Uuid::from_u128(target),
        relationship: label.into(),
        confidence: 0.9,
        proof: None,
        note: None,
        properties: None,
        created_at: at,
    };
    let mut all = vec![relation(0, 2, "uses")];
    for number in 1..relations {
        let value = format!("10.{}.{}.{}", number >> 16, (number >> 8) & 255, number & 255);
        entities.push(entity(10 + number, "ipv4", &value));
        all.push(relation(number, 10 + number, "uses"));
    }
    MemoryGraph::of(Vec::new(), entities, all)
}

#[test]
fn a_hub_hides_no_answer_and_costs_a_bounded_time() {
    let graph = hub(extent(10_000, 50_000));
    let now = clock::now();
    let reading = Question::read("Which tools does Sandworm use?", now);
    let since = Instant::now();
    let asked = graph.understand(&reading).unwrap();
    let answered = QuestionAnswers::to(&graph, asked, &Scope::default());
    let took = since.elapsed();
    assert_eq!(answered.answers.len(), 1);
    let reading = Question::read("Which indicators does Sandworm have?", now);
    let asked = graph.understand(&reading).unwrap();
    let all = Instant::now();
    assert_eq!(
        QuestionAnswers::to(&graph, asked, &Scope::default())
            .answers
            .len(),
        100
    );
    println!("tools of a hub: {took:?}, its indicators: {:?}", all.elapsed());
    // Far above what it takes in a debug build on a busy machine, far below what unbounded work would.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn no_cut_of_a_real_text_makes_a_question_hang_or_panic() {
    run(async {
        let core = filled().await;
        let memory = core.memory().await.unwrap();
        let texts = [
            include_str!("../questions.rs"),
            include_str!("../../../../../README.md"),
            include_str!("../../../../domain/question/intent.rs"),
        ];
        let mut state = 12_345_u64;
        let mut random = |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below.max(1)
        };
        for _ in 0..extent(60, 400) {
            let text = texts[random(texts.len())];
            let chars: Vec<char> = text.chars().collect();
            let from = random(chars.len());
            let cut: String = chars[from..].iter().take(1 + random(300)).collect();
            for question in [
                cut.clone(),
                format!("Which malware {cut}?"),
                format!("who {cut} since 2020"),
            ] {
                let since = Instant::now();
                core.answer_note_question(memory, &read(&question), &Scope::default())
                    .await
                    .unwrap();
                assert!(since.elapsed() < Duration::from_secs(5), "{question}");
            }
        }
    });
}
