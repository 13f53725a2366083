//! Tests with a CloudWatch that fails, and with a table that fails.

use std::time::Duration;

use aws::CloudWatchError;
use emulators::faults::{Fault, FaultKind};
use fixture::TestTable;
use splitter::report::Report;
use splitter::round::{Round, RoundError};
use tokio::time;

use crate::watch::{Watch, minute, partition};

/// Creates a hot counter, and a CloudWatch that fails `count` times.
async fn failing(kind: FaultKind, count: Option<u32>) -> Watch {
    let watch = Watch::begin().await;
    watch.throttle(&partition("views", false), minute(0), 50);
    watch.insights.faults().add(Fault { kind, rate: 1.0, count, seed: 0 }).unwrap();
    watch
}

#[tokio::test]
async fn a_report_is_requested_again_while_cloudwatch_is_busy_or_broken() {
    for kind in [FaultKind::Throttle, FaultKind::Error, FaultKind::Reset, FaultKind::Slow] {
        let watch = failing(kind, Some(3)).await;
        assert_eq!(watch.round(minute(1)).await.split, 1, "{kind:?}");
        let fired = watch.insights.faults().counts()[0].fired;
        assert_eq!(fired, if kind == FaultKind::Slow { 1 } else { 3 }, "{kind:?}");
    }
}

#[tokio::test]
async fn without_a_report_a_round_fails_in_time_and_the_next_round_does_its_work() {
    let watch = failing(FaultKind::Throttle, None).await;
    let began = time::Instant::now();
    let error = watch.round_at(minute(1)).await.unwrap_err();
    assert!(matches!(error, RoundError::Report(CloudWatchError::Unavailable(_))), "{error}");
    assert!(error.to_string().contains("ThrottlingException"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let attempts = watch.insights.faults().counts()[0].fired;
    assert!((3..=30).contains(&attempts), "{attempts}");
    assert_eq!(watch.shards("views").await, 1, "no item was touched");
    watch.insights.faults().clear();
    assert_eq!(watch.round(minute(2)).await.split, 1);
}

#[tokio::test]
async fn a_response_that_never_comes_takes_only_the_remaining_time() {
    let watch = failing(FaultKind::Timeout, None).await;
    let (began, second) = (time::Instant::now(), Duration::from_secs(1));
    let error = watch.splitter.run_round(minute(1), began + second).await.unwrap_err();
    assert!(matches!(error, RoundError::Time), "{error}");
    assert!(began.elapsed() < 2 * second);
}

/// A table without Contributor Insights has no rule.
#[tokio::test]
async fn a_table_without_a_rule_is_reported_as_an_error() {
    let watch = Watch::begin().await;
    let other = TestTable::create().await;
    let uncounted = splitter::round::Splitter::new(other.table(), crate::watch::cloudwatch(watch.insights.url()));
    let error = uncounted.run_round(minute(1), time::Instant::now() + Duration::from_secs(30)).await.unwrap_err();
    assert!(matches!(error, RoundError::Table(_) | RoundError::NoRule), "{error}");
}

#[tokio::test]
async fn a_request_for_a_missing_rule_fails_and_is_not_repeated() {
    let watch = Watch::begin().await;
    let cloudwatch = crate::watch::cloudwatch(watch.insights.url());
    let began = time::Instant::now();
    for rule in ["DynamoDBContributorInsights-PKT-other-1", "x"] {
        let error = Report::fetch(&cloudwatch, rule, (0, 60)).await.unwrap_err();
        assert!(matches!(error, CloudWatchError::Refused(_)), "{error}");
        assert!(error.to_string().contains("ResourceNotFoundException"), "{error}");
    }
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn a_split_that_fails_is_counted_and_repeated_in_the_next_minute() {
    let watch = Watch::begin().await;
    for counter in ["views", "sales"] {
        watch.throttle(&partition(counter, false), minute(0), 50);
    }
    // The table throttles every request for the head of one counter.
    watch.heat(&partition("views", true), 1.0, None);
    let round = watch.round(minute(1)).await;
    assert_eq!(round, Round { throttled: 2, hot: 2, split: 1, failed: 1, ..Round::default() });
    watch.test.faults().clear();
    let round = watch.round(minute(2)).await;
    assert_eq!(round, Round { throttled: 2, hot: 2, split: 1, ..Round::default() });
    assert_eq!((watch.shards("views").await, watch.shards("sales").await), (2, 2));
}
