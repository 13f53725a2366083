//! `ops customer export`: writes all data of one customer to a JSON file, for a request for access.
//!
//! The file has the records of [`personal::Kind`], with the notes and ids of staff that the API
//! leaves out. It also has the log of each order, and the texts of the customer's documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use key_schema::document::{self, Manifest, TextItem};
use key_schema::id::{CustomerId, DocumentId, OrderId};
use key_schema::instant::Instant;
use key_schema::order;
use serde::Serialize;
use serde_json::{Value, json};
use table::Table;
use workflows::personal::{self, Kind, Record};
use workflows::removal::RemovalError;

use crate::error::OpsError;
use crate::export;
use crate::outcome::Outcome;

const PAGE: usize = 100;

/// The commands of `ops customer`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write all data of a customer to a JSON file. docs/operations/privacy.md lists its kinds.
    Export {
        /// The customer's id.
        #[arg(value_name = "ID")]
        id: CustomerId,
        /// The file to write. It must not exist.
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    let Command::Export { id, to } = command;
    let exported = export(&Table::from_env().await?, &id).await?;
    if exported.kinds.values().all(Vec::is_empty) {
        return Err(OpsError::Failed(format!("NOT FOUND: no data has the customer id {id}")));
    }
    let written = write(&exported, &to)?;
    Ok(Outcome::new(&written, written.records.values().sum::<usize>() > 0))
}

/// The content of the file.
#[derive(Debug, Serialize)]
pub struct PersonalData {
    pub customer_id: CustomerId,
    pub exported_at: Instant,
    /// The records by the name of their kind.
    pub kinds: BTreeMap<&'static str, Vec<Record>>,
}

impl PersonalData {
    /// Returns the names of the exported entities.
    #[must_use]
    pub fn entities(&self) -> BTreeSet<&str> {
        let records = self.kinds.values().flatten();
        records.flat_map(|record| [record].into_iter().chain(&record.parts)).map(|one| one.entity.as_str()).collect()
    }
}

#[derive(Debug, Serialize)]
pub struct WrittenFile {
    pub file: PathBuf,
    /// The number of records by kind.
    pub records: BTreeMap<&'static str, usize>,
}

impl fmt::Display for WrittenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in &self.records {
            writeln!(f, "{count:>8}  {kind}")?;
        }
        write!(f, "written to {}", self.file.display())
    }
}

/// Reads all data of a customer.
pub async fn export(table: &Table, customer: &CustomerId) -> Result<PersonalData, OpsError> {
    let mut kinds = BTreeMap::new();
    for kind in Kind::ALL {
        let (mut records, mut after) = (Vec::new(), None);
        // The loop ends, because every page starts after the previous one.
        loop {
            let page = personal::read(table, kind, customer, PAGE, after).await.map_err(failed)?;
            records.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for record in &mut records {
            complete(table, kind, customer, record).await?;
        }
        kinds.insert(kind.name(), records);
    }
    Ok(PersonalData { customer_id: customer.clone(), exported_at: Instant::now(), kinds })
}

fn failed(error: RemovalError) -> OpsError {
    match error {
        RemovalError::Table(error) => error.into(),
        RemovalError::Encode(error) => error.into(),
    }
}

/// Adds the parts that the API does not return.
async fn complete(table: &Table, kind: Kind, customer: &CustomerId, record: &mut Record) -> Result<(), OpsError> {
    let text = |name: &str| record.data.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind {
        Kind::Orders => {
            let id: OrderId = text("id").parse().map_err(OpsError::failed)?;
            record.parts.extend(log(table, &id).await?);
        }
        Kind::Documents => {
            let id: DocumentId = text("document_id").parse().map_err(OpsError::failed)?;
            let is_own = !record.parts.is_empty();
            record.parts.extend(history(table, &id, customer, is_own).await?);
        }
        _ => {}
    }
    Ok(())
}

async fn log(table: &Table, order: &OrderId) -> Result<Vec<Record>, OpsError> {
    let (mut lines, mut after) = (Vec::new(), None);
    // The loop ends, because every page starts after the previous one.
    loop {
        let page = table.query(&order::log(order)?.limit(PAGE).after(after)).await?;
        for line in page.items {
            let data = json!({ "id": line.id, "at": line.at, "by": line.by, "text": line.text });
            let data = data.as_object().cloned().unwrap_or_default();
            lines.push(Record { entity: "OrderLog".to_owned(), data, parts: Vec::new() });
        }
        after = page.next;
        if after.is_none() {
            return Ok(lines);
        }
    }
}

/// Returns the versions and texts of a document. If the document is not the customer's own, returns
/// only those that the customer wrote.
async fn history(table: &Table, id: &DocumentId, customer: &CustomerId, is_own: bool) -> Result<Vec<Record>, OpsError> {
    let is_wanted = |record: &Record| is_own || record.data.values().any(|value| *value == *customer.as_str());
    let mut records = Vec::new();
    let (mut manifests, mut after) = (BTreeSet::new(), None);
    // The loop ends, because every page starts after the previous one.
    loop {
        let page = table.query(&document::history(id)?.limit(PAGE).after(after)).await?;
        for version in &page.items {
            manifests.extend(version.sections.clone());
            records.push(Record::of(version).map_err(failed)?);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if let Some(draft) = table.get(&document::get(id)?).await?.and_then(|head| head.data.draft) {
        manifests.extend(draft.sections);
    }
    // A manifest has one text for each section, but the versions have several.
    for (name, number) in manifests {
        let manifest = Manifest::from([(name, number)]);
        for text in table.batch_get(&document::texts(id, &manifest, None)?).await?.into_iter().flatten() {
            if let TextItem::DocumentSection(text) = text {
                records.push(Record::of(&text).map_err(failed)?);
            }
        }
    }
    records.retain(is_wanted);
    Ok(records)
}

fn write(data: &PersonalData, to: &Path) -> Result<WrittenFile, OpsError> {
    export::write_private(to, data)?;
    let records = data.kinds.iter().map(|(kind, records)| (*kind, records.len())).collect();
    Ok(WrittenFile { file: to.to_owned(), records })
}
