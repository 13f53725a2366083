//! Where changes go.

use std::sync::Arc;

use futures::future::BoxFuture;
use search_index::SearchClient;
use table::Table;

use crate::batch::Record;
use crate::ledger::Ledger;
use crate::sales::Sales;
use crate::search::Search;
use crate::settings::{Settings, StartError};

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

/// The sink with this name, ready to take records. One line a sink.
///
/// # Errors
/// [`StartError`] for an unknown name and for a sink whose environment is incomplete.
pub async fn open(name: &str, table: &Arc<Table>, settings: Settings) -> Result<Box<dyn Sink>, StartError> {
    Ok(match name {
        "search" => Box::new(Search::open(SearchClient::from_env()?).await),
        "derived" => Box::new(Sales::new(table.clone(), settings.concurrency)),
        other => return Err(StartError::UnknownSink(other.to_owned())),
    })
}
