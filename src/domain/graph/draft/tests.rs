//! What is merged into a node, and what is kept beside it.

use std::collections::BTreeSet;

use chrono::DateTime;
use proptest::prelude::*;

use serde_json::json;

use super::*;

const CASES: u32 = 10_000;

/// What a source says of a thing.
#[derive(Debug, Clone)]
struct Statement {
    number: usize,
    source_type: &'static str,
    source: usize,
    tlp: Tlp,
    name: &'static str,
    has_text: bool,
    confidence: u8,
}

impl Statement {
    fn text(&self) -> String {
        match self.has_text {
            true => format!("statement number {} of the heron that waits", self.number),
            false => String::new(),
        }
    }

    fn draft(&self) -> NodeDraft {
        let properties =
            json!({"aliases": [format!("alias {}", self.number)], "tags": [format!("tag {}", self.number)]});
        NodeDraft {
            source_type: self.source_type,
            name: self.name.into(),
            confidence: f64::from(self.confidence) / 4.0,
            ..draft(
                &format!("source {}", self.source),
                self.tlp,
                &self.text(),
                properties,
            )
        }
    }

    /// Its record, of which no other statement has one.
    fn record(&self) -> EvidenceDraft {
        EvidenceDraft {
            identity: format!("record {}", self.number),
            ext_id: Some(format!("https://example.org/{}", self.number)),
            source: format!("source {}", self.source),
            ..evidence(self.source_type, self.tlp)
        }
    }
}

fn statement_of(source_types: &'static [&'static str]) -> impl Strategy<Value = Statement> {
    use proptest::sample::select;
    let parts = (
        select(source_types),
        0..3usize,
        select(Tlp::ALL.to_vec()),
        select(vec!["Heron", "Grey Heron", "Ash Bird"]),
        any::<bool>(),
        0..5u8,
    );
    parts.prop_map(
        |(source_type, source, tlp, name, has_text, confidence)| Statement {
            number: 0,
            source_type,
            source,
            tlp,
            name,
            has_text,
            confidence,
        },
    )
}

fn statements(source_types: &'static [&'static str]) -> impl Strategy<Value = Vec<Statement>> {
    let number = |(number, statement)| Statement { number, ..statement };
    let all = proptest::collection::vec(statement_of(source_types), 1..7);
    all.prop_map(move |all| all.into_iter().enumerate().map(number).collect())
}

fn texts_in_two_orders() -> impl Strategy<Value = (Vec<Statement>, Vec<Statement>)> {
    statements(&TEXTS).prop_flat_map(|texts| (Just(texts.clone()), Just(texts).prop_shuffle()))
}

fn id_of(record: &EvidenceDraft) -> Uuid {
    Uuid::new_v5(&Uuid::nil(), record.identity.as_bytes())
}

/// A node after statements about it, one after the other, by a writer who sees all.
#[derive(Debug)]
struct Told {
    node: NodeContent,
    remarks: Vec<Remark>,
    records: HashMap<Uuid, EvidenceDraft>,
}

impl Told {
    fn of(said: &[Statement]) -> Self {
        let (mut node, mut remarks, mut records) = (None::<MergedNode>, Vec::new(), HashMap::new());
        for statement in said {
            let (draft, record) = (statement.draft(), statement.record());
            let id = id_of(&record);
            records.insert(id, record.clone());
            let Some(node) = &mut node else {
                node = Some(MergedNode::of_draft(
                    &draft,
                    vec![(id, record.tlp)],
                    DateTime::UNIX_EPOCH,
                ));
                continue;
            };
            let heads: HashMap<Uuid, RecordHead> = node
                .records_needed(&draft)
                .into_iter()
                .map(|id| (id, head(&records[&id])))
                .collect();
            let source = node.source_of(&draft, Some(&record), &heads, Tlp::Red);
            node.link(id, record.tlp);
            let own = [record];
            let merged = node
                .merge(&draft, source, (Some(id), &own), DateTime::UNIX_EPOCH)
                .unwrap();
            remarks.extend(merged.remarks);
            if let Some(kept) = merged.kept {
                node.link(id_of(&kept), kept.tlp);
                records.insert(id_of(&kept), kept);
            }
        }
        let node = node.unwrap().into_content(DateTime::UNIX_EPOCH);
        Self {
            node,
            remarks,
            records,
        }
    }

