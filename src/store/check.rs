//! Checks a store that no service has open. Nothing in it is changed.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures_util::StreamExt;
use surrealdb::types::{Number, Object, RecordId, RecordIdKey, SurrealValue, Value};
use uuid::Uuid;

use super::Store;
use super::archive::{Purpose, Snapshot, StoreTarget};
use super::connection::database::damaged_place;
use super::connection::error::StoreError;
use super::migrations::migrate;

/// Findings of one kind that are listed; the others are counted.
const LISTED: usize = 20;

/// What is wrong with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A table can't be read to its end.
    Unreadable,
    /// A relationship has an end that does not exist.
    DanglingEnd,
    /// A node lists evidence that does not exist.
    DanglingEvidence,
    /// The numbers of a workspace's writes have a gap.
    Gap,
    /// The chain of a workspace's audit log is broken.
    Chain,
}

/// What a check found.
#[derive(Debug, Default)]
pub struct StoreReport {
    /// Version of the schema, and that of this program.
    pub schema: (i64, i64),
    /// Rows of each table.
    pub tables: BTreeMap<String, u64>,
    /// Workspaces, with the number of their last write.
    pub workspaces: BTreeMap<Uuid, u64>,
    /// Audit entries whose link was checked; `None` if the schema is of an earlier version.
    pub audited: Option<u64>,
    faults: BTreeMap<Fault, (u64, Vec<String>)>,
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Self::Unreadable => "tables that can't be read",
            Self::DanglingEnd => "relationships without an end",
            Self::DanglingEvidence => "nodes whose evidence is missing",
            Self::Gap => "gaps in the numbers of writes",
            Self::Chain => "broken chains of audit logs",
        }
    }
}

impl StoreReport {
    fn add(&mut self, fault: Fault, text: String) {
        let (count, listed) = self.faults.entry(fault).or_default();
        *count += 1;
        if listed.len() < LISTED {
            listed.push(text);
        }
    }

    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    /// What is wrong: each kind, how often, and the first cases.
    pub fn faults(&self) -> impl Iterator<Item = (&'static str, u64, &[String])> {
        let faults = self.faults.iter();
        faults.map(|(fault, (count, listed))| (fault.name(), *count, listed.as_slice()))
    }
}

impl StoreTarget {
    /// Reads every row, follows what rows refer to, and checks the audit chains.
    ///
    /// # Errors
    /// When there is no store, a service has it open, or it can't be opened at all.
    pub async fn check(&self) -> Result<StoreReport, StoreError> {
        let open = self.open(Purpose::Read).await?;
        let snapshot = Snapshot::of(&open.db).await?;
        let mut reader = TableReader::default();
        reader.report.schema = (snapshot.schema(), migrate::known_version());
        for table in snapshot.tables() {
            reader.read(&snapshot, table).await?;
        }
        snapshot.end().await;
        let mut report = reader.finish();
        if report.schema.0 == report.schema.1 {
            let store = Store::over(open.db.clone(), None).await?;
            check_chains(&store, &mut report).await?;
        }
        Ok(report)
    }
}

async fn check_chains(store: &Store, report: &mut StoreReport) -> Result<(), StoreError> {
    let tenants: Vec<Uuid> = report.workspaces.keys().copied().collect();
    let mut entries = 0;
    for tenant in tenants {
        let chain = store.verify_audit(tenant).await?;
        entries += chain.entries;
        if !chain.valid {
            let why = chain.first_error.unwrap_or_default();
            report.add(Fault::Chain, format!("workspace {tenant}: {why}"));
        }
    }
    report.audited = Some(entries);
    Ok(())
}

/// What is known of the rows read so far.
#[derive(Default)]
struct TableReader {
    report: StoreReport,
    nodes: HashSet<Uuid>,
    evidence: HashSet<Uuid>,
    /// Which evidence nodes list.
    listed: HashMap<Uuid, Uuid>,
    ends: Vec<(Uuid, Uuid)>,
}

impl TableReader {
    async fn read(&mut self, snapshot: &Snapshot, table: &str) -> Result<(), StoreError> {
        let mut rows = Box::pin(snapshot.rows(table)?);
        let mut count = 0;
        while let Some(row) = rows.next().await {
            match row {
                Ok(Value::Object(fields)) => {
                    count += 1;
                    self.note(table, &fields);
                }
                Ok(_) => {}
                Err(error) => {
                    let place = damaged_place(&error).unwrap_or_else(|| error.message().to_owned());
                    let text = format!("{table}, after {count} rows: {place}");
                    self.report.add(Fault::Unreadable, text);
                    break;
                }
            }
        }
        if count > 0 {
            self.report.tables.insert(table.to_owned(), count);
        }
        Ok(())
    }

    fn note(&mut self, table: &str, fields: &Object) {
        match table {
            "workspace" => {
                if let Some(id) = id_in(fields, "id") {
                    self.report.workspaces.entry(id).or_default();
                }
            }
            "node" => self.note_node(fields),
            "evidence" => self.evidence.extend(id_in(fields, "id")),
            "edge" => {
                let id = id_in(fields, "id").unwrap_or_default();
                let ends = ["in", "out"].into_iter().filter_map(|end| id_in(fields, end));
                self.ends.extend(ends.map(|end| (id, end)));
            }
            "node_write" => self.note_write(fields),
            _ => {}
        }
    }

    fn note_node(&mut self, fields: &Object) {
        let Some(id) = id_in(fields, "id") else { return };
        self.nodes.insert(id);
        if let Some(Value::Array(evidence)) = fields.get("evidence") {
            for listed in evidence.iter() {
                if let Value::Uuid(listed) = listed {
                    self.listed.insert(**listed, id);
                }
            }
        }
    }

    /// The rows of a write come in the order of workspace, number and part.
    fn note_write(&mut self, fields: &Object) {
        let Some(Value::RecordId(RecordId {
            key: RecordIdKey::Array(key),
            ..
        })) = fields.get("id")
        else {
            return;
        };
        let [Value::Uuid(ws), Value::Number(Number::Int(number)), ..] = &key[..] else {
            return;
        };
        let number = u64::try_from(*number).unwrap_or(0);
        let last = self.report.workspaces.get(&**ws).copied().unwrap_or(0);
        // Numbers of an earlier version were times.
        let is_new = number != last;
        if is_new && last != 0 && number != last + 1 && is_number(last) {
            let text = format!("workspace {}: nothing between {last} and {number}", **ws);
            self.report.add(Fault::Gap, text);
        }
        self.report.workspaces.insert(**ws, number);
    }

    fn finish(mut self) -> StoreReport {
        for (edge, end) in &self.ends {
            if !self.nodes.contains(end) {
                let text = format!("relationship {edge}: there is no node {end}");
                self.report.add(Fault::DanglingEnd, text);
            }
        }
        for (evidence, node) in &self.listed {
            if !self.evidence.contains(evidence) {
                let text = format!("node {node}: there is no evidence {evidence}");
                self.report.add(Fault::DanglingEvidence, text);
            }
        }
        self.report
    }
}

/// Whether a revision is a number rather than a time in microseconds, as earlier versions had.
fn is_number(revision: u64) -> bool {
    const YEAR_2000: u64 = 946_684_800_000_000;
    revision < YEAR_2000
}

fn id_in(fields: &Object, name: &str) -> Option<Uuid> {
    let id = fields.get(name)?.clone();
    let id = RecordId::from_value(id).ok()?;
    super::rows::key(&id).ok()
}
