//! Tests of asking and reading questions.

use key_schema::id::CustomerId;
use key_schema::quota::Quota;
use serde_json::json;

use crate::desk::{Desk, ask, question, questions_of, support_of};

#[tokio::test]
async fn a_question_has_one_form_in_all_responses() {
    // The ids contain all characters with a meaning in keys or paths. One id has the maximum
    // length.
    for customer in ["ann", "a#b~2F+c d", "ä&蘇黎世", &"#".repeat(128)] {
        let desk = Desk::open(&[customer]).await;
        let asked = desk.send(ask(customer, "Ice")).await;
        let id = asked.body["id"].as_str().unwrap().to_owned();
        assert_eq!((asked.status, asked.version()), (201, Some(1)));
        assert_eq!(asked.header("location"), Some(format!("/v1/questions/{id}").as_str()));
        let expected = json!({
            "id": id, "customer_id": customer, "subject": "Ice", "text": "Why?\nHow?", "status": "open",
            "answer_count": 0,
            "version": 1, "created_at": asked.body["created_at"], "updated_at": asked.body["created_at"],
        });
        assert_eq!(asked.body, expected);
        assert_eq!(desk.read(questions_of(customer)).await["items"], json!([expected]));
        let support = desk.read(support_of(customer)).await;
        assert_eq!((&support["customer"]["id"], &support["questions"]), (&json!(customer), &json!([expected])));
        let mut whole = desk.read(question(&id)).await;
        assert_eq!(whole["answers"].take(), json!([]));
        whole.as_object_mut().unwrap().remove("answers");
        assert_eq!(whole, expected);
    }
}

#[tokio::test]
async fn profile_and_the_newest_ten_questions_take_one_query() {
    // The partitions of the other customers sort next to that of `ann`.
    let desk = Desk::open(&["ann", "ann2", "an"]).await;
    desk.filled("ann2", 1).await;
    for count in [0, 1, 10, 12] {
        let known = desk.read(questions_of("ann")).await["items"].as_array().unwrap().len();
        for n in known..count {
            desk.asked("ann", &format!("{n:02}")).await;
        }
        desk.requests();
        let support = desk.read(support_of("ann")).await;
        assert_eq!(desk.requests(), [("questions.support", 1)].into());
        assert_eq!(support["customer"]["id"], "ann");
        let shown = support["questions"].as_array().unwrap();
        assert_eq!(shown.len(), count.min(10));
        let times: Vec<&str> = shown.iter().map(|question| question["created_at"].as_str().unwrap()).collect();
        assert!(times.is_sorted_by(|newer, older| newer >= older), "{times:?}");
    }
}

#[tokio::test]
async fn questions_of_missing_customers_get_404() {
    let desk = Desk::open(&[]).await;
    for call in [ask("nobody", "Ice"), ask("nobody", "Ice").staff("s1"), support_of("nobody").customer("nobody")] {
        let answer = desk.send(call).await;
        assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
    }
    assert_eq!(desk.read(questions_of("nobody")).await["items"], json!([]));
    let missing = desk.send(question("nothing").staff("s1")).await;
    assert_eq!((missing.status, missing.code()), (404, Some("not_found")));
}

#[tokio::test]
async fn with_a_key_a_question_is_asked_once_and_has_one_response() {
    let desk = Desk::open(&["ann"]).await;
    let call = |subject: &str| ask("ann", subject).header("idempotency-key", "k");
    let first = desk.send(call("Ice")).await;
    let again = desk.send(call("Ice")).await;
    assert_eq!((first.status, again.status, &again.body), (201, 201, &first.body));
    assert_eq!(
        (again.header("idempotency-replayed"), again.header("location")),
        (Some("true"), first.header("location"))
    );
    let other = desk.send(call("Snow")).await;
    assert_eq!((other.status, other.code()), (422, Some("idempotency_key_reused")));
    assert_eq!(desk.read(questions_of("ann")).await["items"].as_array().unwrap().len(), 1);
    // Without a key, two equal requests are two questions.
    desk.asked("ann", "Ice").await;
    assert_eq!(desk.read(questions_of("ann")).await["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn another_customers_question_looks_like_a_missing_question() {
    let desk = Desk::open(&["ann", "bob"]).await;
    let id = desk.asked("ann", "Ice").await;
    let (hers, none) = (question(&id).customer("bob"), question("nothing").customer("bob"));
    let (mut hers, mut none) = (desk.send(hers).await.body, desk.send(none).await.body);
    for answer in [&mut hers, &mut none] {
        answer["request_id"].take();
    }
    assert_eq!(hers, none);
}

/// Without a quota, one customer could fill staff's list.
#[tokio::test]
async fn a_customer_asks_no_more_questions_a_day_than_the_quota() {
    let desk = Desk::open(&["ann", "ben"]).await;
    desk.test.use_up(&CustomerId::new("ann").unwrap(), Quota::Questions, 1).await;
    let last = ask("ann", "Last").header("idempotency-key", "last");
    let asked = desk.send(last.clone()).await;
    assert_eq!(asked.status, 201, "{}", asked.body);
    for call in [ask("ann", "More"), ask("ann", "More").staff("s1")] {
        let refused = desk.send(call).await;
        assert_eq!((refused.status, refused.code()), (429, Some("quota_exceeded")), "{}", refused.body);
        let seconds: i64 = refused.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=24 * 60 * 60).contains(&seconds), "{seconds}");
    }
    assert_eq!(desk.send(last).await.body, asked.body, "a repeated request gets its response again");
    assert_eq!(desk.read(questions_of("ann")).await["items"], json!([asked.body]));
    assert_eq!(desk.send(ask("ben", "Ice")).await.status, 201);
}
