use key_schema::item::{Item, entity_name, key_of};
use key_schema::key::shown;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::to_raw_value;
use storage::objects::ObjectStore;
use stream::quarantine::{PREFIX, Quarantined};

use crate::error::OpsError;
use crate::verify;

/// The prefix of the names of batches that Lambda gave up (Lambda developer guide, "Capturing
/// discarded batches for a DynamoDB event source").
const LAMBDA: &str = "aws/lambda/";
pub(crate) const ALL: [&str; 4] = ["search", "bus", "audit", "derived"];
const PAGE: u16 = 1_000;
/// The maximum number of items of an object that a list names.
const NAMED: usize = 3;

/// Images that replace those of a record, because an operator has corrected them.
#[derive(Debug, Clone, Default)]
pub struct Images {
    pub old: Option<Item>,
    pub new: Option<Item>,
}

impl Images {
    pub(super) const fn is_empty(&self) -> bool {
        self.old.is_none() && self.new.is_none()
    }
}

#[derive(Debug)]
pub enum FailedObject {
    /// A record that a sink refused.
    Record(Quarantined),
    /// A batch that Lambda gave up.
    Batch(Batch),
}

/// A batch in the form in which Lambda writes it to S3: metadata, and the event as `payload`.
#[derive(Debug, Deserialize)]
pub struct Batch {
    #[serde(rename = "requestContext")]
    request: RequestContext,
    #[serde(rename = "responseContext", default)]
    response: Option<ResponseContext>,
    timestamp: Option<String>,
    payload: Value,
}

#[derive(Debug, Deserialize)]
struct RequestContext {
    #[serde(rename = "functionArn", default)]
    function: String,
    #[serde(default)]
    condition: String,
}

#[derive(Debug, Deserialize)]
struct ResponseContext {
    #[serde(rename = "functionError")]
    error: Option<String>,
}

