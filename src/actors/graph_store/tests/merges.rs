//! Merges where several processes share a database.

use serde_json::json;

use super::{names, open, process, run};
use crate::actors::graph_store::{IngestStix, MergeNode, UnmergeNode};
use crate::actors::worker::Work;
use crate::clock;
use crate::domain::stix::ingest::StixDefaults;
use crate::domain::tlp::Tlp;
use crate::store::StixOrigin;

#[test]
fn a_second_process_sees_what_the_first_one_merged_and_took_back() {
    run(async {
        let store = open().await;
        let (one, two) = (process(&store), process(&store));
        let by = super::analyst();
        let id = |number: u32| format!("intrusion-set--00000000-0000-4000-8000-{number:012}");
        let group = |name: &str, number| json!({"type": "intrusion-set", "name": name, "id": id(number)});
        IngestStix {
            by: by.clone(),
            objects: vec![group("Amber Falcon", 1), group("Quiet Heron", 2)].into(),
            defaults: StixDefaults {
                tlp: Tlp::Green,
                confidence: 0.5,
                now: clock::now(),
            },
            origin: StixOrigin::default(),
        }
        .run(one.clone())
        .await
        .unwrap();
        let ids = store.ids_of(by.workspace.id);
        let [standing, merged] = [1, 2].map(|number| ids.node(&id(number)));
        two.graph.follow().await;
        assert_eq!(names(&two, &by, "Quiet Heron").await[0], "Quiet Heron");

        let message = MergeNode {
            by: by.clone(),
            node: merged,
            into: standing,
            reason: None,
        };
        message.run(one.clone()).await.unwrap();
        two.graph.follow().await;
        let three = process(&store);
        for core in [&one, &two, &three] {
            assert_eq!(names(core, &by, "Quiet Heron").await, ["Amber Falcon"]);
        }

        // A write that another process overtook is planned again, with what that one wrote.
        let message = UnmergeNode {
            by: by.clone(),
            node: merged,
            reason: None,
        };
        message.run(two.clone()).await.unwrap();
        let again = UnmergeNode {
            by: by.clone(),
            node: merged,
            reason: None,
        };
        assert!(again.run(one.clone()).await.is_err());
        three.graph.follow().await;
        for core in [&one, &two, &three] {
            assert_eq!(names(core, &by, "Quiet Heron").await[0], "Quiet Heron");
        }
    });
}
