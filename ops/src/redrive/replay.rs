use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use search_index::SearchClient;
use serde::Serialize;
use storage::objects::ObjectStore;
use stream::batch::{Event, Record};
use stream::quarantine::{self, Quarantine};
use stream::sink::{self, Shared, Sink};
use stream::verdict::{Reason, Verdict, Verdicts};
use stream::{Consumer, Settings};
use table::Table;
use tokio::time::Instant;

use super::objects::{ALL, FailedObject, Images, check, read};
use super::present::Present;
use crate::error::OpsError;
use crate::items::Items;
use crate::progress::Progress;

/// The time limit for one object in the sinks other than the search index.
const PATIENCE: Duration = Duration::from_secs(300);

pub trait Sinks {
    fn search(&self) -> BoxFuture<'_, Result<Present, OpsError>>;

    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Box<dyn Sink>, OpsError>>;
}

/// The sinks of the functions, configured by the environment.
pub struct FromEnvironment {
    shared: Shared,
    items: Items,
}

impl FromEnvironment {
    /// Reads the configuration that all sinks share.
    pub async fn new() -> Result<Self, OpsError> {
        let settings = Settings::from_env().map_err(|error| OpsError::Usage(error.to_string()))?;
        let shared = Shared { table: Arc::new(Table::from_env().await?), settings };
        Ok(Self { shared, items: Items::from_env().await? })
    }
}

impl Sinks for FromEnvironment {
    fn search(&self) -> BoxFuture<'_, Result<Present, OpsError>> {
        Box::pin(async move {
            let client = SearchClient::from_env()?;
            client.ensure_indices().await?;
            Ok(Present::new(client, self.items.clone()))
        })
    }

    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Box<dyn Sink>, OpsError>> {
        Box::pin(
            async move { sink::open(name, &self.shared).await.map_err(|error| OpsError::Usage(error.to_string())) },
        )
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// The number of objects whose records are all durable. These objects are deleted.
    pub objects: u64,
    pub records: u64,
    /// The names for which no object exists any more.
    pub gone: Vec<String>,
    /// The objects that were not replayed completely. They are not deleted.
    pub kept: Vec<Failed>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    pub name: String,
    /// The reasons why this replay failed, each with its sink. No reason appears twice.
    pub reasons: Vec<String>,
}

impl Replayed {
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.kept.is_empty() && self.gone.is_empty()
    }
}

impl fmt::Display for Replayed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "replayed and deleted: {} objects with {} records", self.objects, self.records)?;
        for name in &self.gone {
            writeln!(f, "NOT FOUND: {name}")?;
        }
        for Failed { name, reasons } in &self.kept {
            writeln!(f, "kept: {name}")?;
            for reason in reasons {
                writeln!(f, "  {reason}")?;
            }
        }
        Ok(())
    }
}

/// Replays the records of these objects, one object after the other, in the given order.
///
/// # Errors
/// [`OpsError::Usage`] for a name that is not the name of a record or batch that was set aside.
/// Then nothing is replayed.
///
/// [`OpsError`] when the bucket or a sink cannot be reached at all. The objects that were replayed
/// before the error are already deleted. Call the function again to replay the other objects.
pub async fn replay(store: &ObjectStore, sinks: &impl Sinks, names: &[String]) -> Result<Replayed, OpsError> {
    replay_with(store, sinks, names, &Images::default()).await
}

/// Like [`replay`], with other images than those in the record.
///
/// # Errors
/// [`OpsError::Usage`] if there are images and not exactly one name, or if an image is unreadable or
/// belongs to another item.
pub async fn replay_with(
    store: &ObjectStore,
    sinks: &impl Sinks,
    names: &[String],
    images: &Images,
) -> Result<Replayed, OpsError> {
    if !images.is_empty() && names.len() != 1 {
        return Err(OpsError::Usage("--old and --new need the name of one record".to_owned()));
    }
    names.iter().try_for_each(|name| check(name))?;
    let bar = Progress::new("replay", u64::try_from(names.len()).ok());
    let mut opened = Opened { sinks, search: None, consumers: BTreeMap::new() };
    let mut replayed = Replayed::default();
    for name in names {
        let Some(body) = read(store, name).await? else {
            replayed.gone.push(name.clone());
            continue;
        };
        let reasons = match FailedObject::decode(name, &body) {
            Ok(kept) => {
                let kept = kept.with_images(images)?;
                let reasons = opened.take(&kept).await?;
                if reasons.is_empty() {
                    // The object is deleted last. After a crash, the next run replays the object
                    // again. The second replay changes nothing.
                    store.delete(name).await?;
                    replayed.objects += 1;
                    replayed.records += u64::try_from(kept.records()).unwrap_or_default();
                }
                reasons
            }
            Err(error) => vec![error.to_string()],
        };
        if !reasons.is_empty() {
            replayed.kept.push(Failed { name: name.clone(), reasons });
        }
        bar.step(1);
    }
    Ok(replayed)
}

