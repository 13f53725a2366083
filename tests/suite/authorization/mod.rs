//! Tests every route with every kind of caller against the rules in `template.yaml` and
//! `openapi.yaml`. An allowed request must succeed, and a refused request must write nothing.

mod access;
mod page;
mod people;
mod tokens;

use futures::StreamExt as _;
use local::System;

use self::access::{Access, Bearer, Outcome, Person};
use self::people::TestData;
use self::tokens::{Forger, Token};
use crate::support::client::Call;
use crate::support::openapi::{Operation, api};
use crate::support::trial::{self, Trial, run_all};
use crate::support::{drain, table, with_own_system};

/// A route whose tokens API Gateway checks gets every eighth token, and the next route the tokens after
/// these. Every route also gets the token without a user id, because only its function refuses this
/// token. The functions check the tokens of public routes themselves, so these routes get all.
const TOKEN_STRIDE: usize = 8;

/// Returns whether the tests send this operation with a token that allows it. They send no write
/// with a token that identifies staff, and none that succeeds only once.
fn is_tried(operation: Operation<'_>, token: &Token) -> bool {
    operation.method == "GET" || !(happens_once(operation) || matches!(token.bearer, Bearer::Person(Person::Staff)))
}

/// Returns whether the operation succeeds only for the first caller. All callers have the same guest's
/// cart, and the same order, which takes no money after its cancellation.
fn happens_once(operation: Operation<'_>) -> bool {
    matches!(operation.own["operationId"].as_str(), Some("checkoutGuestCart" | "moveGuestOrder" | "payGuestOrder"))
}

/// Returns the trial of a request that must be refused. Returns `None` if the request must succeed.
fn refusal(call: Call, what: String, outcome: Outcome) -> Option<Trial> {
    match outcome {
        Outcome::Done => None,
        Outcome::Gateway => Some(Trial::gateway(call, what, 401)),
        Outcome::Refused(status, code) => Some(Trial::new(call, what, status, code)),
    }
}

#[test]
fn every_route_refuses_forbidden_callers_and_then_writes_no_item() {
    with_own_system(async |system| {
        let data = TestData::create(system).await;
        drain(system).await;
        let before = table::scan(system).await;
        let (access, tokens) = (Access::read(), Forger::with_the_key().all());
        let (mut trials, mut taken, mut nobodys_me) = (Vec::new(), Vec::new(), 0);
        for (place, operation) in api().operations().enumerate() {
            for person in Person::ALL {
                let call = data.request(system, operation, person).await;
                let trial = refusal(call, person.name().to_owned(), access.of(operation, person));
                trials.extend(trial.map(|trial| (operation, trial)));
            }
            let mut good = data.of_customer(system, operation).await;
            if access.is_public(operation) {
                // On this route every token counts as the same anonymous caller, so concurrent
                // requests would conflict over one key.
                good.headers.retain(|(name, _)| name != "idempotency-key");
            }
            let stride = if access.is_public(operation) { 1 } else { TOKEN_STRIDE };
            let is_due = |at: usize, token: &Token| at % stride == place % stride || token.bearer == Bearer::Nameless;
            let due = tokens.iter().enumerate().filter(|(at, token)| is_due(*at, token));
            // Without a customer's id the caller has no `me`. A public route does not know the caller.
            if let Some(good) = data.with_me(system, operation).await.filter(|_| !access.is_public(operation)) {
                nobodys_me += 1;
                let without_id = tokens.iter().filter(|token| matches!(token.bearer, Bearer::Nameless | Bearer::NoId));
                for token in without_id.take(2) {
                    let (status, code) = match token.bearer {
                        Bearer::Nameless => (401, "unauthenticated"),
                        _ => (403, "forbidden"),
                    };
                    let call = good.anonymous().header("authorization", &token.header);
                    trials.push((operation, Trial::new(call, format!("`me`, {}", token.what), status, code)));
                }
            }
            for (_, token) in due {
                let call = good.anonymous().header("authorization", &token.header);
                match refusal(call.clone(), token.what.to_owned(), access.of_bearer(operation, token.bearer)) {
                    Some(trial) => trials.push((operation, trial)),
                    None if is_tried(operation, token) => taken.push((operation, call, token.what)),
                    None => {}
                }
            }
        }
        // The loop above must have made trials.
        assert!(trials.len() > 1_500 && taken.len() > 100, "{} refused, {} taken", trials.len(), taken.len());
        assert!(nobodys_me > 40, "{nobodys_me}");
        run_all(system, trials).await;

        drain(system).await;
        let after = table::scan(system).await;
        let changed: Vec<_> =
            after.iter().filter(|(key, item)| before.get(key) != Some(item)).map(|(key, _)| key).collect();
        assert!(changed.is_empty() && before.len() == after.len(), "written: {changed:?}");

        let taken = taken.into_iter().map(|(operation, call, what)| async move {
            let complaint = trial::unless_done(operation, &call.send(system).await)?;
            Some(format!("{}, {what}: {complaint}", operation.key()))
        });
        let complaints = futures::stream::iter(taken).buffer_unordered(trial::CONCURRENCY);
        let complaints: Vec<String> = complaints.filter_map(std::future::ready).collect().await;
        assert_eq!(complaints, Vec::<String>::new());

        // The allowed requests of these persons remove no data, so they can share a system.
        for person in [Person::Anonymous, Person::Unregistered, Person::Stranger, Person::Reader] {
            send_allowed_requests(system, &data, person).await;
        }
    });
}

#[test]
fn every_request_that_an_admin_may_send_succeeds() {
    allowed_requests_succeed(Person::Editor);
}

/// Requests with ids succeed in other tests.
#[test]
fn every_request_that_an_owner_may_send_succeeds_with_me_as_the_id() {
    allowed_requests_succeed(Person::Owner);
}

#[test]
fn every_request_of_staff_succeeds_also_with_me_as_the_id() {
    assert!(api().operations().all(|operation| Access::read().of(operation, Person::Staff) == Outcome::Done));
    allowed_requests_succeed(Person::Staff);
}

/// Runs a person's allowed requests in a separate system, because these requests change and remove
/// data.
fn allowed_requests_succeed(person: Person) {
    with_own_system(async |system| {
        let data = TestData::create(system).await;
        drain(system).await;
        send_allowed_requests(system, &data, person).await;
    });
}

async fn send_allowed_requests(system: &System, data: &TestData, person: Person) {
    let access = Access::read();
    let mut done = 0;
    for operation in api().in_working_order() {
        let shares_guest = matches!(person, Person::Unregistered | Person::Stranger | Person::Reader);
        if access.of(operation, person) == Outcome::Done && !(shares_guest && happens_once(operation)) {
            let answer = data.request(system, operation, person).await.send(system).await;
            assert_eq!(trial::unless_done(operation, &answer), None, "{}, {}", operation.key(), person.name());
            done += 1;
        }
    }
    assert!(done >= 14, "{} sent only {done} requests", person.name());
}
