//! The objects in the bucket of failed records.

use objects::ObjectStore;
use serde::Deserialize;
use serde_json::Value;
use stream::quarantine::{PREFIX, Quarantined};

use crate::error::OpsError;

/// What the names of batches begin with that Lambda gave up (Lambda developer guide, "Capturing discarded batches for a DynamoDB event
/// source").
const LAMBDA: &str = "aws/lambda/";
/// Every sink that there is.
pub(crate) const ALL: [&str; 4] = ["search", "bus", "audit", "derived"];
/// Names that are asked for at once.
const PAGE: u16 = 1_000;

/// One object.
#[derive(Debug)]
pub enum Kept {
    /// A record that a sink refused.
    Record(Quarantined),
    /// A batch that Lambda gave up.
    Batch(Batch),
}

/// A batch as Lambda writes it to S3: what it says of any destination, and the event itself.
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

/// The names of all objects, in the order of the names.
///
/// # Errors
/// [`OpsError`].
pub async fn names(store: &ObjectStore) -> Result<Vec<String>, OpsError> {
    let mut names = Vec::new();
    for prefix in [LAMBDA, PREFIX] {
        let mut after = None;
        // Ends with the bucket: every page begins behind the one before.
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

/// Refuses a name that is of something else.
pub(crate) fn check(name: &str) -> Result<(), OpsError> {
    if name.starts_with(PREFIX) || name.starts_with(LAMBDA) {
        return Ok(());
    }
    Err(OpsError::Usage(format!("{name} is no record or batch that was set aside: see `ops redrive list`")))
}

/// Reads an object; `None` if it is not there.
pub(crate) async fn read(store: &ObjectStore, name: &str) -> Result<Option<Vec<u8>>, OpsError> {
    check(name)?;
    Ok(store.get(name).await?)
}

/// Whether there is such an object: S3 deletes what is not there, too. It need not be one that can be read.
pub(crate) async fn is_there(store: &ObjectStore, name: &str) -> Result<bool, OpsError> {
    // Of all names that begin so this is the first.
    let page = store.list(name, None, 1).await?;
    Ok(page.items.first().is_some_and(|object| object.name == name))
}

impl Kept {
    /// Decodes an object of this name.
    ///
    /// # Errors
    /// [`OpsError::Failed`] when it is not what its name says.
    pub fn decode(name: &str, body: &[u8]) -> Result<Self, OpsError> {
        let wrong = |error| OpsError::Failed(format!("{name} cannot be read: {error}"));
        if name.starts_with(PREFIX) {
            return serde_json::from_slice(body).map(Self::Record).map_err(wrong);
        }
        serde_json::from_slice(body).map(Self::Batch).map_err(wrong)
    }

    /// When it was set aside.
    #[must_use]
    pub fn at(&self) -> String {
        match self {
            Self::Record(record) => record.at.to_string(),
            Self::Batch(batch) => batch.timestamp.clone().unwrap_or_default(),
        }
    }

    /// Who did not take it: sinks, or a function.
    #[must_use]
    pub fn by(&self) -> &str {
        match self {
            Self::Record(record) => &record.consumer,
            Self::Batch(batch) => &batch.request.function,
        }
    }

    /// Why, in a word.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::Record(record) => &record.kind,
            Self::Batch(batch) => &batch.request.condition,
        }
    }

    /// Why, in more words. May quote the item.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Record(record) => &record.reason,
            Self::Batch(batch) => batch.response.as_ref().and_then(|response| response.error.as_deref()).unwrap_or("-"),
        }
    }

    /// The records as an event, as Lambda hands it to the function.
    ///
    /// # Errors
    /// [`OpsError::Failed`] when there is none in the object.
    pub fn event(&self) -> Result<String, OpsError> {
        match self {
            Self::Record(record) => Ok(format!(r#"{{"Records":[{}]}}"#, record.record.get())),
            Self::Batch(Batch { payload: Value::String(text), .. }) => Ok(text.clone()),
            Self::Batch(Batch { payload: payload @ Value::Object(_), .. }) => Ok(payload.to_string()),
            Self::Batch(_) => Err(OpsError::Failed("the batch has no payload".to_owned())),
        }
    }

    /// The sinks that are to take it: of a record those that have not, of a batch all. Which sinks a function had when it gave a batch up cannot be told
    /// from its name (`StreamEvents` has those of the index too while the consumers are folded), and every sink can take a record twice.
    #[must_use]
    pub fn sinks(&self) -> Vec<&str> {
        match self {
            Self::Record(record) => record.consumer.split(',').collect(),
            Self::Batch(_) => ALL.to_vec(),
        }
    }

    /// How many records it has.
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
}