    fn list(&self, key: &str) -> BTreeSet<String> {
        let properties: Value = serde_json::from_str(&self.node.properties).unwrap();
        let items = properties[key].as_array().cloned().unwrap_or_default();
        items
            .iter()
            .map(|item| item.as_str().unwrap().to_owned())
            .collect()
    }

    fn names(&self) -> BTreeSet<String> {
        let mut names = self.list("aliases");
        names.insert(self.node.name.clone());
        names
    }

    fn tags(&self) -> BTreeSet<String> {
        self.list("tags")
    }

    /// The texts that are shown of it, with their markings.
    fn texts(&self) -> BTreeSet<(String, Tlp)> {
        let remarks = self
            .remarks
            .iter()
            .map(|remark| (remark.text.clone(), remark.tlp));
        let mut texts: BTreeSet<(String, Tlp)> = remarks.collect();
        if !self.node.description.is_empty() {
            // Where the description came from is another test's matter.
            texts.retain(|(text, _)| *text != self.node.description);
            texts.insert((self.node.description.clone(), self.node.tlp));
        }
        texts
    }

    fn assert_nothing_is_lost(&self, said: &[Statement]) -> Result<(), TestCaseError> {
        let Self {
            node,
            remarks,
            records,
        } = self;
        for statement in said {
            let number = statement.number;
            let own = id_of(&statement.record());
            prop_assert!(
                node.evidence.contains(&(own, statement.tlp)),
                "{statement:?} is not linked"
            );
            let text = statement.text();
            let (alias, tag) = (format!("alias {number}"), format!("tag {number}"));
            let is_above = statement.tlp > node.tlp;
            let shows = node.description == text && statement.has_text
                || self.list("aliases").contains(&alias)
                || self.tags().contains(&tag);
            prop_assert!(!(is_above && shows), "{statement:?} is above {node:?}");
            // Records of whole texts hold all that they say; of the others, a record of its own does.
            let is_whole = WHOLE.contains(&statement.source_type);
            let is_kept = |part: &str| {
                is_whole
                    || node
                        .evidence
                        .iter()
                        .any(|(id, _)| records[id].raw.text().contains(part))
            };
            prop_assert!(
                self.names().contains(&alias) || is_kept(&alias),
                "{alias} is lost: {self:?}"
            );
            prop_assert!(
                self.names().contains(statement.name) || is_kept(statement.name),
                "{statement:?} is lost"
            );
            let is_said = node.description == text || remarks.iter().any(|remark| remark.text == text);
            prop_assert!(!statement.has_text || is_said, "{text} is not found: {self:?}");
        }
        for remark in remarks {
            let of = said.iter().filter(|one| one.text() == remark.text);
            let lowest = of.map(|one| one.tlp).min().unwrap();
            prop_assert!(remark.tlp >= lowest, "{remark:?}");
        }
        Ok(())
    }
}

fn head(record: &EvidenceDraft) -> RecordHead {
    RecordHead {
        kind: record.kind.into(),
        ext_id: record.ext_id.clone(),
        title: record.title.clone(),
        source: record.source.clone(),
    }
}

fn draft(source: &str, tlp: Tlp, description: &str, properties: Value) -> NodeDraft {
    let Value::Object(properties) = properties else {
        panic!("properties are an object")
    };
    NodeDraft {
        identity: "actor\0x".into(),
        node_type: NodeType::Actor,
        name: "X".into(),
        description: description.into(),
        source: source.into(),
        source_type: "misp",
        tlp,
        confidence: 0.5,
        properties: properties.into(),
        evidence: vec![0],
        merge_by_name: true,
    }
}

