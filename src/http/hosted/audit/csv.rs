//! The audit log as CSV (RFC 4180), written while it is sent.

use bytes::Bytes;
use futures_util::stream::{Stream, StreamExt, once, try_unfold};

use crate::actors::audit_writer::{AuditExport, AuditHandle, ListEntries};
use crate::domain::audit::AuditEntry;
use crate::domain::error::DomainError;

const COLUMNS: [&str; 11] = [
    "id",
    "tenant_id",
    "user_id",
    "user_email",
    "action",
    "resource",
    "resource_id",
    "outcome",
    "ip_address",
    "metadata",
    "created_at",
];

/// The header line, then page after page. An error ends the transfer, so that the client notices that it is incomplete.
pub(super) fn stream(
    audit: AuditHandle,
    export: AuditExport,
) -> impl Stream<Item = Result<Bytes, DomainError>> {
    let header = write_records(|writer| writer.write_record(COLUMNS));
    let pages = try_unfold(export, move |mut export| {
        let audit = audit.clone();
        async move {
            let Some(filter) = export.next_page() else {
                return Ok(None);
            };
            let tenant = export.tenant();
            let entries = audit.call(ListEntries { tenant, filter }).await;
            let entries = entries
                .inspect_err(|error| tracing::error!(%error, "an export of the audit log broke off"))?;
            export.advance(&entries);
            Ok(Some((rows(&entries)?, export)))
        }
    });
    once(async { header }).chain(pages)
}

fn rows(entries: &[AuditEntry]) -> Result<Bytes, DomainError> {
    write_records(|writer| {
        entries
            .iter()
            .try_for_each(|entry| writer.write_record(record(entry)))
    })
}

/// The text of some records.
fn write_records(
    write: impl FnOnce(&mut csv::Writer<Vec<u8>>) -> Result<(), csv::Error>,
) -> Result<Bytes, DomainError> {
    let failed = |error: &dyn std::fmt::Display| DomainError::internal("writing the CSV failed", error);
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    write(&mut writer).map_err(|error| failed(&error))?;
    let text = writer.into_inner().map_err(|error| failed(&error.into_error()))?;
    Ok(text.into())
}

fn record(entry: &AuditEntry) -> [String; 11] {
    let text = |value: &Option<String>| cell(value.as_deref().unwrap_or_default());
    [
        entry.id.to_string(),
        entry.tenant_id.to_string(),
        entry.user_id.map(|id| id.to_string()).unwrap_or_default(),
        text(&entry.user_email),
        cell(&entry.action),
        cell(&entry.resource),
        text(&entry.resource_id),
        entry.outcome.to_string(),
        text(&entry.ip_address),
        json(&entry.metadata),
        entry
            .created_at
            .to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true),
    ]
}

/// First characters of a formula.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// Characters after which a spreadsheet may begin a cell or a row; in many countries the semicolon separates cells.
const BORDERS: [char; 4] = [';', '\t', '\r', '\n'];

/// A text in which a spreadsheet finds no formula: those characters get a quote in front (OWASP, CSV injection).
fn cell(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        if begins && (FORMULA.contains(&c) || (safe.is_empty() && BORDERS.contains(&c))) {
            safe.push('\'');
        }
        begins = BORDERS.contains(&c) || (begins && c == ' ');
        safe.push(c);
    }
    safe
}

/// Metadata as JSON. Its semicolons are escaped, for the same reason.
fn json(metadata: &serde_json::Map<String, serde_json::Value>) -> String {
    let text = serde_json::to_string(metadata).unwrap_or_default();
    text.replace(';', "\\u003b")
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::domain::audit::Outcome;

    #[test]
    fn no_way_to_split_a_line_yields_a_formula() {
        for (text, want) in [
            ("plain - text", "plain - text"),
            ("=1", "'=1"),
            (" =1", " '=1"),
            ("x;=1+1;y", "x;'=1+1;y"),
            ("a\n-1\t@b", "a\n'-1\t'@b"),
            ("; +1", "'; '+1"),
        ] {
            assert_eq!(cell(text), want);
        }
        let mut metadata = serde_json::Map::new();
        metadata.insert("query".into(), "x;=1+1;y".into());
        let text = json(&metadata);
        assert!(!text.contains(';'));
        assert_eq!(
            serde_json::from_str::<serde_json::Map<_, _>>(&text).unwrap(),
            metadata
        );
    }

    #[test]
    fn cells_are_quoted_and_formulas_are_defused() {
        let mut entry = AuditEntry::anonymous(
            uuid::Uuid::nil(),
            IpAddr::from([127, 0, 0, 1]),
            "auth.login",
            "user",
            Outcome::Failure,
            chrono::DateTime::UNIX_EPOCH,
        )
        .on("a,b\"c\nd")
        .with("q", "x");
        entry.id = uuid::Uuid::nil();
        entry.user_email = Some("=HYPERLINK(1)".into());
        let text = String::from_utf8(
            [
                write_records(|writer| writer.write_record(COLUMNS)).unwrap(),
                rows(&[entry]).unwrap(),
            ]
            .concat(),
        )
        .unwrap();
        let nil = "00000000-0000-0000-0000-000000000000";
        assert_eq!(
            text,
            format!(
                "id,tenant_id,user_id,user_email,action,resource,resource_id,outcome,ip_address,metadata,created_at\r\n\
                 {nil},{nil},,'=HYPERLINK(1),auth.login,user,\"a,b\"\"c\nd\",failure,127.0.0.1,\"{{\"\"q\"\":\"\"x\"\"}}\",1970-01-01T00:00:00Z\r\n"
            )
        );
    }
}
