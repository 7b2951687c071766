//! Where the rows of a workspace lie.

use crate::domain::erasure::RemovedCounts;

/// How the rows of a workspace are found in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owned {
    /// By a column.
    Column(&'static str),
    /// By the first part of the id.
    Key,
    /// The id is the workspace's.
    Id,
}

/// A table that holds rows of workspaces.
#[derive(Debug, Clone, Copy)]
pub(super) struct TenantTable {
    pub(super) name: &'static str,
    pub(super) owned: Owned,
    /// What of the receipt its rows count in.
    pub(super) count: Option<fn(&mut RemovedCounts) -> &mut u64>,
}

const fn column(name: &'static str) -> TenantTable {
    TenantTable {
        name,
        owned: Owned::Column("ws"),
        count: None,
    }
}

const fn key(name: &'static str) -> TenantTable {
    TenantTable {
        name,
        owned: Owned::Key,
        count: None,
    }
}

impl TenantTable {
    const fn counted(self, count: fn(&mut RemovedCounts) -> &mut u64) -> Self {
        Self {
            count: Some(count),
            ..self
        }
    }
}

/// The tables of the hosted service with rows of workspaces, in the order in which these go. Not among them are the audit log,
/// which nobody can change, and the erasures.
pub(super) const TENANT_TABLES: &[TenantTable] = &[
    key("feed_item").counted(|counts| &mut counts.feed_items),
    key("feed_support"),
    key("feed_waiting"),
    column("feed_object"),
    column("feed_pulse"),
    column("feed_batch").counted(|counts| &mut counts.feed_batches),
    column("feed").counted(|counts| &mut counts.feeds),
    column("staged_entity"),
    column("staging_part"),
    column("staging_batch").counted(|counts| &mut counts.staging_batches),
    column("recall_session").counted(|counts| &mut counts.sessions),
    key("stix_waiting").counted(|counts| &mut counts.waiting_relationships),
    key("stix_awaited"),
    key("stix_waiting_count"),
    column("stix_held"),
    key("stix_carrier"),
    key("stix_rise"),
    column("passage").counted(|counts| &mut counts.passages),
    column("edge").counted(|counts| &mut counts.relationships),
    column("node").counted(|counts| &mut counts.nodes),
    column("evidence").counted(|counts| &mut counts.evidence),
    column("stix_support").counted(|counts| &mut counts.supporting_objects),
    key("node_merge").counted(|counts| &mut counts.merges),
    key("node_distinct").counted(|counts| &mut counts.merges),
    key("graph_change").counted(|counts| &mut counts.changes),
    key("node_write"),
    key("taxii_added"),
    key("taxii_dates"),
    key("taxii_again"),
    column("taxii_state"),
    column("hand_in"),
    column("collection"),
    TenantTable {
        name: "write_turn",
        owned: Owned::Id,
        count: None,
    },
    column("pilot_request"),
    column("outbox"),
    key("audit_text").counted(|counts| &mut counts.audit_texts),
    column("api_key").counted(|counts| &mut counts.api_keys),
    column("user").counted(|counts| &mut counts.users),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;

    /// Tables without rows of a workspace of the hosted service, and those that stay.
    const OTHERS: [&str; 16] = [
        // Of the installation, the local service, and a token without its workspace, until it has expired.
        "enrichment",
        "installation",
        "lease",
        "note",
        "note_change",
        "note_erasure",
        "note_version",
        "revoked_token",
        // Nobody can change them; they have no texts.
        "audit",
        "audit_by_user",
        "audit_chain",
        "audit_entry",
        "audit_link",
        "erasure",
        // Gone when the erasure is done.
        "erasure_part",
        "workspace",
    ];

    #[test]
    fn every_table_of_the_schema_goes_with_a_workspace_or_says_why_not() {
        let schemas = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas");
        let mut tables = BTreeSet::new();
        for file in fs::read_dir(schemas).unwrap().flatten() {
            if file.path().extension().is_none_or(|kind| kind != "surql") {
                continue;
            }
            for line in fs::read_to_string(file.path()).unwrap().lines() {
                let Some(rest) = line.trim_start().strip_prefix("DEFINE TABLE ") else {
                    continue;
                };
                let rest = rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest);
                let rest = rest.strip_prefix("OVERWRITE ").unwrap_or(rest);
                tables.extend(rest.split_whitespace().next().map(str::to_owned));
            }
        }
        assert!(tables.len() > 40, "{tables:?}");
        let known: BTreeSet<&str> = TENANT_TABLES.iter().map(|table| table.name).collect();
        let others = BTreeSet::from(OTHERS);
        let forgotten: Vec<&String> = tables
            .iter()
            .filter(|table| !known.contains(table.as_str()) && !others.contains(table.as_str()))
            .collect();
        assert!(forgotten.is_empty(), "{forgotten:?}");
        let unknown: Vec<&&str> = known.iter().filter(|table| !tables.contains(**table)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
