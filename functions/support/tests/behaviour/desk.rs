//! A support desk with customers, in a separate table for each test.

use emulators::table::{Fault, FaultKind};
use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Services};
use key_schema::customer::{self, Customer};
use key_schema::id::{Born, CustomerId, QuestionId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::question::{self, Question, QuestionStatus};
use serde_json::{Value, json};

pub struct Desk {
    pub services: Services,
    routes: Routes<Services>,
    pub test: TestTable,
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
        let test = TestTable::create().await;
        let desk = Self { services: test.services(), routes: support::routes(), test };
        for id in customers {
            desk.join(id).await;
        }
        desk
    }

    /// Signs a customer up.
    async fn join(&self, id: &str) {
        let names = self.names();
        let profile = Customer::new(
            CustomerId::new(id).unwrap(),
            format!("c{names}@example.com").parse().unwrap(),
            format!("c{names}").parse().unwrap(),
            "N".to_owned(),
        );
        let profile = Stored::new(profile, Born::new("b1").unwrap(), Instant::now());
        self.services.table.transact(&customer::create(&profile).unwrap()).await.unwrap().unwrap();
    }

    /// Returns a random number for unused names.
    fn names(&self) -> u64 {
        u64::from_be_bytes(self.services.random().unwrap()[..8].try_into().unwrap())
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.services).await
    }

    /// Sends a request as a client that retries after 503.
    pub async fn settled(&self, call: &Call) -> Answered {
        for _ in 0..50 {
            let answer = self.send(call.clone()).await;
            if answer.status != 503 {
                return answer;
            }
        }
        panic!("no answer");
    }

    /// Asks a question, expects success, and returns the question's id.
    pub async fn asked(&self, customer: &str, subject: &str) -> String {
        let answer = self.settled(&ask(customer, subject)).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body["id"].as_str().unwrap().to_owned()
    }

    /// Reads as staff and returns the body.
    pub async fn read(&self, call: Call) -> Value {
        let answer = self.send(call.staff("s1")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.body
    }

    /// Reads a list as staff to its end in pages of `limit`. Returns the items, and the number of
    /// requests per page.
    pub async fn pages(&self, list: &Call, limit: usize) -> (Vec<Value>, Vec<u32>) {
        let (mut found, mut requests, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
        loop {
            let call = list.clone().query("limit", &limit.to_string()).staff("s1");
            let call = cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor));
            self.costs();
            let answer = self.send(call).await;
            assert_eq!(answer.status, 200, "{}", answer.body);
            requests.push(self.costs().iter().map(|(_, requests)| requests).sum());
            found.extend(answer.body["items"].as_array().unwrap().iter().cloned());
            match answer.body["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return (found, requests),
            }
        }
    }

    /// Returns the patterns since the last call, with the number of requests of each.
    pub fn costs(&self) -> Vec<(&'static str, u32)> {
        self.services.table.meter().take().iter().map(|cost| (cost.pattern.id, cost.requests)).collect()
    }

    /// Writes questions directly into the table, ten minutes apart, which is within the quota.
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
                    if matches!(
                        self.services.table.transact(&question::ask(&question, None).unwrap()).await,
                        Ok(Ok(()))
                    ) {
                        return question.id.to_string();
                    }
                }
                panic!("not asked")
            }
        });
        let mut ids = Vec::new();
        for question in asked {
            ids.push(question.await);
        }
        ids
    }

    /// Makes the table fail from now on.
    pub fn break_with(&self, kind: FaultKind, rate: f64, seed: u64) {
        self.test.faults().add(Fault { kind, rate, count: None, seed }).unwrap();
    }

    /// Ends the table's faults. Returns how many faults occurred.
    pub fn clear_faults(&self) -> u64 {
        let fired = self.test.faults().counts().iter().map(|count| count.fired).sum();
        self.test.faults().clear();
        fired
    }
}

pub fn each<'a>(items: &'a [Value], member: &str) -> Vec<&'a str> {
    items.iter().map(|item| item[member].as_str().unwrap()).collect()
}
