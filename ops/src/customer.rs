//! `ops customer export`: writes all data of one customer to a JSON file, for a request for access.
//!
//! The file has the records of [`personal::Kind`], with the notes and ids of staff that the API
//! leaves out. It also has the log of each order, and the texts of the customer's documents. It has
//! the number of unreadable items that it leaves out.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use key_schema::document::{self, Manifest, TextItem};
use key_schema::id::{CustomerId, DocumentId, OrderId};
use key_schema::instant::Instant;
use key_schema::order;
use key_schema::text::Email;
use serde::Serialize;
use serde_json::{Value, json};
use table::{Table, TableError};
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
        /// The customer's id, or that of a guest.
        #[arg(value_name = "ID", required_unless_present = "guest")]
        id: Option<CustomerId>,
        /// The email address of a guest, instead of an id.
        #[arg(long, value_name = "EMAIL", conflicts_with = "id")]
        guest: Option<Email>,
        /// The file to write. It must not exist.
        #[arg(long, value_name = "FILE")]
        to: PathBuf,
    },
}

pub(crate) async fn run(command: Command) -> Result<Outcome, OpsError> {
    let Command::Export { id, guest, to } = command;
    let id = guest.as_ref().map(CustomerId::guest).or(id);
    let id = id.ok_or_else(|| OpsError::Failed("give the id of a customer, or --guest".to_owned()))?;
    let exported = export(&Table::from_env().await?, &id).await?;
    if exported.kinds.values().all(Vec::is_empty) {
        return Err(OpsError::Failed(format!("NOT FOUND: no data has the customer id {id}")));
    }
    let written = write(&exported, &to)?;
    Ok(Outcome::new(&written, written.left_out == 0))
}

/// The content of the file.
#[derive(Debug, Serialize)]
pub struct PersonalData {
    pub customer_id: CustomerId,
    pub exported_at: Instant,
    /// The records by the name of their kind.
    pub kinds: BTreeMap<&'static str, Vec<Record>>,
    /// The number of unreadable items that the file does not have.
    pub left_out: usize,
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
    pub left_out: usize,
}

impl fmt::Display for WrittenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in &self.records {
            writeln!(f, "{count:>8}  {kind}")?;
        }
        if self.left_out > 0 {
            writeln!(f, "{:>8}  unreadable items are left out: see the errors above and ops verify", self.left_out)?;
        }
        write!(f, "written to {}", self.file.display())
    }
}

/// Reads all data of a customer.
pub async fn export(table: &Table, customer: &CustomerId) -> Result<PersonalData, OpsError> {
    let (mut kinds, mut left_out) = (BTreeMap::new(), 0);
    for kind in Kind::ALL {
        let (mut records, mut after) = (Vec::new(), None);
        // The loop ends, because every page starts after the previous one.
        loop {
            let page = personal::read(table, kind, customer, PAGE, after).await.map_err(failed)?;
            left_out += page.left_out();
            records.extend(page.items);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        for record in &mut records {
            left_out += complete(table, kind, customer, record).await?;
        }
        kinds.insert(kind.name(), records);
    }
    Ok(PersonalData { customer_id: customer.clone(), exported_at: Instant::now(), kinds, left_out })
}

fn failed(error: RemovalError) -> OpsError {
    match error {
        RemovalError::Table(error) => error.into(),
        RemovalError::Encode(error) => error.into(),
        // A copy refuses nothing and changes nothing.
        RemovalError::Refused(_) | RemovalError::Contended => TableError::Contended.into(),
    }
}

/// Adds the parts that the API does not return. Returns the number of unreadable parts.
async fn complete(table: &Table, kind: Kind, customer: &CustomerId, record: &mut Record) -> Result<usize, OpsError> {
    let text = |name: &str| record.data.get(name).and_then(Value::as_str).unwrap_or_default();
    // The copy counts a record whose id is unreadable.
    let (parts, left_out) = match kind {
        Kind::Orders => match text("id").parse::<OrderId>() {
            Ok(id) => log(table, &id).await?,
            Err(_) => return Ok(0),
        },
        Kind::Documents => match text("document_id").parse::<DocumentId>() {
            Ok(id) => history(table, &id, customer, !record.parts.is_empty()).await?,
            Err(_) => return Ok(0),
        },
        _ => return Ok(0),
    };
    record.parts.extend(parts);
    Ok(left_out)
}

async fn log(table: &Table, order: &OrderId) -> Result<(Vec<Record>, usize), OpsError> {
    let (mut lines, mut left_out, mut after) = (Vec::new(), 0, None);
    // The loop ends, because every page starts after the previous one.
    loop {
        let page = table.query_readable(&order::log(order)?.limit(PAGE).after(after)).await?;
        left_out += page.left_out();
        for line in page.items {
            let data = json!({ "id": line.id, "at": line.at, "by": line.by, "text": line.text });
            let data = data.as_object().cloned().unwrap_or_default();
            lines.push(Record { entity: "OrderLog".to_owned(), data, parts: Vec::new() });
        }
        after = page.next;
        if after.is_none() {
            return Ok((lines, left_out));
        }
    }
}

/// Returns the versions and texts of a document. If the document is not the customer's own, returns
/// only those that the customer wrote. Also returns the number of unreadable items.
async fn history(
    table: &Table,
    id: &DocumentId,
    customer: &CustomerId,
    is_own: bool,
) -> Result<(Vec<Record>, usize), OpsError> {
    let is_wanted = |record: &Record| is_own || record.data.values().any(|value| *value == *customer.as_str());
    let (mut records, mut left_out) = (Vec::new(), 0);
    let (mut manifests, mut after) = (BTreeSet::new(), None);
    // The loop ends, because every page starts after the previous one.
    loop {
        let page = table.query_readable(&document::history(id)?.limit(PAGE).after(after)).await?;
        left_out += page.left_out();
        for version in &page.items {
            manifests.extend(version.sections.clone());
            records.push(Record::of(version).map_err(failed)?);
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    match table.get(&document::get(id)?).await {
        Ok(head) => {
            manifests.extend(head.and_then(|head| head.data.draft).into_iter().flat_map(|draft| draft.sections))
        }
        // The copy of an own document counts its unreadable head.
        Err(TableError::Decode(_)) => {}
        Err(error) => return Err(error.into()),
    }
    // A manifest has one text for each section, but the versions have several.
    for (name, number) in manifests {
        let manifest = Manifest::from([(name, number)]);
        let texts = table.batch_get_readable(&document::texts(id, &manifest, None)?).await?;
        left_out += texts.unreadable.len();
        for text in texts.items.into_iter().flatten() {
            if let TextItem::DocumentSection(text) = text {
                records.push(Record::of(&text).map_err(failed)?);
            }
        }
    }
    records.retain(is_wanted);
    Ok((records, left_out))
}

fn write(data: &PersonalData, to: &Path) -> Result<WrittenFile, OpsError> {
    export::write_private(to, data)?;
    let records = data.kinds.iter().map(|(kind, records)| (*kind, records.len())).collect();
    Ok(WrittenFile { file: to.to_owned(), records, left_out: data.left_out })
}