fn evidence(kind: &'static str, tlp: Tlp) -> EvidenceDraft {
    EvidenceDraft {
        identity: "e".into(),
        kind,
        ext_id: Some("an event".into()),
        title: "T".into(),
        source: "s".into(),
        tlp,
        raw: Map::new().into(),
    }
}

fn held(by: &NodeDraft) -> MergedNode {
    MergedNode::of_stored(MergedNode::of_draft(by, Vec::new(), DateTime::UNIX_EPOCH).content)
}

/// Absorbs a draft as of the same source if it names that of the node.
fn absorb(node: &mut MergedNode, draft: &NodeDraft) -> Result<Absorption, DomainError> {
    let is_same = node.content.source == draft.source;
    let source = if is_same {
        DraftSource::Same
    } else {
        DraftSource::Other
    };
    node.absorb(draft, source)
}

fn properties(held: MergedNode) -> Value {
    serde_json::from_str(&held.into_content(DateTime::UNIX_EPOCH).properties).unwrap()
}

#[test]
fn a_source_that_says_more_at_a_stricter_marking_gives_the_node_marking_and_text() {
    let first = draft(
        "s",
        Tlp::Green,
        "old",
        json!({"motive": "?", "tags": ["a"], "kept": 1}),
    );
    let more = draft("s", Tlp::Amber, "new", json!({"motive": "money", "tags": ["b"]}));
    let mut node = held(&first);
    assert_eq!(absorb(&mut node, &more).unwrap(), Absorption::Changed);
    assert_eq!(
        (node.content.tlp, node.content.description.as_str()),
        (Tlp::Amber, "new")
    );
    assert_eq!(
        properties(node),
        json!({"motive": "money", "tags": ["a", "b"], "kept": 1})
    );
    // The draft has a marking but no text: the node keeps its text.
    let mut node = held(&first);
    absorb(&mut node, &draft("s", Tlp::Red, "", json!({}))).unwrap();
    assert_eq!(
        (node.content.tlp, node.content.description.as_str()),
        (Tlp::Red, "old")
    );
}

#[test]
fn a_node_takes_what_is_not_stricter_only_where_it_has_nothing() {
    let mut node = held(&draft("s", Tlp::Amber, "old", json!({"motive": "?"})));
    let other = draft("o", Tlp::Green, "new", json!({"motive": "money", "x": 1}));
    assert_eq!(absorb(&mut node, &other).unwrap(), Absorption::Changed);
    assert_eq!(
        (node.content.tlp, node.content.description.as_str()),
        (Tlp::Amber, "old")
    );
    assert_eq!(absorb(&mut node, &other).unwrap(), Absorption::Known);
    assert_eq!(properties(node), json!({"motive": "?", "x": 1}));
}

#[test]
fn a_text_that_the_node_may_not_take_is_a_record_of_its_own() {
    let restricted = draft("o", Tlp::Amber, "new", json!({"motive": "money"}));
    let mut node = held(&draft("s", Tlp::Green, "old", json!({})));
    assert_eq!(absorb(&mut node, &restricted).unwrap(), Absorption::TooRestricted);
    assert!(!node.is_changed());
    let kept = evidence_of_rejected(&restricted, &[evidence("misp", Tlp::Amber)]).unwrap();
    assert_eq!(
        (kept.tlp, kept.kind, kept.title.as_str()),
        (Tlp::Amber, "misp", "X")
    );
    assert_eq!(
        Value::Object(kept.raw.map()),
        json!({"name": "X", "node_type": "actor", "description": "new", "properties": {"motive": "money"},
            "confidence": 0.5, "tlp": "TLP:AMBER"})
    );
    assert_eq!(kept.ext_id.as_deref(), Some("an event"));
    let hidden = evidence_of_rejected(&restricted, &[evidence("misp", Tlp::Red)]).unwrap();
    assert_eq!(
        hidden.ext_id, None,
        "the event is RED, what it says here is AMBER"
    );
    assert_eq!(kept.identity, hidden.identity);
    // A report's own record holds it, unless it is more restricted than the block.
    assert_eq!(
        evidence_of_rejected(&restricted, &[evidence("report", Tlp::Amber)]),
        None
    );
    assert!(evidence_of_rejected(&restricted, &[evidence("report", Tlp::Red)]).is_some());
}

