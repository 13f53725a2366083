//! Follows the shards of a stream for one mapping: finds the shards, and reads parents before
//! children.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::mapping::{Attention, MappingState, ShardState};
use crate::poller::Backoff;
use crate::source::SharedSource;
use crate::{Start, StreamCall, reader};

/// Interval between two searches for new shards. When a shard ends, the search for its
/// children begins at once.
const LOOK: Duration = Duration::from_secs(10);

/// Follows the shards. The caller subscribes to `attention` first, so that no nudge is missed.
pub(crate) async fn run(
    source: Arc<SharedSource>,
    mapping: Arc<MappingState>,
    mut attention: watch::Receiver<Attention>,
) {
    let mut trouble = Backoff::new(mapping.pace.retry, mapping.pace.retry_most);
    let mut readers = JoinSet::new();
    loop {
        for shard in ready(&mapping) {
            let (source, mapping) = (Arc::clone(&source), Arc::clone(&mapping));
            readers.spawn(async move {
                reader::run(source, mapping, Arc::clone(&shard)).await;
                shard
            });
        }
        let mut ended = None;
        tokio::select! {
            Some(reader) = readers.join_next() => match reader {
                Ok(shard) => ended = Some(shard),
                Err(error) => tracing::error!(%error, "a reader of the stream panicked"),
            },
            // After a change, a caller may want all records to be read now. Some records can be in
            // shards that are not in the list yet, so the list is renewed at once.
            Ok(()) = attention.changed() => {}
            () = sleep(LOOK) => {}
        }
        // The children of an ended shard are listed before the shard counts as finished. Otherwise
        // all known shards would be finished for a moment, although children remain.
        while let Err(error) = refresh_shards(&source, &mapping).await {
            tracing::warn!(%error, "the shards of the stream cannot be listed");
            sleep(trouble.next()).await;
        }
        trouble.reset();
        if let Some(shard) = ended {
            shard.reader().finished = true;
            mapping.notify();
        }
    }
}

/// Updates the list of shards. Removes finished shards that the stream no longer has.
async fn refresh_shards(source: &SharedSource, mapping: &MappingState) -> Result<(), crate::SourceError> {
    let nudge = mapping.attention.borrow().nudges;
    mapping.mapping.may(StreamCall::DescribeStream)?;
    let listed = source.get().shards().await?;
    let mut list = mapping.shards();
    list.retain(|known| {
        let gone = !listed.iter().any(|shard| shard.id == known.id);
        !(gone && known.reader().finished)
    });
    for shard in listed {
        if !list.iter().any(|known| known.id == shard.id) {
            // The shard is newer than the mapping, so the mapping reads all of it.
            list.push(Arc::new(ShardState::new(shard.id, shard.parent, Start::TrimHorizon, None)));
        }
    }
    mapping.set_shards(list, nudge);
    Ok(())
}

/// Returns the shards that can be read now: no task reads them yet, and their parent is finished or
/// no longer exists.
fn ready(mapping: &MappingState) -> Vec<Arc<ShardState>> {
    let shards = mapping.shards();
    let waits_for = |parent: &Option<String>| {
        parent.as_ref().is_some_and(|parent| shards.iter().any(|shard| shard.id == *parent && !shard.reader().finished))
    };
    shards
        .iter()
        .filter(|shard| !waits_for(&shard.parent))
        .filter(|shard| !std::mem::replace(&mut shard.reader().started, true))
        .cloned()
        .collect()
}
