//! Tests of many concurrent requests.

use std::collections::BTreeSet;

use futures::future::join_all;
use serde_json::json;

use crate::desk::{Desk, answer, ask, open, question, questions_of};

#[tokio::test]
async fn fifty_concurrent_requests_create_fifty_questions_or_one_question_if_they_share_a_key() {
    let desk = Desk::open(&["ann"]).await;
    let calls: Vec<_> = (0..50).map(|n| ask("ann", &format!("{n}"))).collect();
    let answers = join_all(calls.iter().map(|call| desk.settled(call.clone()))).await;
    let ids: BTreeSet<&str> = answers.iter().map(|answer| answer.body["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 50);
    let keyed = ask("ann", "once").header("idempotency-key", "k");
    let answers = join_all((0..50).map(|_| desk.settled(keyed.clone()))).await;
    assert!(answers.iter().all(|answer| answer.status == 201 && answer.body == answers[0].body));
    assert_eq!(desk.all(&questions_of("ann").staff("s1"), 100).await.0.len(), 51);
    assert_eq!(desk.all(&open().staff("s1"), 100).await.0.len(), 51);
}

#[tokio::test]
async fn fifty_concurrent_answers_are_all_counted_in_the_question_and_its_copy() {
    let desk = Desk::open(&["ann"]).await;
    let id = desk.asked("ann", "Ice").await;
    let calls: Vec<_> = (0..50).map(|n| answer(&id, &format!("{n}"))).collect();
    for answer in join_all(calls.iter().map(|call| desk.settled(call.clone()))).await {
        assert_eq!(answer.status, 201, "{}", answer.body);
    }
    let whole = desk.read(question(&id)).await;
    assert_eq!((whole["answers"].as_array().unwrap().len(), &whole["answer_count"]), (50, &json!(50)));
    let copy = &desk.read(questions_of("ann")).await["items"][0];
    for member in ["answer_count", "version", "status", "updated_at"] {
        assert_eq!(copy[member], whole[member], "{member}");
    }
    assert_eq!(whole["version"], 51);
}

#[tokio::test]
async fn concurrent_answers_reach_the_limit_of_a_question_exactly() {
    let desk = Desk::open(&["ann"]).await;
    let id = desk.asked("ann", "Ice").await;
    for n in 0..95 {
        assert_eq!(desk.send(answer(&id, &format!("{n}"))).await.status, 201);
    }
    let calls: Vec<_> = (0..20).map(|n| answer(&id, &format!("last {n}"))).collect();
    let answers = join_all(calls.iter().map(|call| desk.settled(call.clone()))).await;
    let given = answers.iter().filter(|answer| answer.status == 201).count();
    let full = answers.iter().filter(|answer| answer.code() == Some("too_many_answers")).count();
    assert_eq!((given, full), (5, 15));
    assert_eq!(desk.read(question(&id)).await["answers"].as_array().unwrap().len(), 100);
}
