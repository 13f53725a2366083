//! Follows the shards of a stream for one mapping: finds them, and reads parents before children.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::backoff::Backoff;
use crate::mapping::{Attention, MappingState, ShardState};
use crate::source::SharedSource;
use crate::{Start, StreamCall, reader};

/// How often to look for new shards. A shard that continues one that ended is found at once.
const LOOK: Duration = Duration::from_secs(10);

/// `attention` is subscribed to before anybody can ask for it, so that no request is missed.
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
                Err(error) => tracing::error!(%error, "a reader of the stream broke down"),
            },
            // Somebody wants to be sure that nothing is left.
            Ok(()) = attention.changed() => {}
            () = sleep(LOOK) => {}
        }
        // The children of a shard that ended are known before it counts as finished, so that nobody
        // sees a moment in which everything known is done.
        while let Err(error) = look(&source, &mapping).await {
            tracing::warn!(%error, "the shards of the stream cannot be listed");
            sleep(trouble.next()).await;
        }
        trouble.reset();
        if let Some(shard) = ended {
            shard.marks().finished = true;
            mapping.tell();
        }
    }
}

/// Brings the list of shards up to date. Shards that are done and gone from the stream are
/// forgotten.
async fn look(source: &SharedSource, mapping: &MappingState) -> Result<(), crate::SourceError> {
    let nudge = mapping.attention.borrow().nudges;
    mapping.mapping.may(StreamCall::DescribeStream)?;
    let listed = source.get().shards().await?;
    let mut list = mapping.shards();
    list.retain(|known| {
        let gone = !listed.iter().any(|shard| shard.id == known.id);
        !(gone && known.marks().finished)
    });
    for shard in listed {
        if !list.iter().any(|known| known.id == shard.id) {
            // It began after this mapping did: all of it is wanted.
            list.push(Arc::new(ShardState::new(shard.id, shard.parent, Start::TrimHorizon, None)));
        }
    }
    mapping.set_shards(list, nudge);
    Ok(())
}

/// The shards that nobody reads yet and whose parent, if it is still there, is finished.
fn ready(mapping: &MappingState) -> Vec<Arc<ShardState>> {
    let shards = mapping.shards();
    let waits_for = |parent: &Option<String>| {
        parent.as_ref().is_some_and(|parent| shards.iter().any(|shard| shard.id == *parent && !shard.marks().finished))
    };
    shards
        .iter()
        .filter(|shard| !waits_for(&shard.parent))
        .filter(|shard| !std::mem::replace(&mut shard.marks().started, true))
        .cloned()
        .collect()
}
