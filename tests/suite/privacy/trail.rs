//! Tests the audit trail. The log line of a staff write has the actor, the action and the time. The
//! log line of a customer's request has no personal data.

use std::time::Duration;

use local::System;
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep};

use crate::support::client::{Answer, Call};
use crate::support::openapi::{Operation, api};
use crate::support::with_own_system;
use crate::support::world::World;

/// The line may arrive after the function's response, because the local system reads it from a
/// pipe.
const SOON: Duration = Duration::from_secs(20);
/// A customer without rights to any record.
const STRANGER: &str = "trail-stranger";

/// Returns every operation with which staff can write: the operations with a token, except reads.
pub fn written_by_staff() -> impl Iterator<Item = Operation<'static>> {
    api().operations().filter(|operation| operation.method != "GET" && operation.is_secured())
}

async fn line(system: &System, answer: &Answer) -> Json {
    let id = &answer.headers["x-request-id"];
    let until = Instant::now() + SOON;
    loop {
        let lines = system.functions().lines(None, id, 10);
        let lines = lines.iter().filter_map(|line| serde_json::from_str::<Json>(&line.text).ok());
        if let Some(line) = lines.into_iter().find(|line| line["request_id"] == id.as_str() && line["status"].is_u64())
        {
            return line;
        }
        assert!(Instant::now() < until, "request {id} has no log line");
        sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn only_the_log_lines_of_writes_by_staff_name_the_actor_and_the_target() {
    with_own_system(async |system| {
        let world = World::create(system).await;
        let (mut acts, mut created, mut others) = (0, 0, 0);
        for operation in api().in_working_order() {
            if operation.method == "GET" || !operation.is_secured() {
                continue;
            }
            let good = world.good(system, operation).await;
            // The function refuses this request. Its log line must not name the customer.
            let refused = good.anonymous().customer(STRANGER).send(system).await;
            let own = line(system, &refused).await;
            assert!(own.get("actor").is_none() && own.get("target").is_none(), "{own}");
            assert!(!own.to_string().contains(STRANGER), "{own}");
            others += 1;

            let answer = good.call().send(system).await;
            let line = line(system, &answer).await;
            assert_eq!(line["actor"], "staff", "{}: {line}", operation.key());
            assert_eq!(line["route"], operation.key().as_str());
            assert_eq!(line["status"], answer.status);
            assert!(line["_aws"]["Timestamp"].is_u64(), "{line}");
            for (name, value) in &good.parameters {
                // The log line hides the parameter `name`, unless it is the route's only parameter.
                let is_shown = name != "name" || good.parameters.len() == 1;
                let shown = if is_shown { json!(value) } else { Json::Null };
                assert_eq!(line["target"][name], shown, "{}: {line}", operation.key());
            }
            assert_eq!(line["target"].as_object().map(|target| target.is_empty()), Some(good.parameters.is_empty()));
            if answer.status == 201 {
                assert_eq!(
                    line.get("created"),
                    answer.headers.get("location").map(|location| json!(location)).as_ref()
                );
                created += 1;
            }
            acts += usize::from(answer.is_success());
            if let Some(body) = &good.body {
                let said = body.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
                for text in said.filter(|text| text.len() > 8 && !text.starts_with("bad-")) {
                    assert!(!line.to_string().contains(text), "{line} contains {text}");
                }
            }
        }
        let all = written_by_staff().count();
        assert_eq!(others, all);
        assert!(acts + 3 >= all && created > 5, "{acts} of {all} done, {created} created");
        // Reads by staff are not in the audit trail.
        let read = Call::new("GET", "/v1/customers?tier=bronze").staff().send(system).await.expect(200);
        assert!(line(system, &read).await.get("actor").is_none());
    });
}
