//! Questions about a time, an order of time, or two things at once.

use serde_json::{Value, json};

use crate::helpers::{Client, TestApp, run};
use crate::stix::{object, relationship, text, with};

async fn asked(client: &Client, question: &str) -> Value {
    client.search_with(question, &[("explain", "true")]).await
}

fn names(found: &Value) -> Vec<&str> {
    let results = found["results"].as_array().unwrap();
    results.iter().map(|node| text(node, "name")).collect()
}

fn described(kind: &str, name: &str, description: &str) -> Value {
    with(object(kind, name), json!({"description": description}))
}

#[test]
fn nodes_that_state_the_time_asked_for_come_first() {
    run(async {
        let app = TestApp::shared().await;
        let client = &app.admin;
        let lathe = described("intrusion-set", "Lathe Group", "Hits refineries with loaders.");
        let gate = described(
            "malware",
            "Marrowgate",
            "A loader that has been seen since 4 April 2018.",
        );
        let uses = relationship(&lathe, "uses", &gate);
        let objects = [
            lathe,
            gate,
            uses,
            described(
                "campaign",
                "Varnholt Spill",
                "On 14 May 2023 the Lathe Group hit the refinery of Varnholt.",
            ),
            described(
                "campaign",
                "Holt Flood",
                "On 2 June 2021 the Lathe Group hit the dam of Holt.",
            ),
            described(
                "campaign",
                "Sedge Run",
                "In Q3 2022 the Lathe Group hit the Sedge bank.",
            ),
            described(
                "campaign",
                "Gorse Night",
                "On 20 May 2023 the Gorse Team hit an airport.",
            ),
        ];
        client.ingest(json!(objects)).await;
        for (question, first, period, order) in [
            ("Lathe Group attacks in 05/2023", "Varnholt Spill", true, None),
            ("Lathe Group attacks in June 2021", "Holt Flood", true, None),
            ("Lathe Group attacks before 2019", "Marrowgate", true, None),
            ("Angriffe der Lathe Group vor 2019", "Marrowgate", true, None),
            (
                "most recent attack of the Lathe Group",
                "Varnholt Spill",
                false,
                Some("newest_first"),
            ),
            (
                "first attack of the Lathe Group since 2020",
                "Holt Flood",
                true,
                Some("oldest_first"),
            ),
            (
                "letzter Angriff der Lathe Group",
                "Varnholt Spill",
                false,
                Some("newest_first"),
            ),
        ] {
            let found = asked(client, question).await;
            assert_eq!(names(&found)[0], first, "{question}: {found}");
            assert_eq!(found["question"]["period"].is_object(), period, "{question}");
            assert_eq!(found["question"]["order"].as_str(), order, "{question}");
            let scores = found["results"].as_array().unwrap().iter();
            let scores: Vec<f64> = scores.map(|node| node["score"].as_f64().unwrap()).collect();
            assert!(scores.is_sorted_by(|a, b| a >= b), "{question}: {scores:?}");
        }
        let found = asked(client, "Lathe Group").await;
        assert_eq!(names(&found)[0], "Lathe Group");
        app.stop().await;
    });
}

#[test]
fn what_is_compared_comes_first() {
    run(async {
        let app = TestApp::shared().await;
        let client = &app.admin;
        let objects = [
            described("intrusion-set", "Alder Fox", "A group."),
            described("intrusion-set", "Birch Fox", "A group."),
            described(
                "intrusion-set",
                "Cedar Fox",
                "A versus group, the difference of Alder Fox and Birch Fox compared.",
            ),
        ];
        client.ingest(json!(objects)).await;
        for question in [
            "Alder Fox vs Birch Fox",
            "Alder Fox versus Birch Fox",
            "difference between Alder Fox and Birch Fox",
            "compare Alder Fox with Birch Fox",
            "différence entre Alder Fox et Birch Fox",
        ] {
            let found = asked(client, question).await;
            assert_eq!(names(&found)[..2], ["Alder Fox", "Birch Fox"], "{question}");
        }
        app.stop().await;
    });
}
