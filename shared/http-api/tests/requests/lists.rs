//! Tests of pages, cursors and query parameters.

use http_api::Keys;
use http_api::sample::Call;
use serde_json::{Value, json};

use super::{App, app, is, routes, send};

#[tokio::test]
async fn the_link_to_the_next_page_has_all_parameters_of_the_page() {
    let list = || {
        Call::new("GET /v1/customers/{id}/things")
            .path("id", "c#1")
            .customer("c#1")
            .query("from", "2017-01-01T00:00:00+01:00")
    };
    let first = send(list().query("limit", "2").query("note", "ä&b")).await;
    assert_eq!((first.status, &first.body["items"], first.body["limit"].as_u64()), (200, &json!(["start"]), Some(2)));
    let cursor = first.body["next_cursor"].as_str().unwrap();
    assert_eq!(
        first.header("link").unwrap(),
        format!(
            "</v1/customers/c%231/things?cursor={cursor}&from=2017-01-01T00%3A00%3A00%2B01%3A00&limit=2\
             &note=%C3%A4%26b>; rel=\"next\""
        )
    );
    let second = send(list().query("cursor", cursor)).await;
    assert_eq!((&second.body["items"], second.body["limit"].as_u64()), (&json!(["THING#9"]), Some(20)));
    assert_eq!(second.header("link").unwrap().matches("cursor=").count(), 1);
}

#[tokio::test]
async fn a_long_link_to_the_next_page_is_left_out() {
    // Each `!` is three bytes in the link.
    let list =
        |length| Call::new("GET /v1/customers/{id}/things").path("id", "c1").customer("c1").query("note", length);
    let [short, long] = [send(list(&"!".repeat(1200))).await, send(list(&"!".repeat(1366))).await];
    let link = short.header("link").unwrap();
    assert!(link.len() <= 4096 && link.contains(&"%21".repeat(1200)), "{link}");
    assert!(long.header("link").is_none() && long.body["next_cursor"].is_string());
}

#[tokio::test]
async fn only_a_page_with_a_cursor_needs_the_keys() {
    let app = App { cursors: Keys::new(|| async { Err("the secret cannot be read".into()) }) };
    let list = |note| Call::new("GET /v1/customers/{id}/things").path("id", "c1").customer("c1").query("note", note);
    let whole = list("last").send(&routes(), &app).await;
    assert_eq!((whole.status, &whole.body["next_cursor"]), (200, &Value::Null), "{}", whole.body);
    is(&list("").send(&routes(), &app).await, 503, "unavailable");
    is(&list("last").query("cursor", "x").send(&routes(), &app).await, 503, "unavailable");
}

#[tokio::test]
async fn a_cursor_is_valid_only_for_the_list_and_the_caller_of_its_page() {
    let list = |id: &str| Call::new("GET /v1/customers/{id}/things").path("id", id);
    let first = send(list("c1").customer("c1")).await;
    let cursor = first.body["next_cursor"].as_str().unwrap();
    assert_eq!(send(list("c1").customer("c1").query("cursor", cursor)).await.status, 200);
    for foreign in [
        list("c1").staff("s1").query("cursor", cursor),
        list("c1").customer("c1").query("cursor", cursor).query("from", "2017-01-01T00:00:00Z"),
        list("c1").customer("c1").query("cursor", &format!("{cursor}A")),
        list("c1").customer("c1").query("cursor", ""),
        list("c1").customer("c1").query("cursor", &"A".repeat(5000)),
    ] {
        is(&send(foreign).await, 400, "cursor_invalid");
    }
}

/// If `?form=`, a misspelt `?from=`, were ignored, the client would mistake the full list for a
/// filtered list.
#[tokio::test]
async fn an_unknown_query_parameter_is_refused_before_any_effect() {
    let list = || Call::new("GET /v1/customers/{id}/things").path("id", "c1").customer("c1");
    let thing = || Call::new("GET /v1/things/{id}").path("id", "t1");
    for unknown in ["form", "From", "from ", "limit[]", "", "ä"] {
        is(&send(list().query(unknown, "2017-01-01T00:00:00Z")).await, 400, "invalid_parameter");
        is(&send(list().query("limit", "1").query(unknown, "")).await, 400, "invalid_parameter");
        is(&send(thing().query(unknown, "1")).await, 400, "invalid_parameter");
    }
    is(&send(thing().query("limit", "1")).await, 400, "invalid_parameter");
    let long = send(thing().query(&"x".repeat(5000), "1")).await;
    assert!(long.body["detail"].as_str().unwrap().len() < 200);
    // A write with an unknown parameter is refused before the handler checks the caller or the
    // body.
    let write = || Call::new("PUT /v1/things/{id}").path("id", "t1");
    is(&send(write()).await, 401, "unauthenticated");
    is(&send(write().query("dry_run", "true")).await, 400, "invalid_parameter");
    // For a read, the handler's own problem comes first. So a caller without permission does not
    // learn which parameters the route has.
    is(&send(Call::new("GET /v1/staff").customer("c1").query("x", "1")).await, 403, "forbidden");
    let mut event = thing().event();
    for (query, status) in [("%ff", 400), ("&&", 200), ("", 200), ("x", 400)] {
        event["rawQueryString"] = query.into();
        let answer = routes().answer(&app(), serde_json::from_value(event.clone()).unwrap()).await;
        assert_eq!(answer.status_code, status, "{query}");
    }
}

#[tokio::test]
async fn invalid_query_parameters_are_refused() {
    let list = || Call::new("GET /v1/customers/{id}/things").path("id", "c1").customer("c1");
    for limit in ["0", "-1", "101", "99999999999999999999", "", "1.5", "ten"] {
        is(&send(list().query("limit", limit)).await, 400, "invalid_parameter");
    }
    is(&send(list().query("from", "yesterday")).await, 400, "invalid_parameter");
    let (early, late) = ("2017-01-01T00:00:00Z", "2017-01-01T00:00:00.001Z");
    is(&send(list().query("from", late).query("to", early)).await, 400, "invalid_parameter");
    for (from, to) in [(early, late), (early, early)] {
        assert_eq!(send(list().query("from", from).query("to", to)).await.status, 200);
    }
    is(
        &send(list().query("from", "2017-01-01T00:00:00Z").query("from", "2017-01-01T00:00:00Z")).await,
        400,
        "invalid_parameter",
    );
    let mut event = list().event();
    event["rawQueryString"] = "limit=%ff".into();
    assert_eq!(routes().answer(&app(), serde_json::from_value(event).unwrap()).await.status_code, 400);
}
