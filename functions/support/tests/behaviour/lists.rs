//! Tests of the lists: a customer's questions, and the questions without an answer.

use serde_json::Value;

use crate::desk::{Desk, answer, each, open, questions_of};

const COUNT: usize = 1000;

#[tokio::test]
async fn a_thousand_questions_are_read_page_by_page_in_both_lists() {
    let desk = Desk::open(&["ann"]).await;
    let asked = desk.filled("ann", COUNT).await;
    let newest_first: Vec<&str> = asked.iter().rev().map(String::as_str).collect();
    for limit in [100, 7] {
        let (found, requests) = desk.all(&questions_of("ann").staff("s1"), limit).await;
        assert_eq!(each(&found, "id"), newest_first);
        assert!(requests.iter().all(|requests| *requests == 1), "{requests:?}");
        let (found, requests) = desk.all(&open().staff("s1"), limit).await;
        assert_eq!(each(&found, "id"), asked);
        let further: u32 = requests.iter().map(|requests| requests - 4).sum();
        assert!(
            usize::try_from(further).unwrap() <= 2 + requests.len() / 20,
            "more than one request per shard: {requests:?}"
        );
    }
}

#[tokio::test]
async fn questions_and_answers_between_two_pages_neither_hide_nor_repeat_other_questions() {
    let desk = Desk::open(&["ann"]).await;
    let asked = desk.filled("ann", 40).await;
    for list in [questions_of("ann"), open()] {
        let before: Vec<Value> = desk.all(&list.clone().staff("s1"), 100).await.0;
        let (mut found, mut cursor) = (Vec::<Value>::new(), None::<String>);
        for page in 0.. {
            let call = list.clone().query("limit", "9").staff("s1");
            let read = desk.send(cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor))).await.body;
            found.extend(read["items"].as_array().unwrap().iter().cloned());
            // The last question of the page gets an answer, and a new question is asked.
            let last = found.last().unwrap()["id"].as_str().unwrap();
            assert_eq!(desk.send(answer(last, "A")).await.status, 201);
            desk.asked("ann", &format!("New {page}")).await;
            match read["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => break,
            }
        }
        let known: Vec<&str> = each(&before, "id");
        let found: Vec<&str> = each(&found, "id").into_iter().filter(|id| known.contains(id)).collect();
        assert_eq!(found, known);
    }
    assert!(desk.all(&open().staff("s1"), 100).await.0.len() < asked.len() + 12);
}
