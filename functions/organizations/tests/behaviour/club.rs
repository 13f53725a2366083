//! An organization with customers around it, in a separate table for each test.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::AttributeValue;
use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Services};
use key_schema::customer::{self, Customer};
use key_schema::id::{Born, CustomerId};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::organization::invitation::{self, Invitation};
use key_schema::request::Get;
use serde_json::{Value, json};

/// The organization of most tests. `ann` is its admin and `bob` a member.
pub const CLUB: &str = "chess #1~2$ Zürich 象棋";

pub struct Club {
    pub test: TestTable,
    pub services: Services,
    routes: Routes<Services>,
}

pub fn found(name: &str) -> Call {
    Call::new("POST /v1/organizations").json(&json!({ "name": name }))
}

pub fn read(id: &str) -> Call {
    Call::new("GET /v1/organizations/{id}").path("id", id)
}

pub fn rename(id: &str, name: &str, version: u64) -> Call {
    let call = Call::new("PATCH /v1/organizations/{id}").path("id", id).json(&json!({ "name": name }));
    call.header("if-match", &format!("\"{version}\""))
}

fn team(route: &'static str, id: &str, team: &str) -> Call {
    Call::new(route).path("id", id).path("team", team)
}

pub fn add_team(id: &str, name: &str) -> Call {
    let call = team("PUT /v1/organizations/{id}/teams/{team}", id, name).json(&json!({ "name": name }));
    call.header("if-none-match", "*")
}

pub fn rename_team(id: &str, name: &str, to: &str, version: u64) -> Call {
    let call = team("PUT /v1/organizations/{id}/teams/{team}", id, name).json(&json!({ "name": to }));
    call.header("if-match", &format!("\"{version}\""))
}

pub fn delete_team(id: &str, name: &str, version: u64) -> Call {
    team("DELETE /v1/organizations/{id}/teams/{team}", id, name).header("if-match", &format!("\"{version}\""))
}

pub fn members(id: &str) -> Call {
    Call::new("GET /v1/organizations/{id}/members").path("id", id)
}

pub fn put_member(id: &str, customer: &str, role: &str, team: Option<&str>) -> Call {
    let call = Call::new("PUT /v1/organizations/{id}/members/{customer}").path("id", id).path("customer", customer);
    call.json(&json!({ "role": role, "team": team }))
}

/// Accepts an invitation, or repeats that.
pub fn accept(id: &str, customer: &str) -> Call {
    let call = Call::new("PUT /v1/organizations/{id}/members/{customer}").path("id", id).path("customer", customer);
    call.json(&json!({}))
}

pub fn invitations(id: &str) -> Call {
    Call::new("GET /v1/organizations/{id}/invitations").path("id", id)
}

pub fn uninvite(id: &str, customer: &str) -> Call {
    Call::new("DELETE /v1/organizations/{id}/invitations/{customer}").path("id", id).path("customer", customer)
}

pub fn invitations_of(customer: &str) -> Call {
    Call::new("GET /v1/customers/{id}/invitations").path("id", customer)
}

pub fn remove_member(id: &str, customer: &str) -> Call {
    Call::new("DELETE /v1/organizations/{id}/members/{customer}").path("id", id).path("customer", customer)
}

pub fn organizations_of(customer: &str) -> Call {
    Call::new("GET /v1/customers/{id}/organizations").path("id", customer)
}

impl Club {
    /// Creates a table with customers and no organization.
    pub async fn empty(customers: &[&str]) -> Self {
        let test = TestTable::create().await;
        let club = Self { services: test.services(), test, routes: organizations::routes() };
        for id in customers {
            club.join(id).await;
        }
        club
    }

    /// Creates the club: staff found it for `ann`, `bob` is a member, and `eve` is outside.
    pub async fn open() -> Self {
        let club = Self::empty(&["ann", "bob", "eve"]).await;
        let body = json!({ "id": CLUB, "name": "Chess" });
        let founded = club.send(Call::new("POST /v1/organizations").json(&body).staff("s1")).await;
        assert_eq!(founded.status, 201, "{}", founded.body);
        for (customer, role) in [("ann", "admin"), ("bob", "member")] {
            assert_eq!(club.send(put_member(CLUB, customer, role, None).staff("s1")).await.status, 200);
        }
        assert_eq!(club.send(remove_member(CLUB, "s1").staff("s1")).await.status, 204);
        club
    }

