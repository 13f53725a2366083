//! Tests of answers.

use emulators::table::FaultKind;
use key_schema::question::MAX_ANSWERS;
use serde_json::json;

use crate::desk::{Desk, answer, each, open, question, questions_of, support_of};

#[tokio::test]
async fn an_answer_is_shown_with_its_question_and_removes_it_from_the_queue() {
    let desk = Desk::open(&["ann"]).await;
    let id = desk.asked("ann", "Ice").await;
    assert_eq!(each(desk.read(open()).await["items"].as_array().unwrap(), "id"), [id.as_str()]);
    let first = desk.send(answer(&id, "Above 0 °C.")).await;
    assert_eq!((first.status, first.version(), &first.body["by"]), (201, Some(1), &json!("s1")));
    assert_eq!(first.header("location"), Some(format!("/v1/questions/{id}").as_str()));
    let second = desk.send(answer(&id, "At sea level.").staff("s2")).await;

    let whole = desk.send(question(&id).customer("ann")).await;
    assert_eq!((whole.status, whole.version()), (200, Some(3)));
    assert_eq!((&whole.body["status"], &whole.body["answer_count"]), (&json!("answered"), &json!(2)));
    let mut given = whole.body["answers"].as_array().unwrap().clone();
    given.sort_by_key(|answer| answer["by"].to_string());
    assert_eq!(given, [first.body, second.body]);
    assert_eq!(desk.read(open()).await["items"], json!([]));
    // The customer's copy of the question has the same data.
    let mut alone = whole.body.clone();
    alone.as_object_mut().unwrap().remove("answers");
    assert_eq!(desk.read(questions_of("ann")).await["items"], json!([alone]));
    assert_eq!(desk.read(support_of("ann")).await["questions"], json!([alone]));
}

#[tokio::test]
async fn a_question_and_its_answers_in_their_order_are_read_with_one_query() {
    let desk = Desk::open(&["ann"]).await;
    let id = desk.asked("ann", "Ice").await;
    for n in 0..MAX_ANSWERS {
        assert_eq!(desk.send(answer(&id, &format!("{n}"))).await.status, 201);
    }
    let full = desk.send(answer(&id, "one more")).await;
    assert_eq!((full.status, full.code()), (422, Some("too_many_answers")));
    desk.requests();
    let whole = desk.read(question(&id)).await;
    assert_eq!(desk.requests(), [("questions.get", 1)].into());
    let given = whole["answers"].as_array().unwrap();
    assert_eq!((given.len(), &whole["answer_count"]), (MAX_ANSWERS, &json!(MAX_ANSWERS)));
    assert!(each(given, "created_at").is_sorted());
}

#[tokio::test]
async fn with_a_key_an_answer_is_given_once() {
    let desk = Desk::open(&["ann"]).await;
    let id = desk.asked("ann", "Ice").await;
    let call = |text: &str| answer(&id, text).header("idempotency-key", "k");
    let first = desk.send(call("No.")).await;
    let again = desk.send(call("No.")).await;
    assert_eq!((first.status, again.status, &again.body), (201, 201, &first.body));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(desk.send(call("Yes.")).await.code(), Some("idempotency_key_reused"));
    assert_eq!(desk.read(question(&id)).await["answer_count"], 1);
    let nothing = desk.send(answer("nothing", "No.").header("idempotency-key", "other")).await;
    assert_eq!((nothing.status, nothing.code()), (404, Some("not_found")));
}

#[tokio::test]
async fn faults_of_the_table_neither_lose_nor_repeat_an_answer() {
    for (seed, kind) in (0..).zip([FaultKind::Conflict, FaultKind::Throttle, FaultKind::Reset]) {
        let desk = Desk::open(&["ann"]).await;
        let id = desk.asked("ann", "Ice").await;
        desk.break_with(kind, 0.3, None, seed);
        for n in 0..5 {
            let call = answer(&id, &format!("{n}")).header("idempotency-key", &format!("k{n}"));
            assert_eq!(desk.settled(call.clone()).await.status, 201, "{kind:?}");
        }
        assert!(desk.clear_faults() > 0, "{kind:?}");
        let whole = desk.read(question(&id)).await;
        assert_eq!((&whole["answer_count"], whole["answers"].as_array().unwrap().len()), (&json!(5), 5), "{kind:?}");
    }
}
