//! Event reports: what analysts wrote about an event. Each paragraph becomes a passage about the values that it names, or
//! about the first ones of the event if it names none.

use super::comments::Comments;
use super::marking::of_distribution;
use super::wire::EventReport;
use crate::domain::draft::Drafts;
use crate::domain::node::NodeType;
use crate::domain::tlp::Tlp;

/// Paragraphs of a report that are kept, and reports of an event.
const MAX_PARAGRAPHS: usize = 64;
const MAX_REPORTS: usize = 16;
/// Nodes that a paragraph is about, at most.
const MAX_NODES: usize = 16;
/// Characters of the shortest name that is looked for in a paragraph.
const MIN_NAME: usize = 4;

/// Adds the reports, marked like the event or stricter. One whose distribution can't be read is for its own organisation.
pub(super) fn add(reports: &[EventReport], comments: &mut Comments, drafts: &mut Drafts, event: Tlp) {
    let names: Vec<(usize, String)> = drafts
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.name.chars().count() >= MIN_NAME)
        .map(|(at, node)| (at, node.name.to_lowercase()))
        .collect();
    let first: Vec<usize> = drafts
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.node_type == NodeType::Ioc)
        .map(|(at, _)| at)
        .take(MAX_NODES)
        .collect();
    for report in reports.iter().filter(|report| !report.deleted).take(MAX_REPORTS) {
        let stated = of_distribution([report.distribution], event).unwrap_or(Tlp::Red);
        for paragraph in report.paragraphs().take(MAX_PARAGRAPHS) {
            let lower = paragraph.to_lowercase();
            let named = names.iter().filter(|(_, name)| lower.contains(name.as_str()));
            let named: Vec<usize> = named.map(|(at, _)| *at).take(MAX_NODES).collect();
            let about = if named.is_empty() { &first } else { &named };
            comments.add(drafts, about, Some(&paragraph), stated.max(event));
        }
    }
}

impl EventReport {
    /// The paragraphs, each with the name of the report before it and without marks of Markdown.
    fn paragraphs(&self) -> impl Iterator<Item = String> {
        let name = self.name.as_deref().unwrap_or("MISP event report");
        let content = self.content.as_deref().unwrap_or_default();
        let lines = |text: &str| {
            let lines = text
                .lines()
                .map(|line| line.trim_start_matches(['#', '>', '*', '-', ' ']).trim());
            lines
                .filter(|line| !line.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let paragraphs = content.split("\n\n").map(move |text| (name, lines(text)));
        let written = paragraphs.filter(|(_, text)| !text.is_empty());
        written.map(|(name, text)| format!("{name}: {text}"))
    }
}
