//! A test of the complete cycle with concurrent writers and readers: the table throttles,
//! CloudWatch counts, and the splitter splits.

use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::{join, join_all};
use key_schema::instant::Instant;

use crate::watch::{Watch, partition};

const WRITERS: u64 = 50;
const ADDITIONS: u64 = 4;

/// Fifty writers add to a counter, and the table throttles its only shard. CloudWatch reports the
/// counter, the splitter doubles its shards, and half of the writes use the new shard. At any
/// moment the sum contains all acknowledged additions, and no addition that has not begun.
#[tokio::test]
async fn throttles_split_a_counter_and_its_sum_is_always_right() {
    let watch = Watch::begin().await;
    assert!(watch.add("views").await);
    assert_eq!(watch.round(Instant::now()).await.split, 0);
    assert_eq!(watch.count("views").await, (1, 1), "before");
    watch.heat(&partition("views", false), 0.6, Some(400));
    let (begun, answered) = (AtomicU64::new(1), AtomicU64::new(1));
    let writer = async |_| {
        for _ in 0..ADDITIONS {
            begun.fetch_add(1, Ordering::SeqCst);
            let mut attempts = 0;
            while !watch.add("views").await {
                attempts += 1;
                assert!(attempts < 50, "the addition never succeeds");
            }
            answered.fetch_add(1, Ordering::SeqCst);
        }
    };
    let reader = async {
        let mut seen_split = 0;
        while answered.load(Ordering::SeqCst) <= WRITERS * ADDITIONS {
            let before = answered.load(Ordering::SeqCst);
            let read = watch.try_count("views").await;
            let after = begun.load(Ordering::SeqCst);
            // The table may throttle the read, too. Then there is nothing to compare.
            if let Ok((value, shards)) = read {
                assert!(
                    (before..=after).contains(&value),
                    "the sum of {shards} shards is {value}, but must be from {before} to {after}"
                );
            }
            seen_split += watch.round(Instant::now()).await.split;
        }
        seen_split
    };
    let (_, splits) = join(join_all((0..WRITERS).map(writer)), reader).await;
    assert!(splits >= 1, "no round of the splitter split the counter");
    watch.test.faults().clear();
    let (value, shards) = watch.count("views").await;
    assert_eq!((value, shards), (1 + WRITERS * ADDITIONS, 1 << splits), "after");
}
