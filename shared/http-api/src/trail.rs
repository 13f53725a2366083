//! The audit trail of staff. The log line of each write by staff names the staff member and the
//! target. The line also has the time, the outcome and the request id. The written items contain
//! the same request id.
//!
//! Log lines of customers' requests and of reads contain no person's id. The trail contains the
//! parameters of the path, but no body. A path parameter `{name}` in a path with an `{id}` is left
//! out, because a person may have chosen the name (`/v1/customers/{id}/addresses/{name}`).

use serde_json::{Map, Value};

use crate::request::Request;
use crate::response::Reply;

/// The maximum number of logged characters of an id. No valid id is longer.
const LONGEST: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StaffWrite {
    /// The staff member: the token's subject.
    pub actor: String,
    /// The ids in the path, by the route's parameter names.
    pub target: Map<String, Value>,
}

impl StaffWrite {
    /// Returns the write, or `None` if the request is not a write by staff. Every request except
    /// GET counts as a write, even if it fails.
    pub(crate) fn of(request: &Request<'_>) -> Option<Self> {
        if request.route().starts_with("GET ") || !request.caller().is_staff() {
            return None;
        }
        let of_somebody = request.path.iter().any(|(name, _)| name == "id");
        let shown = request.path.iter().filter(|(name, _)| !(of_somebody && name == "name"));
        let target =
            shown.map(|(name, id)| (name.to_string(), Value::from(id.chars().take(LONGEST).collect::<String>())));
        Some(Self { actor: request.caller().key().to_owned(), target: target.collect() })
    }

    /// Returns the address of the record that the request created. The path of a POST does not
    /// contain the id of the record.
    pub(crate) fn created(reply: &Reply) -> Option<&str> {
        let location = reply.headers.get("location").filter(|_| reply.status.as_u16() == 201);
        location.map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use std::time::{Duration, SystemTime};

    use serde_json::{Value, json};

    use crate::sample::Call;
    use crate::{Problem, Response, Routes, observe};

    fn routes() -> Routes<()> {
        Routes::new()
            .on("PUT /v1/customers/{id}/addresses/{name}", |(), _| Box::pin(async { Ok(Response::no_content()) }))
            .on("POST /v1/counters/{name}/split", |(), _| Box::pin(async { Err(Problem::not_found("counter")) }))
            .on("POST /v1/products", |(), _| {
                Box::pin(async { Ok(Response::created("/v1/products/p1".to_owned(), &json!({}))) })
            })
            .on("GET /v1/customers/{id}", |(), _| Box::pin(async { Ok(Response::no_content()) }))
    }

    async fn line(call: Call) -> Value {
        let event = call.event().to_string();
        let served = routes().serve(&(), Some(&event), "lambda-1", Duration::from_secs(1)).await;
        let line = observe::line(&served, Duration::ZERO, &[], "lambda-1", None);
        serde_json::from_str(&line.to_json(SystemTime::UNIX_EPOCH)).unwrap()
    }

    fn trail(line: &Value) -> [Option<&Value>; 3] {
        ["actor", "target", "created"].map(|name| line.get(name))
    }

    #[tokio::test]
    async fn the_trail_of_a_write_by_staff_has_ids_of_actor_and_target_and_no_names() {
        let put = Call::new("PUT /v1/customers/{id}/addresses/{name}").path("id", "ann").path("name", "Aunt Zoë");
        let line = line(put.staff("sam").body("a street")).await;
        assert_eq!(trail(&line), [Some(&json!("sam")), Some(&json!({"id": "ann"})), None]);
        assert!(!line.to_string().contains("Zoë") && !line.to_string().contains("street"), "{line}");
        assert_eq!(line["request_id"], "sample-request");
    }

    #[tokio::test]
    async fn a_refused_write_is_in_the_trail_too_and_a_creation_adds_the_url_of_its_record() {
        let split = line(Call::new("POST /v1/counters/{name}/split").path("name", "views").staff("sam")).await;
        assert_eq!(trail(&split), [Some(&json!("sam")), Some(&json!({"name": "views"})), None]);
        assert_eq!(split["status"], 404);
        let created = line(Call::new("POST /v1/products").staff("sam")).await;
        assert_eq!(trail(&created), [Some(&json!("sam")), Some(&json!({})), Some(&json!("/v1/products/p1"))]);
    }

    #[tokio::test]
    async fn a_customers_write_and_a_read_by_staff_leave_no_trail() {
        let put = || Call::new("PUT /v1/customers/{id}/addresses/{name}").path("id", "ann").path("name", "home");
        for call in [put().customer("ann"), put(), Call::new("GET /v1/customers/{id}").path("id", "ann").staff("sam")] {
            let line = line(call).await;
            assert_eq!(trail(&line), [None; 3], "{line}");
        }
    }
}
