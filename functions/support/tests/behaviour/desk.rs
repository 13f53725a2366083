//! A support desk with customers, in a separate table for each test.

use std::ops::Deref;

use fixture::{Harness, TestTable};
use http_api::Services;
use http_api::sample::Call;
use key_schema::id::{Born, CustomerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{self, Question, QuestionStatus};
use serde_json::{Value, json};

pub struct Desk(Harness<Services>);

impl Deref for Desk {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

pub fn ask(customer: &str, subject: &str) -> Call {
    let call = Call::new("POST /v1/customers/{id}/questions").path("id", customer);
    call.json(&json!({ "subject": subject, "text": "Why?\nHow?" })).customer(customer)
}

pub fn questions_of(customer: &str) -> Call {
    Call::new("GET /v1/customers/{id}/questions").path("id", customer)
}

pub fn support_of(customer: &str) -> Call {
    Call::new("GET /v1/customers/{id}/support").path("id", customer)
}

pub fn question(id: &str) -> Call {
    Call::new("GET /v1/questions/{id}").path("id", id)
}

pub fn open() -> Call {
    Call::new("GET /v1/questions").query("status", "open")
}

pub fn answer(id: &str, text: &str) -> Call {
    Call::new("POST /v1/questions/{id}/answers").path("id", id).json(&json!({ "text": text })).staff("s1")
}

impl Desk {
    pub async fn open(customers: &[&str]) -> Self {
        let desk = Self(Harness::start(support::routes(), TestTable::services).await);
        for id in customers {
            desk.sign_up(id).await;
        }
        desk
    }

    /// Asks a question, expects success, and returns the question's id.
    pub async fn asked(&self, customer: &str, subject: &str) -> String {
        let answer = self.settled(ask(customer, subject)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body["id"].as_str().unwrap().to_owned()
    }

    /// Reads as staff and returns the body.
    pub async fn read(&self, call: Call) -> Value {
        self.expect(200, call.staff("s1")).await
    }

    /// Writes questions directly into the table, ten minutes apart and so within the quota.
    pub async fn filled(&self, customer: &str, count: usize) -> Vec<String> {
        let asked = (0..count).map(|n| {
            let at = Instant::EPOCH.plus_seconds(1_700_000_000 + 600 * i64::try_from(n).unwrap());
            let question = Question {
                id: QuestionId::generate(at, [9; 10]),
                customer_id: CustomerId::new(customer).unwrap(),
                status: QuestionStatus::Open,
                answer_count: 0,
                title: format!("Subject {n}"),
                text: "T".to_owned(),
            };
            let question = Stored::new(question, Born::generate(at, [9; 10]), at);
            async move {
                for _ in 0..50 {
                    if self.own().transact(&question::ask(&question, None).unwrap()).await.unwrap().is_ok() {
                        return question.id.to_string();
                    }
                }
                panic!("the question was not created")
            }
        });
        let mut ids = Vec::new();
        for question in asked {
            ids.push(question.await);
        }
        ids
    }
}

pub fn each<'a>(items: &'a [Value], member: &str) -> Vec<&'a str> {
    items.iter().map(|item| item[member].as_str().unwrap()).collect()
}
