//! What the stream's consumer writes to beside the table. All of it takes everything, if it is what the real one takes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bus::{Event, Outcome};
use futures::future::{BoxFuture, ready};
use objects::{Class, MAX_NAME_BYTES, ObjectError, Put};
use search_index::{BulkOperation, BulkOutcome, SearchError};
use stream::Consumer;
use stream::audit::Audit;
use stream::bus::Bus;
use stream::derived::Derived;
use stream::ports::{Index, Objects, Publisher};
use stream::quarantine::InStore;
use stream::search::Search;
use stream::transitions::Rules;
use table::Table;

/// The bus takes no larger entry.
const MAX_EVENT_BYTES: usize = 256 * 1024;
/// The engine takes no longer id.
const MAX_DOCUMENT_ID_BYTES: usize = 512;
/// The engine's versions are signed.
const MAX_VERSION: u64 = i64::MAX.unsigned_abs();

/// The index, the bus, the archive and the quarantine.
#[derive(Debug, Clone, Default)]
pub struct Outside(Arc<Mutex<Kept>>);

/// What they hold.
#[derive(Debug, Default)]
pub struct Kept {
    /// Ids of documents.
    pub documents: Vec<String>,
    /// Objects by name, of archive and quarantine.
    pub objects: BTreeMap<String, Vec<u8>>,
}

impl Outside {
    /// The consumer with all of its sinks over this table.
    #[must_use]
    pub fn consumer(&self, table: Table) -> Consumer {
        let (table, settings) = (Arc::new(table), stream::Settings::default());
        let rules = Rules { table: table.name().to_owned(), stock_low: settings.stock_low };
        let archive = Arc::new(self.clone());
        Consumer::new(
            vec![
                Box::new(Search::new(self.clone())),
                Box::new(Bus::new(Arc::clone(&table), self.clone(), rules)),
                Box::new(Audit::new(Arc::clone(&table), Arc::clone(&archive), settings.concurrency)),
                Box::new(Derived::new(table, settings.concurrency)),
            ],
            Box::new(InStore(archive)),
            settings,
        )
    }

    /// What was kept since the last look.
    #[must_use]
    pub fn take(&self) -> Kept {
        std::mem::take(&mut *self.kept())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index for Outside {
    fn ensure(&self) -> BoxFuture<'_, Result<(), SearchError>> {
        Box::pin(ready(Ok(())))
    }

    fn bulk<'a>(&'a self, operations: &'a [BulkOperation]) -> BoxFuture<'a, Result<Vec<BulkOutcome>, SearchError>> {
        for operation in operations {
            assert!((1..=MAX_DOCUMENT_ID_BYTES).contains(&operation.document_id().len()), "{operation:?}");
            assert!(operation.rev() <= MAX_VERSION, "the engine refuses the call for this version: {operation:?}");
            self.kept().documents.push(operation.document_id().to_owned());
        }
        Box::pin(ready(Ok(vec![BulkOutcome::Applied; operations.len()])))
    }
}

impl Publisher for Outside {
    fn publish<'a>(&'a self, events: &'a [Event]) -> BoxFuture<'a, Vec<Outcome>> {
        for event in events {
            let detail = event.to_detail().expect("an event has a JSON form");
            assert!(detail.len() < MAX_EVENT_BYTES, "an event of {} bytes", detail.len());
            let told = Event::from_detail(&serde_json::from_str(&detail).expect("a detail is JSON"));
            assert!(
                told.is_ok_and(|told| told.to_detail().is_ok_and(|again| again == detail)),
                "subscribers read something else: {detail}"
            );
        }
        Box::pin(ready(vec![Outcome::Published; events.len()]))
    }
}

impl Objects for Outside {
    fn put_new<'a>(&'a self, name: &'a str, body: Vec<u8>, _: Class) -> BoxFuture<'a, Result<Put, ObjectError>> {
        assert!(
            (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.contains(char::is_control),
            "no name of an object: {name:?}"
        );
        let mut kept = self.kept();
        let is_new = !kept.objects.contains_key(name);
        kept.objects.entry(name.to_owned()).or_insert(body);
        Box::pin(ready(Ok(if is_new { Put::Created } else { Put::AlreadyThere })))
    }
}
