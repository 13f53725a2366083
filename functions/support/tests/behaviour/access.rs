//! Tests of the permissions to ask, read and answer.

use crate::desk::{Desk, answer, ask, open, question, questions_of, support_of};

#[tokio::test]
async fn only_the_customer_and_staff_see_a_question_and_strangers_get_404() {
    let desk = Desk::open(&["ann", "bob"]).await;
    let id = desk.asked("ann", "Ice").await;
    let calls = || [ask("ann", "Ice"), questions_of("ann"), support_of("ann"), question(&id)];
    for call in calls() {
        // A call uses the identity that was set last. Empty claims mean a call without an identity.
        assert_eq!(desk.send(call.clone().claims(serde_json::json!({}))).await.status, 401);
        for stranger in ["bob", "nobody"] {
            let answer = desk.send(call.clone().customer(stranger)).await;
            assert_eq!((answer.status, answer.code()), (404, Some("not_found")));
        }
        for welcome in [call.clone().customer("ann"), call.staff("s1")] {
            let answer = desk.send(welcome).await;
            assert!([200, 201].contains(&answer.status), "{}", answer.body);
        }
    }
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

#[tokio::test]
async fn only_staff_see_the_queue_and_answer() {
    let desk = Desk::open(&["ann"]).await;
    let id = desk.asked("ann", "Ice").await;
    for call in [open(), answer(&id, "No.")] {
        assert_eq!(desk.send(call.clone().claims(serde_json::json!({}))).await.status, 401);
        let refused = desk.send(call.customer("ann")).await;
        assert_eq!((refused.status, refused.code()), (403, Some("forbidden")));
    }
    assert_eq!(desk.read(question(&id)).await["answers"], serde_json::json!([]));
    assert_eq!(desk.send(answer(&id, "No.")).await.status, 201);
}
