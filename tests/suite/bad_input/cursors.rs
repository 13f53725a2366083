//! Tests altered cursors, and cursors of another list, other parameters or another caller.

use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::picking::WaitingJob;
use local::System;

use super::{Trial, run_all};
use crate::support::client::Call;
use crate::support::openapi::{Operation, api};
use crate::support::shop::segment;
use crate::support::world::{Good, World};
use crate::support::{drain, put_item, with_own_system};

struct List {
    operation: Operation<'static>,
    good: Good,
    cursor: String,
}

impl List {
    async fn read(system: &System, operation: Operation<'static>, mut good: Good) -> Self {
        good.query.push(("limit".to_owned(), "1".to_owned()));
        let page = good.call().send(system).await.expect(200);
        let cursor = page.body["next_cursor"].as_str();
        let cursor = cursor.unwrap_or_else(|| panic!("{}: the list has only one page: {}", operation.key(), page.body));
        Self { operation, good, cursor: cursor.to_owned() }
    }

    /// Returns the request for the page after a cursor, with changed parameters.
    fn with(&self, cursor: &str, change: impl FnOnce(&mut Good)) -> Good {
        let mut good = self.good.clone();
        change(&mut good);
        good.query.push(("cursor".to_owned(), cursor.to_owned()));
        good
    }

    fn refusal(&self, call: Call, fault: String) -> (Operation<'static>, Trial) {
        (self.operation, Trial::new(call, fault, 400, "cursor_invalid"))
    }
}

async fn lists(system: &System) -> Vec<List> {
    let world = World::create(system).await;
    drain(system).await;
    // These orders stay in the list of waiting orders, because the function `Fulfilment` assigns a
    // station only when it receives a message.
    for order in ["waiting-1", "waiting-2"] {
        let born = order.parse().unwrap();
        let job = Stored::new(WaitingJob { order_id: order.parse().unwrap() }, born, Instant::now());
        put_item(system, &serde_json::to_value(job.to_item().unwrap()).unwrap()).await;
    }
    let mut lists = Vec::new();
    for operation in api().operations() {
        // The list of a document's sections has pages but no `limit`. Here all sections fit on the
        // first page. A leaderboard has a `limit` but no pages.
        let has = |name: &str| operation.parameters().any(|parameter| parameter["name"] == name);
        if has("limit") && has("cursor") {
            let good = world.good(system, operation).await;
            lists.push(List::read(system, operation, good).await);
        }
    }
    lists
}

#[test]
fn a_cursor_is_valid_only_for_its_list_its_parameters_and_its_caller() {
    with_own_system(async |system| {
        let lists = lists(system).await;
        assert!(lists.len() >= 12, "{}", lists.len());
        let mut trials = Vec::new();
        for list in &lists {
            let cursor = &list.cursor;
            for other in lists.iter().filter(|other| other.operation.key() != list.operation.key()) {
                let call = list.with(&other.cursor, |_| {}).call();
                trials.push(list.refusal(call, format!("the cursor of {}", other.operation.key())));
            }
            let mut others: Vec<Good> = Vec::new();
            for (position, (name, value)) in list.good.parameters.iter().enumerate() {
                // Replace the id of a record with the id of another record, if the test data has a
                // second record of that kind.
                let other = match (name.as_str(), value.as_str()) {
                    (_, "bad-ann") => "bad-bob",
                    (_, "bad-1") => "bad-2",
                    (_, "bad-org") => "bad-org-2",
                    (_, "bad-doc") => "bad-doc-draft",
                    (_, "bad") => "bad~x",
                    _ => continue,
                };
                others.push(list.with(cursor, |good| other.clone_into(&mut good.parameters[position].1)));
            }
            let set = |name: &str, value: &str| {
                list.with(cursor, |good| {
                    good.query.retain(|(given, _)| given != name);
                    good.query.push((name.to_owned(), value.to_owned()));
                })
            };
            for parameter in list.operation.parameters().filter(|parameter| parameter["in"] == "query") {
                match parameter["name"].as_str().unwrap() {
                    // A request has the number of an order in place of a status.
                    "limit" | "cursor" | "email" | "number" => {}
                    name @ ("from" | "since") => others.push(set(name, "2001-01-01T00:00:00Z")),
                    name @ "to" => others.push(set(name, "2100-01-01T00:00:00Z")),
                    name @ "day" => others.push(set(name, "2016-12-31")),
                    name @ "month" => others.push(set(name, "2016-12")),
                    name @ "path" => others.push(set(name, "unknown")),
                    name @ "tier" => others.push(set(name, "gold")),
                    name @ "kind" => others.push(set(name, "likes")),
                    // `status` has only one permitted value here.
                    "status" if list.operation.path == "/v1/questions" => {}
                    name @ "status" => others.push(set(name, "shipped")),
                    // The reviews of one product are another list than all reviews.
                    name @ "product" => others.push(set(name, "bad-2")),
                    // All reviews have one order.
                    "sort" if list.operation.path == "/v1/reviews" => {}
                    name @ "sort" => {
                        others.push(set(name, if list.operation.path.contains("search") { "price" } else { "best" }))
                    }
                    name @ ("q" | "brand" | "category") => others.push(set(name, "bad")),
                    name @ "in_stock" => others.push(set(name, "true")),
                    name @ ("min_price" | "max_price") => others.push(set(name, "5")),
                    other => panic!("{}: this test needs another value of {other}", list.operation.key()),
                }
            }
            trials.extend(others.iter().map(|other| list.refusal(other.call(), other.url())));

            if list.operation.is_secured() {
                let bare = list.with(cursor, |_| {}).bare();
                let token = system.token("another", &["staff".to_owned()]);
                let colleague = bare.clone().header("authorization", &format!("Bearer {token}"));
                trials.push(list.refusal(colleague, "another member of staff".to_owned()));
                if ["owner", "reader"].contains(&list.operation.who()) {
                    trials.push(list.refusal(bare.customer("bad-ann"), "the owner".to_owned()));
                }
            }
        }
        run_all(system, trials).await;
        for list in &lists {
            // The cursor is still valid, even with another page size.
            for limit in ["1", "100"] {
                let mut good = list.with(&list.cursor, |_| {});
                good.query.retain(|(name, _)| name != "limit");
                good.query.push(("limit".to_owned(), limit.to_owned()));
                let page = good.call().send(system).await.expect(200);
                assert!(!page.body["items"].as_array().unwrap().is_empty(), "{}", list.operation.key());
            }
        }
    });
}

#[test]
fn an_altered_or_shortened_cursor_is_refused() {
    with_own_system(async |system| {
        let mut trials = Vec::new();
        for list in lists(system).await {
            let cursor = &list.cursor;
            assert!(cursor.is_ascii() && cursor.len() <= 1024, "{cursor}");
            let mut altered = Vec::new();
            for at in (0..cursor.len()).step_by(7).chain([cursor.len() - 1]) {
                let mut bytes = cursor.clone().into_bytes();
                bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
                altered.push(String::from_utf8(bytes).unwrap());
            }
            altered.extend([1, 2, cursor.len() / 2].map(|cut| cursor[..cursor.len() - cut].to_owned()));
            altered.extend([cursor[1..].to_owned(), format!("{cursor}A"), format!("{cursor}="), cursor.repeat(2)]);
            altered.push(cursor.to_ascii_lowercase());
            altered.push(format!(" {cursor}"));
            for altered in altered.into_iter().filter(|altered| altered != cursor) {
                let call = list.with(&segment(&altered), |_| {}).call();
                trials.push(list.refusal(call, altered));
            }
        }
        run_all(system, trials).await;
    });
}