struct Opened<'s, S> {
    sinks: &'s S,
    search: Option<Present>,
    consumers: BTreeMap<String, Observed>,
}

impl<S: Sinks> Opened<'_, S> {
    /// Replays the records of one object. Returns the reasons why some records are not durable,
    /// without repetition.
    async fn take(&mut self, kept: &FailedObject) -> Result<Vec<String>, OpsError> {
        let names = kept.sinks();
        if let Some(unknown) = names.iter().find(|name| !ALL.contains(name)) {
            return Ok(vec![format!("there is no sink {unknown:?}")]);
        }
        let event: Event = match kept.event().map(|text| serde_json::from_str(&text)) {
            Ok(Ok(event)) => event,
            Ok(Err(error)) => return Ok(vec![format!("the records cannot be read: {error}")]),
            Err(error) => return Ok(vec![error.to_string()]),
        };
        let (search, others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| *name == "search");
        let mut reasons = Vec::new();
        if !search.is_empty() {
            let present = match &mut self.search {
                Some(present) => present,
                none => none.insert(self.sinks.search().await?),
            };
            reasons.extend(present.take(&event).await.into_iter().map(|reason| format!("search: {reason}")));
        }
        if !others.is_empty() {
            let observed = match self.consumers.entry(others.join(",")) {
                Entry::Occupied(there) => there.into_mut(),
                Entry::Vacant(place) => place.insert(Observed::open(self.sinks, &others).await?),
            };
            reasons.extend(observed.take(&event).await);
        }
        reasons.sort_unstable();
        reasons.dedup();
        Ok(reasons)
    }
}

/// A consumer that collects the reasons of failures.
struct Observed {
    consumer: Consumer,
    reasons: Reasons,
}

type Reasons = Arc<Mutex<Vec<String>>>;

impl Observed {
    async fn open(sinks: &impl Sinks, names: &[&str]) -> Result<Self, OpsError> {
        let reasons = Reasons::default();
        let mut opened: Vec<Box<dyn Sink>> = Vec::with_capacity(names.len());
        for name in names {
            let sink = sinks.open(name).await?;
            opened.push(Box::new(Listening { sink, reasons: Arc::clone(&reasons) }));
        }
        // A record that is refused again stays in its object. It is not set aside a second time.
        let quarantine = Box::new(StaysAside(Arc::clone(&reasons)));
        Ok(Self { consumer: Consumer::new(opened, quarantine, Settings::default()), reasons })
    }
}

impl Observed {
    /// Replays the records. Returns the reasons why some records are not durable.
    async fn take(&self, event: &Event) -> Vec<String> {
        let taken = match self.consumer.take(event, Instant::now() + PATIENCE).await {
            Ok(taken) => taken,
            Err(error) => return vec![error.to_string()],
        };
        let reasons = std::mem::take(&mut *self.reasons.lock().unwrap_or_else(PoisonError::into_inner));
        if taken.answer.earliest().is_none() {
            return Vec::new();
        }
        if reasons.is_empty() { vec!["not finished in time".to_owned()] } else { reasons }
    }
}

struct Listening {
    sink: Box<dyn Sink>,
    reasons: Reasons,
}

impl Sink for Listening {
    fn name(&self) -> &'static str {
        self.sink.name()
    }

    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            self.sink.take(records, verdicts).await;
            let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
            for verdict in verdicts.to_vec().into_iter().flatten() {
                if let Verdict::Failed(reason) = verdict {
                    reasons.push(format!("{}: {reason}", self.name()));
                }
            }
        })
    }
}

struct StaysAside(Reasons);

impl Quarantine for StaysAside {
    fn put<'a>(&'a self, entry: quarantine::Entry<'a>) -> BoxFuture<'a, Result<(), Reason>> {
        let reason = entry.reason.clone();
        let mut reasons = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.push(format!("{}: {reason}", entry.consumer));
        drop(reasons);
        Box::pin(async move { Err(reason) })
    }
}
