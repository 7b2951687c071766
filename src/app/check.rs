//! The command `check`: a store at rest, the search index beside it, and the disk.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Weak;

use super::backup::{Memory, target_of};
use crate::capacity::free_mib;
use crate::lifecycle::{StartError, forget_indexes, wait_until_closed};
use crate::search::examine;
use crate::store::StoreReport;

/// What a check found.
pub struct CheckSummary {
    /// In lines.
    pub text: String,
    /// Whether nothing is wrong, or what was is mended.
    pub is_sound: bool,
}

/// Checks a memory whose service rests. Nothing is changed unless `repair`: then what is derived from the store and is not
/// sound is removed, to be made anew at the next start.
///
/// # Errors
/// In words: there is no store, or a service has it open.
pub async fn check(memory: &Memory, repair: bool) -> Result<CheckSummary, StartError> {
    let target = target_of(memory)?;
    let checked = target.check().await;
    wait_until_closed(&Weak::new(), target.dir(), None).await;
    let report = checked?;
    let mut text = String::new();
    write_store(&report, &mut text).ok();
    let mut is_sound = report.is_sound();
    if let Some(data_dir) = target.dir().and_then(Path::parent) {
        let faults = index_faults(data_dir, &report);
        for fault in &faults {
            writeln!(text, "{fault}").ok();
        }
        if faults.is_empty() {
            writeln!(text, "search index: sound").ok();
        } else if repair && !forget_indexes(data_dir) {
            writeln!(
                text,
                "  the search index can't be removed: remove index/ and graph/ yourself"
            )
            .ok();
            is_sound = false;
        } else if repair {
            writeln!(
                text,
                "  removed the search index and the copy of the graph: the next start makes them anew"
            )
            .ok();
        } else {
            writeln!(text, "  --repair would remove the search index and the copy of the graph, and the next start make them anew").ok();
            is_sound = false;
        }
        if let Some(free) = free_mib(data_dir) {
            writeln!(text, "disk: {free} MiB free").ok();
        }
    }
    Ok(CheckSummary { text, is_sound })
}

fn write_store(report: &StoreReport, text: &mut String) -> std::fmt::Result {
    let (found, known) = report.schema;
    let rows: u64 = report.tables.values().sum();
    let state = if report.is_sound() { "sound" } else { "not sound" };
    writeln!(
        text,
        "store: {state}, {rows} rows of {} tables, schema {found}",
        report.tables.len()
    )?;
    if found != known {
        writeln!(
            text,
            "  the next start of this program brings it to schema {known}; its audit log is checked then"
        )?;
    }
    for (name, count, listed) in report.faults() {
        writeln!(text, "  {name}: {count}")?;
        for case in listed {
            writeln!(text, "    {case}")?;
        }
    }
    if !report.is_sound() {
        writeln!(
            text,
            "  nothing of this can be mended here: restore a back-up (docs/backup.md)"
        )?;
    }
    if let Some(entries) = report.audited {
        writeln!(
            text,
            "audit log: {entries} entries in {} workspaces",
            report.workspaces.len()
        )?;
    }
    Ok(())
}

/// What is wrong with the search index.
fn index_faults(data_dir: &Path, report: &StoreReport) -> Vec<String> {
    let mut faults = Vec::new();
    for (workspace, last) in &report.workspaces {
        let dir = data_dir.join("index").join(workspace.to_string());
        if !dir.exists() {
            continue;
        }
        match examine(&dir) {
            Ok(checkpoint) if checkpoint > *last => faults.push(format!(
                "search index of {workspace}: knows of write {checkpoint}, the store of {last}"
            )),
            Ok(_) => {}
            Err(error) => faults.push(format!("search index of {workspace}: {error}")),
        }
    }
    faults
}
