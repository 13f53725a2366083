use std::fmt;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use storage::objects::ObjectStore;

use super::objects::{FailedObject, names, read};
use crate::error::OpsError;
use crate::outcome::{Outcome, Shown};
use crate::progress::Progress;

const CONCURRENCY: usize = 8;
/// The maximum length of a reason in a list, in characters. `show` prints the complete reason.
const REASON: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectList {
    /// The objects, ordered by name.
    pub objects: Vec<ObjectSummary>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectSummary {
    pub name: String,
    pub at: String,
    /// The sinks or the function that failed on the records.
    pub by: String,
    pub kind: String,
    /// The details of the reason, shortened.
    pub reason: String,
    pub records: usize,
    /// The entity and the key of the first items that the records name.
    pub items: Vec<String>,
}

impl fmt::Display for ObjectList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ObjectSummary { name, at, by, kind, reason, records, items } in &self.objects {
            writeln!(f, "{name}\n  {at}  {by}  {kind}  {records} records  {reason}")?;
            for item in items {
                writeln!(f, "  {item}")?;
            }
        }
        let records: usize = self.objects.iter().map(|object| object.records).sum();
        write!(f, "{} objects with {records} records", self.objects.len())
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Discarded {
    /// The number of objects that existed and were deleted.
    pub objects: usize,
    /// The names for which no object existed.
    pub gone: Vec<String>,
}

impl fmt::Display for Discarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "discarded: {} objects", self.objects)?;
        for name in &self.gone {
            writeln!(f, "NOT FOUND: {name}")?;
        }
        Ok(())
    }
}

pub async fn list(store: &ObjectStore) -> Result<ObjectList, OpsError> {
    let names = names(store).await?;
    let bar = Progress::new("list", u64::try_from(names.len()).ok());
    let objects = stream::iter(names)
        .map(|name| async {
            let body = read(store, &name).await?;
            bar.step(1);
            // The object may have been deleted since the names were listed.
            Ok::<_, OpsError>(body.map(|body| listed(name, &body)))
        })
        .buffered(CONCURRENCY)
        .try_collect::<Vec<_>>()
        .await?;
    Ok(ObjectList { objects: objects.into_iter().flatten().collect() })
}

fn listed(name: String, body: &[u8]) -> ObjectSummary {
    match FailedObject::decode(&name, body) {
        Ok(kept) => ObjectSummary {
            at: kept.at(),
            by: kept.by().to_owned(),
            kind: kept.kind().to_owned(),
            reason: shortened(kept.reason()),
            records: kept.records(),
            items: kept.items(),
            name,
        },
        Err(error) => ObjectSummary {
            name,
            at: String::new(),
            by: String::new(),
            kind: "unreadable".to_owned(),
            reason: shortened(&error.to_string()),
            records: 0,
            items: Vec::new(),
        },
    }
}

/// Returns the reason in one line of limited length.
fn shortened(reason: &str) -> String {
    let mut characters = reason.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut short: String = characters.by_ref().take(REASON).collect();
    if characters.next().is_some() {
        short.push('…');
    }
    short
}

/// Shows a complete object. The payload of a batch is JSON inside a string, and is shown as JSON.
pub async fn show(store: &ObjectStore, name: &str) -> Result<Outcome, OpsError> {
    let Some(body) = read(store, name).await? else {
        return Err(OpsError::Failed(format!("{name} does not exist")));
    };
    let mut shown = Shown::new(&body);
    if let Shown::Json(object) = &mut shown
        && let Some(payload) = object.get_mut("payload")
        && let Some(text) = payload.as_str()
        && let Ok(event) = serde_json::from_str(text)
    {
        *payload = event;
    }
    Ok(Outcome::new(&shown, true))
}
