//! Where changes go.

use std::sync::Arc;

use bus::EventBus;
use futures::future::BoxFuture;
use objects::ObjectStore;
use search_index::SearchClient;
use table::Table;

use crate::audit::Audit;
use crate::batch::Record;
use crate::bus::Bus;
use crate::derived::Derived;
use crate::ledger::Ledger;
use crate::search::Search;
use crate::settings::{Settings, StartError};
use crate::transitions::Rules;

/// Makes the effects of changes durable somewhere.
///
/// A sink gets a record more than once and, after a redrive or beside a slow predecessor, older records after newer ones. Its effects must be the
/// same then.
pub trait Sink: Send + Sync {
    /// Its name in `SINKS`, in logs, metrics and quarantined records.
    fn name(&self) -> &'static str;

    /// Takes the records of a batch and settles each in the ledger. May be dropped at any await: what is not settled by then comes again.
    fn take<'a>(&'a self, records: &'a [Record<'a>], ledger: &'a Ledger) -> BoxFuture<'a, ()>;
}

/// What sinks are made from.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The table.
    pub table: Arc<Table>,
    /// How the consumer works.
    pub settings: Settings,
}

/// The sink with this name, ready to take records. One line a sink.
///
/// # Errors
/// [`StartError`] for an unknown name and for a sink whose environment is incomplete.
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
