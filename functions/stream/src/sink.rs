//! Sinks: the destinations of changes.

use std::sync::Arc;

use bus::EventBus;
use futures::future::BoxFuture;
use search_index::SearchClient;
use storage::objects::ObjectStore;
use table::Table;

use crate::audit::Audit;
use crate::batch::Record;
use crate::bus::Bus;
use crate::derived::Derived;
use crate::search::Search;
use crate::settings::{Settings, StartError};
use crate::transitions::Rules;
use crate::verdict::Verdicts;

/// A destination that makes the effects of changes durable.
///
/// A sink may receive a record more than once. After a redrive, or while an earlier consumer is
/// still running, it may receive older records after newer records. The result must be the same as
/// after one delivery in order.
pub trait Sink: Send + Sync {
    /// Returns the sink's name in `SINKS`, logs, metrics and quarantined records.
    fn name(&self) -> &'static str;

    /// Takes the records of a batch and settles each in the verdicts. The future may be dropped at
    /// any await. Then Lambda delivers the unsettled records again.
    fn take<'a>(&'a self, records: &'a [Record<'a>], verdicts: &'a Verdicts) -> BoxFuture<'a, ()>;
}

#[derive(Debug, Clone)]
pub struct Shared {
    pub table: Arc<Table>,
    pub settings: Settings,
}

/// Creates the sink with this name. The `match` has one arm for each sink.
///
/// # Errors
/// [`StartError`] for an unknown name, or a sink with an incomplete environment.
pub async fn open(name: &str, shared: &Shared) -> Result<Box<dyn Sink>, StartError> {
    Ok(match name {
        "search" => Box::new(Search::open(SearchClient::from_env()?).await),
        "bus" => {
            let rules = Rules { table: shared.table.name().to_owned(), stock_low: shared.settings.stock_low };
            Box::new(Bus::new(shared.table.clone(), EventBus::from_env().map_err(StartError::Bus)?, rules))
        }
        "audit" => {
            let archive = ObjectStore::from_env("ARCHIVE_BUCKET").map_err(StartError::Objects)?;
            Box::new(Audit::new(shared.table.clone(), Arc::new(archive), shared.settings.concurrency))
        }
        "derived" => Box::new(Derived::new(shared.table.clone(), shared.settings.concurrency)),
        other => return Err(StartError::UnknownSink(other.to_owned())),
    })
}
