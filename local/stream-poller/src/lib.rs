//! What Lambda's event source mapping does for a DynamoDB stream, on one machine.
//!
//! A [`Poller`] follows the shards of one stream, parents before children, and feeds any number of
//! [`Mapping`]s, each at its own position: a mapping whose function fails delays no other. For each
//! of them it applies the rules of the
//! [Lambda developer guide](https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html): filter
//! criteria, batch size and window, parallelization factor, retries and record age, bisection,
//! partial batch responses and the on-failure destination.
//!
//! ```text
//! StreamSource ──pages──▶ reader ──by item key──▶ lane ──batches──▶ Invoke
//!   (HttpStream)      one a mapping           one a unit of            │ given up
//!                      and shard            parallelization            ▼
//!                         ▲                       │               Destination
//!                         └──── ledger: position ◀┘ settled
//! ```
//!
//! A mapping reads in the name of its function: every call for it may be refused by that function's [`Role`].
//!
//! Delivery is at least once, as on AWS: a record is settled when a function took it, a filter left
//! it out, or the destination got it, and the position is the last record before which all are.

mod answer;
mod backoff;
mod filter;
mod function;
mod http;
mod lane;
mod ledger;
mod mapping;
mod poller;
mod progress;
mod reader;
mod record;
mod role;
mod settings;
mod source;

pub use filter::{Filter, FilterError};
pub use function::{Condition, Destination, DestinationError, DiscardedBatch, FunctionError, Invoke};
pub use http::{Endpoint, HttpStream};
pub use mapping::Mapping;
pub use poller::{Pace, Poller};
pub use progress::{MappingProgress, Progress, ShardProgress};
pub use record::{Record, SequenceNumber};
pub use role::{Role, StreamCall};
pub use settings::{MappingSettings, SettingsError, StartingPosition};
pub use source::{Page, Shard, SourceError, Start, StreamSource};