    pub async fn join(&self, id: &str) {
        let profile = Customer::new(
            CustomerId::new(id).unwrap(),
            format!("{id}@example.com").parse().unwrap(),
            id.parse().unwrap(),
            id.to_owned(),
        );
        let profile = Stored::new(profile, Born::new(id).unwrap(), Instant::now());
        self.services.table.transact(&customer::create(&profile).unwrap()).await.unwrap().unwrap();
    }

    /// Writes items directly into the table, without any check.
    pub async fn seed<T: Entity>(&self, items: &[Stored<T>]) {
        for chunk in items.chunks(50) {
            let put = |item: &Stored<T>| {
                let put = self.test.client().put_item().table_name(self.test.name());
                put.set_item(Some(item.to_item().unwrap().into())).send()
            };
            for put in futures::future::join_all(chunk.iter().map(put)).await {
                put.unwrap();
            }
        }
    }

    /// Removes the item that a request reads, without any check.
    pub async fn take_away<T>(&self, read: &Get<T>) {
        let key = read.key();
        let text = |text: &str| AttributeValue::S(text.to_owned());
        let delete = self.test.client().delete_item().table_name(self.test.name());
        delete.key("PK", text(key.pk.as_str())).key("SK", text(key.sk.as_str())).send().await.unwrap();
    }

    /// Reads an invitation to the club.
    pub async fn invitation(&self, customer: &str) -> Option<Stored<Invitation>> {
        let open = invitation::open(&CLUB.parse().unwrap()).unwrap();
        let found = self.services.table.query(&open).await.unwrap().items;
        found.into_iter().find(|invitation| invitation.customer_id.as_str() == customer)
    }

    pub async fn send(&self, call: Call) -> Answered {
        call.send(&self.routes, &self.services).await
    }

    /// Expects a status and returns the body.
    pub async fn expect(&self, status: u16, call: Call) -> Value {
        let answer = self.send(call).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        answer.body
    }

    /// Returns the status and the code of a refusal.
    pub async fn refusal(&self, call: Call) -> (u16, String) {
        let answer = self.send(call).await;
        (answer.status, answer.code().unwrap_or_default().to_owned())
    }

    /// Sends a request as a client that retries after 503, the response of a contended table.
    pub async fn settled(&self, call: impl Fn() -> Call) -> Answered {
        let mut answer = self.send(call()).await;
        for _ in 0..50 {
            if answer.status != 503 {
                break;
            }
            answer = self.send(call()).await;
        }
        answer
    }

    /// Reads a list to its end in pages of `limit`. Also returns the number of requests per page.
    pub async fn all(&self, list: impl Fn() -> Call, limit: usize) -> (Vec<Value>, Vec<u32>) {
        let (mut found, mut requests, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
        loop {
            let _ = self.services.table.meter().take();
            let call = list().query("limit", &limit.to_string());
            let body = self.expect(200, cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor))).await;
            requests.push(self.services.table.meter().take().iter().map(|cost| cost.requests).sum());
            found.extend(body["items"].as_array().unwrap().iter().cloned());
            match body["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return (found, requests),
            }
        }
    }

    /// Returns role and team of each member.
    pub async fn roles(&self) -> BTreeMap<String, (String, Option<String>)> {
        let (found, _) = self.all(|| members(CLUB).staff("s1"), 100).await;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let entry = |member: &Value| {
            (text(&member["customer_id"]).unwrap(), (text(&member["role"]).unwrap(), text(&member["team"])))
        };
        found.iter().map(entry).collect()
    }
}

/// Returns the status and code for an organization that is hidden or does not exist.
pub fn hidden() -> (u16, String) {
    (404, "not_found".to_owned())
}
