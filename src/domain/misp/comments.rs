//! Comments as passages: the description of a node holds only the first one.

use std::collections::{HashMap, HashSet};

use crate::domain::draft::{Drafts, PassageDraft};
use crate::domain::passage::passages_of;
use crate::domain::tlp::Tlp;

/// Maximum number of comments of one node beside its description.
const MAX_COMMENTS: usize = 16;
/// Maximum number of passages of a comment.
const MAX_PASSAGES: usize = 8;

/// The comments on each node so far, by its position among the drafts.
#[derive(Debug, Default)]
pub(super) struct Comments {
    known: HashMap<usize, HashSet<String>>,
}

impl Comments {
    /// Adds a comment on these nodes, unless it is there already.
    pub(super) fn add(&mut self, drafts: &mut Drafts, nodes: &[usize], comment: Option<&str>, tlp: Tlp) {
        let comment = comment.unwrap_or_default();
        let texts = passages_of(comment);
        let Some(first) = texts.first() else {
            return;
        };
        for node in nodes {
            let described = drafts.nodes.get(*node);
            // The first comment on a node begins its description.
            if described.is_none_or(|node| node.description.starts_with(comment)) {
                continue;
            }
            let known = self.known.entry(*node).or_default();
            if known.len() >= MAX_COMMENTS || !known.insert(first.clone()) {
                continue;
            }
            let passage = |text: &String| PassageDraft {
                about: [*node; 2],
                tlp,
                text: text.clone(),
            };
            drafts
                .passages
                .extend(texts.iter().take(MAX_PASSAGES).map(passage));
        }
    }
}
