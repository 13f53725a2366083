//! Tests of crashes. Only a crash between SES's acceptance and the record repeats a message.

use std::time::Duration;

use emulators::table::{Fault, FaultKind};
use fixture::crash_after;
use notifier::notifier::{ANSWER, LEASE, MARGIN, NotifyError, Outcome};
use tokio::time::Instant as Clock;

use crate::support::{Act, NOW, Shop, at, at_once, crash_when_called, patient};

fn after_the_lease() -> key_schema::instant::Instant {
    at(NOW).plus_millis(i64::try_from(LEASE.as_millis()).unwrap()).plus_seconds(2)
}

#[tokio::test]
async fn a_crash_before_the_message_is_accepted_loses_no_message() {
    let shop = Shop::open().await;
    let event = shop.placed(1);
    shop.post.next(Act::LoseIt);
    assert!(crash_when_called(&shop.post, 1, shop.notifier.take(&event, at(NOW), at_once())).await.is_none());
    assert_eq!(shop.post.sent().len(), 0);
    // The lease has not expired, so the next attempt cannot know of the crash.
    let early = shop.notifier.take(&event, at(NOW).plus_seconds(1), at_once()).await;
    assert!(matches!(early, Err(NotifyError::Claimed)), "{early:?}");
    assert_eq!(shop.notifier.take(&event, after_the_lease(), at_once()).await.unwrap(), Outcome::Sent);
    assert_eq!(shop.notifier.take(&event, after_the_lease(), at_once()).await.unwrap(), Outcome::Known);
    assert_eq!(shop.post.sent().len(), 1);
}

#[tokio::test]
async fn with_enough_time_an_attempt_waits_for_the_lease_of_a_crashed_attempt() {
    let shop = Shop::open().await;
    let event = shop.placed(1);
    shop.post.next(Act::LoseIt);
    assert!(crash_when_called(&shop.post, 1, shop.notifier.take(&event, at(NOW), at_once())).await.is_none());
    let nearly_over = at(NOW).plus_millis(i64::try_from(LEASE.as_millis()).unwrap() - 100);
    assert_eq!(shop.notifier.take(&event, nearly_over, patient()).await.unwrap(), Outcome::Sent);
    assert_eq!(shop.post.sent().len(), 1);
}

/// The mail service accepts the message, and the attempt crashes before it records that. The
/// crate's page documents this case of a second mail.
#[tokio::test]
async fn a_crash_between_acceptance_and_record_repeats_the_message_once() {
    let shop = Shop::open().await;
    let event = shop.placed(1);
    shop.post.next(Act::LoseTheAnswer);
    assert!(crash_when_called(&shop.post, 1, shop.notifier.take(&event, at(NOW), at_once())).await.is_none());
    assert_eq!(shop.post.sent().len(), 1);
    assert_eq!(shop.notifier.take(&event, after_the_lease(), at_once()).await.unwrap(), Outcome::Sent);
    assert_eq!(shop.notifier.take(&event, after_the_lease(), at_once()).await.unwrap(), Outcome::Known);
    assert_eq!(shop.post.sent().len(), 2);
}

/// Lambda ends a function at its deadline, counts that as a failure and invokes the function again.
/// The second invocation would send the message again.
#[tokio::test]
async fn if_the_table_does_not_respond_the_record_is_given_up_before_the_timeout() {
    let shop = Shop::open().await;
    let faults = shop.table.faults().clone();
    shop.post.next(Act::AcceptAfter(Box::new(move || {
        faults.add(Fault { kind: FaultKind::Timeout, rate: 1.0, count: None, seed: 0 }).unwrap();
        // From now on the attempt waits only for the table, so the paused clock skips this wait.
        tokio::time::pause();
    })));
    let deadline = Clock::now() + Duration::from_secs(30);
    assert_eq!(shop.notifier.take(&shop.placed(1), at(NOW), deadline).await.unwrap(), Outcome::Sent);
    let left = deadline.duration_since(Clock::now());
    assert!(
        (ANSWER - Duration::from_millis(10)..Duration::from_secs(10)).contains(&left),
        "{left:?} remain for the response"
    );
    tokio::time::resume();
    shop.table.faults().clear();
    assert_eq!(shop.post.sent().len(), 1);
}

#[tokio::test]
async fn no_message_is_sent_without_the_time_to_record_it() {
    let shop = Shop::open().await;
    let event = shop.placed(1);
    let late = shop.notifier.take(&event, at(NOW), Clock::now() + MARGIN).await;
    assert!(matches!(late, Err(NotifyError::Mail(_))), "{late:?}");
    assert_eq!(shop.post.calls(), 0);
    // The claim was released, so the next attempt need not wait.
    assert_eq!(shop.notifier.take(&event, at(NOW), at_once()).await.unwrap(), Outcome::Sent);
}

/// Drops the attempt at every point where it waits. A crash sends at most one more mail, and only
/// if the mail service has already accepted the message.
#[tokio::test]
async fn a_crash_at_any_point_loses_no_message_and_repeats_only_accepted_messages() {
    let shop = Shop::open().await;
    let (mut repeated, mut crashes) = (0, 0);
    for polls in 0..500 {
        let event = shop.placed(u32::try_from(polls).unwrap());
        let before = shop.post.sent().len();
        let ended = crash_after(polls, shop.notifier.take(&event, at(NOW), at_once())).await;
        let accepted = shop.post.sent().len() - before;
        if ended.is_none() {
            crashes += 1;
        }
        let last = shop.notifier.take(&event, after_the_lease(), at_once()).await.unwrap();
        let sent = shop.post.sent().len() - before;
        match (ended, accepted) {
            (None, 0) => assert_eq!((sent, last), (1, Outcome::Sent), "after {polls} waits"),
            (None, _) => {
                assert!(sent <= 2, "after {polls} waits");
                repeated += usize::from(sent == 2);
            }
            (Some(outcome), _) => {
                assert_eq!((outcome.unwrap(), sent, last), (Outcome::Sent, 1, Outcome::Known));
                println!("{crashes} crashes, {repeated} of them repeated the message");
                assert!(crashes > 5 && repeated > 0, "no crash hit the time between sending and recording");
                return;
            }
        }
    }
    panic!("the message is never settled");
}
