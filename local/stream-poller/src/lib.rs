//! Emulates Lambda's event source mapping for a DynamoDB stream, on one machine.
//!
//! A [`Poller`] follows the shards of one stream, parents before children. It feeds any number of
//! [`Mapping`]s. Each has its own position, so a failing function delays no other mapping.
//!
//! The rules of a mapping come from the [Lambda developer
//! guide](https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html). They cover filter criteria,
//! batch size and window, parallelization factor, retries and record age. They also cover
//! bisection, partial batch responses and the on-failure destination.
//!
//! ```text
//! StreamSource ──pages──▶ reader ──by item key──▶ lane ──batches──▶ Invoke
//!   (HttpStream)      one per mapping         one per unit of          │ given up
//!                      and shard            parallelization            ▼
//!                         ▲                       │               Destination
//!                         └ checkpoint: position ◀┘ settled
//! ```
//!
//! A mapping reads the stream on behalf of its function. The function's [`Role`] may refuse any
//! call for such a read.
//!
//! Delivery is at least once, as on AWS. A record is settled when a function has processed it, a
//! filter has dropped it, or the poller has given it up. Records that are given up go to the
//! destination, if there is one. The position in a shard is the last record that is settled and has
//! no unsettled record before it.

mod answer;
mod checkpoint;
mod filter;
mod function;
mod history;
mod http;
mod lane;
mod mapping;
mod poller;
mod reader;
mod record;
mod settings;
mod source;
mod swept;

pub use filter::{Filter, FilterError};
pub use function::{Condition, Destination, DestinationError, DiscardedBatch, FunctionError, Invoke, Role, StreamCall};
pub use history::{Delivery, MappingDelivery, Verdict};
pub use http::{Endpoint, HttpStream};
pub use mapping::Mapping;
pub use poller::{MappingProgress, Pace, Poller, Progress, ShardProgress};
pub use record::{Record, SequenceNumber};
pub use settings::{MappingSettings, SettingsError, StartingPosition};
pub use source::{Page, Shard, SourceError, Start, StreamSource};
pub use swept::Swept;
