//! Planning in steps, so that a large bundle does not monopolise a thread.

use std::collections::HashMap;
use std::ops::Range;

use super::{
    ConflictReport, EarlierVersions, Markings, Objects, Planner, SilentReport, SkipReport, SkipsByMarking,
    StixDefaults, StixPlan,
};
use crate::domain::stix::objects::DroppedEntry;
use crate::domain::tlp::Tlp;

/// A plan in progress; [`super::plan`] makes one in a single call.
pub struct StixPlanning {
    planner: Planner,
    objects: Objects,
    stage: Stage,
}

enum Stage {
    /// Objects that are not planned at all, to be reported.
    Dropped(std::vec::IntoIter<DroppedEntry>),
    /// Positions of the objects still to be planned.
    Objects(std::vec::IntoIter<Range<usize>>),
}

impl StixPlanning {
    /// Collects what objects need to know of later ones; `known` are markings received earlier.
    pub fn begin(mut objects: Objects, defaults: StixDefaults, known: Markings) -> Self {
        let mut planner = Planner {
            defaults,
            markings: known,
            earlier: EarlierVersions::default(),
            sources: HashMap::new(),
            plan: StixPlan {
                nodes: Vec::new(),
                relationships: Vec::new(),
                supporting: Vec::new(),
                skipped: SkipReport::default(),
                skips: SkipsByMarking::default(),
                conflicts: ConflictReport::default(),
                silent: SilentReport::default(),
                default_tlp: defaults.tlp,
            },
        };
        planner.learn(&objects);
        let stage = Stage::Dropped(objects.take_dropped().into_iter());
        Self {
            planner,
            objects,
            stage,
        }
    }

    /// Plans at most `objects` objects; returns false when nothing is left.
    pub fn step(&mut self, objects: usize) -> bool {
        match &mut self.stage {
            Stage::Dropped(left) => {
                for entry in left.take(objects) {
                    self.planner.report_dropped(self.objects.dropped(&entry));
                }
                if left.len() == 0 {
                    self.stage = Stage::Objects(self.objects.all().into_iter());
                }
                true
            }
            Stage::Objects(left) => {
                for at in left.take(objects) {
                    if let Some(object) = self.objects.object(&at) {
                        self.planner.take(object, at.len());
                    }
                }
                left.len() > 0
            }
        }
    }

    /// The plan; complete once `step` has returned false.
    pub fn finish(self) -> StixPlan {
        let mut plan = self.planner.plan;
        plan.settle_definitions(Tlp::Red);
        plan
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;

    use super::*;
    use crate::domain::stix::ingest::plan;

    #[test]
    fn a_plan_in_pieces_is_the_plan_in_one_go() {
        let id = |kind: &str, n: usize| format!("{kind}--00000000-0000-4000-8000-{n:012}");
        let time = "2024-01-01T00:00:00.000Z";
        let mut objects = Vec::new();
        for n in 0..25 {
            objects.push(
                json!({"type": "tool", "id": id("tool", n), "spec_version": "2.1", "name": format!("t{n}"),
                "created": time, "modified": time, "created_by_ref": id("identity", n % 7)}),
            );
            objects.push(
                json!({"type": "identity", "id": id("identity", n), "spec_version": "2.1",
                "name": format!("i{n}"), "created": time, "modified": time}),
            );
            objects.push(
                json!({"type": "relationship", "id": id("relationship", n), "spec_version": "2.1",
                "relationship_type": "uses", "created": time, "modified": time,
                "source_ref": id("tool", n), "target_ref": id("tool", (n + 1) % 25)}),
            );
            objects.push(json!({"type": "x-other", "id": id("x-other", n)}));
            objects.push(
                json!({"type": "marking-definition", "id": id("marking-definition", n), "spec_version": "2.1",
                "created": time, "definition_type": "statement", "definition": {"statement": "s"}}),
            );
            objects.push(json!({"type": "tool", "id": "no id"}));
        }
        let defaults = StixDefaults {
            tlp: Tlp::Green,
            confidence: 0.5,
            now: DateTime::UNIX_EPOCH,
        };
        let told = |plan: StixPlan| {
            let mut supporting: Vec<_> = plan.supporting.into_iter().map(|s| s.stix_id).collect();
            supporting.sort_unstable();
            let nodes: Vec<_> = plan.nodes.into_iter().map(|n| (n.stix_id, n.source)).collect();
            let edges: Vec<_> = plan.relationships.into_iter().map(|r| r.stix_id).collect();
            (nodes, edges, supporting, plan.skipped)
        };
        let whole = told(plan(objects.clone().into(), defaults, Markings::new()));
        assert_eq!((whole.0.len(), whole.1.len(), whole.2.len()), (75, 25, 25));
        for piece in [1, 3, 24, 1000] {
            let mut planning = StixPlanning::begin(objects.clone().into(), defaults, Markings::new());
            while planning.step(piece) {}
            assert_eq!(told(planning.finish()), whole, "in pieces of {piece}");
        }
    }
}