/// Returns the names of all objects in ascending order.
pub async fn names(store: &ObjectStore) -> Result<Vec<String>, OpsError> {
    let mut names = Vec::new();
    for prefix in [LAMBDA, PREFIX] {
        let mut after = None;
        // The loop ends, because every page starts after the previous one.
        loop {
            let page = store.list(prefix, after.as_deref(), PAGE).await?;
            names.extend(page.items.into_iter().map(|object| object.name));
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    Ok(names)
}

/// Refuses a name that is not the name of a record or batch that was set aside.
pub(crate) fn check(name: &str) -> Result<(), OpsError> {
    if name.starts_with(PREFIX) || name.starts_with(LAMBDA) {
        return Ok(());
    }
    Err(OpsError::Usage(format!("{name} is no record or batch that was set aside: see `ops redrive list`")))
}

/// Reads an object. Returns `None` if it does not exist.
pub(crate) async fn read(store: &ObjectStore, name: &str) -> Result<Option<Vec<u8>>, OpsError> {
    check(name)?;
    Ok(store.get(name).await?)
}

/// S3 also accepts the deletion of a missing object, so a deletion does not show whether the object
/// existed.
pub(crate) async fn is_there(store: &ObjectStore, name: &str) -> Result<bool, OpsError> {
    // The list is in ascending order, so `name` comes before all longer names that begin with it.
    let page = store.list(name, None, 1).await?;
    Ok(page.items.first().is_some_and(|object| object.name == name))
}

impl FailedObject {
    pub fn decode(name: &str, body: &[u8]) -> Result<Self, OpsError> {
        let wrong = |error| OpsError::Failed(format!("{name} cannot be read: {error}"));
        if name.starts_with(PREFIX) {
            return serde_json::from_slice(body).map(Self::Record).map_err(wrong);
        }
        serde_json::from_slice(body).map(Self::Batch).map_err(wrong)
    }

    /// Returns the object with other images in its record.
    pub(super) fn with_images(self, images: &Images) -> Result<Self, OpsError> {
        if images.is_empty() {
            return Ok(self);
        }
        let Self::Record(mut kept) = self else {
            return Err(OpsError::Usage("--old and --new need a record, and this is a batch".to_owned()));
        };
        let mut record: Value = serde_json::from_str(kept.record.get()).map_err(OpsError::failed)?;
        let change = record.get_mut("dynamodb").and_then(Value::as_object_mut);
        let change = change.ok_or_else(|| OpsError::Failed("the record has no change of an item".to_owned()))?;
        let keys = change.get("Keys").cloned().unwrap_or_default();
        let keys = serde_json::from_value::<Item>(keys).map_err(OpsError::failed)?;
        for (name, image) in [("OldImage", &images.old), ("NewImage", &images.new)] {
            let Some(image) = image else { continue };
            if key_of(image) != key_of(&keys) {
                return Err(OpsError::Usage(format!("{name} in the file is another item than that of the record")));
            }
            verify::readable(image).map_err(|fault| OpsError::Usage(format!("{name} in the file: {fault}")))?;
            change.insert(name.to_owned(), serde_json::to_value(image).map_err(OpsError::failed)?);
        }
        kept.record = to_raw_value(&record).map_err(OpsError::failed)?;
        Ok(Self::Record(kept))
    }

    #[must_use]
    pub fn at(&self) -> String {
        match self {
            Self::Record(record) => record.at.to_string(),
            Self::Batch(batch) => batch.timestamp.clone().unwrap_or_default(),
        }
    }

    /// Returns the sinks or the function that failed on the records.
    #[must_use]
    pub fn by(&self) -> &str {
        match self {
            Self::Record(record) => &record.consumer,
            Self::Batch(batch) => &batch.request.function,
        }
    }

    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Record(record) => &record.kind,
            Self::Batch(batch) => &batch.request.condition,
        }
    }

    /// Returns the details of the reason, which may quote the item.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Record(record) => &record.reason,
            Self::Batch(batch) => batch.response.as_ref().and_then(|response| response.error.as_deref()).unwrap_or("-"),
        }
    }

    /// Returns the records as an event, in the form in which Lambda passes it to the function.
    pub fn event(&self) -> Result<String, OpsError> {
        match self {
            Self::Record(record) => Ok(format!(r#"{{"Records":[{}]}}"#, record.record.get())),
            Self::Batch(Batch { payload: Value::String(text), .. }) => Ok(text.clone()),
            Self::Batch(Batch { payload: payload @ Value::Object(_), .. }) => Ok(payload.to_string()),
            Self::Batch(_) => Err(OpsError::Failed("the batch has no payload".to_owned())),
        }
    }

    /// Returns the sinks that must process the records. For a record these are the sinks that have
    /// not processed it, and for a batch all sinks.
    ///
    /// A batch names only its function, and the sinks of a function depend on the deployment:
    /// `FoldStreamConsumers` gives `StreamEvents` the search sink too. A replay to all sinks is
    /// safe, because every sink may process a record twice.
    #[must_use]
    pub fn sinks(&self) -> Vec<&str> {
        match self {
            Self::Record(record) => record.consumer.split(',').collect(),
            Self::Batch(_) => ALL.to_vec(),
        }
    }

    #[must_use]
    pub fn records(&self) -> usize {
        #[derive(Deserialize)]
        struct Counted {
            #[serde(rename = "Records")]
            records: Vec<serde::de::IgnoredAny>,
        }
        let event = self.event().unwrap_or_default();
        serde_json::from_str::<Counted>(&event).map_or(0, |counted| counted.records.len())
    }

    /// Returns the entity and the key of the first items that the records name.
    #[must_use]
    pub fn items(&self) -> Vec<String> {
        #[derive(Deserialize)]
        struct Event {
            #[serde(rename = "Records")]
            records: Vec<Value>,
        }
        let event = self.event().unwrap_or_default();
        let records = serde_json::from_str::<Event>(&event).map_or_else(|_| Vec::new(), |event| event.records);
        let mut items: Vec<String> = records.iter().filter_map(named).collect();
        items.dedup();
        items.truncate(NAMED);
        items
    }
}

/// Returns the entity and the key in a record, even if its image cannot be decoded.
fn named(record: &Value) -> Option<String> {
    let part = |name: &str| Item::deserialize(record.get("dynamodb")?.get(name)?).ok();
    let key = key_of(&part("Keys")?)?;
    let image = part("NewImage").or_else(|| part("OldImage"));
    let entity = image.as_ref().and_then(|image| entity_name(image).ok()).unwrap_or("unknown entity");
    Some(format!("{entity} {}", shown(&key)))
}