#[test]
fn lists_stop_growing_and_the_second_title_of_an_article_is_an_alias() {
    let mut first = draft("s", Tlp::Green, "", json!({}));
    first.node_type = NodeType::Osint;
    first.merge_by_name = false;
    let mut node = held(&first);
    let title = |n: usize| format!("title {n}");
    first.name = title(0);
    absorb(&mut node, &first).unwrap();
    // To add all of them one by one takes a debug build seconds.
    let more: Vec<String> = (1..MAX_UNITED - 50).map(title).collect();
    let mut many = draft("s", Tlp::Green, "", json!({ "aliases": more }));
    many.node_type = NodeType::Osint;
    absorb(&mut node, &many).unwrap();
    for n in MAX_UNITED - 50..MAX_UNITED + 100 {
        first.name = title(n);
        absorb(&mut node, &first).unwrap();
    }
    let aliases = properties(node)["aliases"].as_array().unwrap().clone();
    assert_eq!(aliases.len(), MAX_UNITED);
    assert_eq!(aliases[0], "title 0");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(CASES))]

    #[test]
    fn no_text_of_a_node_is_marked_higher_than_the_node(
        says in proptest::collection::vec((0..2usize, 0..5usize), 1..12),
    ) {
        let of = |n: usize, (source, level): (usize, usize)| {
            let source = ["a", "b"][source];
            // Each text names its own marking.
            let text = format!("{level} {n}");
            draft(source, Tlp::ALL[level], &text, json!({format!("k{n}"): text, "shared": text, "tags": [text]}))
        };
        let mut node = held(&of(0, says[0]));
        for (n, said) in says.iter().enumerate().skip(1) {
            absorb(&mut node, &of(n, *said)).unwrap();
        }
        let rank = i64::from(node.content.tlp.rank());
        let description = node.content.description.clone();
        let mut texts = vec![description];
        for value in properties(node).as_object().unwrap().values() {
            match value.as_array() {
                Some(items) => texts.extend(items.iter().map(|item| item.as_str().unwrap().to_owned())),
                None => texts.push(value.as_str().unwrap().to_owned()),
            }
        }
        for text in texts {
            let level: i64 = text.split(' ').next().unwrap().parse().unwrap();
            prop_assert!(level <= rank, "{} at {}", text, rank);
        }
    }

    #[test]
    fn no_name_text_or_record_of_any_draft_is_lost_and_none_is_shown_above_its_marking(
        said in statements(&["osint", "report", "staged", "analyst", "misp"])
    ) {
        let world = Told::of(&said);
        world.assert_nothing_is_lost(&said)?;
    }

    #[test]
    fn texts_give_the_same_node_in_any_order((said, shuffled) in texts_in_two_orders()) {
        let (one, other) = (Told::of(&said), Told::of(&shuffled));
        one.assert_nothing_is_lost(&said)?;
        let open = said.iter().map(|statement| statement.tlp).min().unwrap();
        for told in [&one, &other] {
            prop_assert_eq!(told.node.tlp, open, "as open as the most open text");
        }
        prop_assert_eq!(one.names(), other.names());
        prop_assert_eq!(one.texts(), other.texts());
        prop_assert_eq!(one.tags(), other.tags());
        prop_assert_eq!(one.node.confidence, other.node.confidence);
        let records = |told: &Told| -> BTreeSet<Uuid> { told.node.evidence.iter().map(|(id, _)| *id).collect() };
        prop_assert_eq!(records(&one), records(&other));
    }
}
