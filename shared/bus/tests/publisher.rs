//! Tests of the publisher on EventBridge's protocol.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::collections::BTreeSet;
use std::time::Duration;

use aws::{Api, Credentials, Service, SharedCredentialsProvider};
use bus::{Event, EventBus, Limits, MAX_REQUEST_BYTES, Outcome, ReviewPosted, SOURCE};
use emulators::events::EventBusServer;
use emulators::faults::{Fault, FaultKind};
use telemetry::correlation;

struct World {
    server: EventBusServer,
    bus: EventBus,
}

impl World {
    async fn open() -> Self {
        let server = EventBusServer::start(&["shop".to_owned()]).await.unwrap();
        let bus = EventBus::new(service(&server), "shop".to_owned());
        Self { server, bus }
    }

    fn limited(&self, bytes: usize, budget: Duration) -> EventBus {
        self.bus.clone().with_limits(Limits { bytes, budget })
    }

    fn fail(&self, kind: FaultKind, rate: f64, count: Option<u32>) {
        self.server.faults().add(Fault { kind, rate, count, seed: 7 }).unwrap();
    }

    /// Returns the accepted entries as events, in order.
    fn taken(&self) -> Vec<Event> {
        let taken = self.server.published(0, 10_000).items;
        taken.iter().map(|event| Event::from_detail(&event.detail).unwrap()).collect()
    }
}

/// Returns a service with one attempt per call, so that tests see the effect of a failure.
fn service(server: &EventBusServer) -> Service {
    let credentials = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
    let service = Service::of(Api::EventBridge, "us-east-1", Some(server.url()), credentials).unwrap();
    service.with_limits(aws::Limits::once(Duration::from_secs(3)))
}

fn event(number: usize, product: &str) -> Event {
    let data = ReviewPosted { product_id: product.parse().unwrap(), customer_id: "c1".parse().unwrap(), rating: 4 };
    let occurred_at = "2017-01-01T11:53:26.123Z".parse().unwrap();
    let correlation_id = Some(format!("request-{number}"));
    Event { id: format!("{number:032x}").parse().unwrap(), occurred_at, sequence: 2, correlation_id, data: data.into() }
}

fn events(count: usize) -> Vec<Event> {
    (1..=count).map(|number| event(number, "p1")).collect()
}

fn ids(events: &[Event]) -> BTreeSet<&str> {
    events.iter().map(|event| event.id.as_str()).collect()
}

#[tokio::test]
async fn an_event_arrives_unchanged_with_its_kind_as_detail_type() {
    let world = World::open().await;
    let sent = events(1);
    assert_eq!(world.bus.publish(&sent).await, [Outcome::Published]);
    let taken = world.server.published(0, 10).items;
    assert_eq!((taken[0].source.as_str(), taken[0].detail_type.as_str()), (SOURCE, "ReviewPosted"));
    assert_eq!((taken[0].bus.as_str(), taken[0].time.as_str()), ("shop", "2017-01-01T11:53:26Z"));
    assert_eq!(world.taken(), sent);
    assert_eq!(world.bus.publish(&[]).await, []);
}

#[tokio::test]
async fn an_event_carries_the_trace_header_of_its_publisher() {
    let world = World::open().await;
    let header = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
    world.bus.publish(&events(1)).await;
    correlation::traced(Some(header), world.bus.publish(&events(1))).await;
    let traces: Vec<_> = world.server.published(0, 10).items.into_iter().map(|event| event.trace_header).collect();
    assert_eq!(traces, [None, Some(header.to_owned())]);
}

#[tokio::test]
async fn events_that_do_not_fit_in_one_call_arrive_by_several_calls() {
    let world = World::open().await;
    let sent = events(95);
    assert_eq!(world.bus.publish(&sent).await, vec![Outcome::Published; 95]);
    assert_eq!(ids(&world.taken()), ids(&sent));
}

#[tokio::test]
async fn entries_that_fail_are_sent_again_and_the_others_are_not() {
    let world = World::open().await;
    world.fail(FaultKind::Partial, 1.0, Some(3));
    let sent = events(10);
    assert_eq!(world.bus.publish(&sent).await, vec![Outcome::Published; 10]);
    let taken = world.taken();
    assert_eq!((taken.len(), ids(&taken)), (10, ids(&sent)));
    assert_eq!(world.server.faults().counts()[0].fired, 3);
}

#[tokio::test]
async fn entries_that_keep_failing_are_given_up_and_each_event_has_its_own_outcome() {
    let world = World::open().await;
    world.fail(FaultKind::Partial, 1.0, None);
    let sent = events(10);
    let outcomes = world.limited(MAX_REQUEST_BYTES, Duration::ZERO).publish(&sent).await;
    let taken = world.taken();
    for (event, outcome) in sent.iter().zip(&outcomes) {
        match outcome {
            Outcome::Published => assert!(taken.contains(event)),
            Outcome::Retryable { reason } => assert!(!taken.contains(event) && reason == "ThrottlingException"),
            Outcome::Refused { reason } => panic!("{reason}"),
        }
    }
    assert!((1..10).contains(&taken.len()), "{taken:?}");
}

#[tokio::test]
async fn all_events_of_a_call_that_fails_as_a_whole_are_retryable() {
    for (kind, expected) in [
        (FaultKind::Throttle, "ThrottlingException"),
        (FaultKind::Error, "InternalException"),
        (FaultKind::Reset, "the connection or the response broke off"),
    ] {
        let world = World::open().await;
        world.fail(kind, 1.0, Some(1));
        let outcomes = world.bus.publish(&events(25)).await;
        let failed = Outcome::Retryable { reason: expected.to_owned() };
        let count = |wanted: &Outcome| outcomes.iter().filter(|outcome| *outcome == wanted).count();
        let (lost, published) = (count(&failed), count(&Outcome::Published));
        assert!(lost == 10 || lost == 5, "exactly one of the three calls fails: {outcomes:?}");
        assert_eq!((lost + published, world.taken().len()), (25, published));
    }
}

#[tokio::test]
async fn an_event_that_is_too_large_is_refused_before_the_call_and_the_others_are_sent() {
    let world = World::open().await;
    let sent = [event(1, "p"), event(2, &"p".repeat(100)), event(3, "p")];
    let bytes = |event: &Event| 14 + SOURCE.len() + "ReviewPosted".len() + event.to_detail().unwrap().len();
    // An entry that is exactly as large as the limit is refused.
    for (limit, refused) in [(bytes(&sent[1]) + 1, 0), (bytes(&sent[1]), 1), (bytes(&sent[0]), 3)] {
        let outcomes = world.limited(limit, Duration::ZERO).publish(&sent).await;
        let refusals = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::Refused { .. })).count();
        assert_eq!(refusals, refused, "{limit}: {outcomes:?}");
    }
    assert_eq!(world.taken().len(), 5);
}

#[tokio::test]
async fn a_missing_bus_is_a_fault_of_the_deployment_and_not_of_the_event() {
    let world = World::open().await;
    let other = EventBus::new(service(&world.server), "nowhere".to_owned());
    let other = other.with_limits(Limits { bytes: MAX_REQUEST_BYTES, budget: Duration::ZERO });
    let reason = "ResourceNotFoundException".to_owned();
    assert_eq!(other.publish(&events(1)).await, [Outcome::Retryable { reason }]);
}
