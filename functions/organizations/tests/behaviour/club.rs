//! An organization with customers around it, in a separate table for each test.

use std::collections::BTreeMap;
use std::ops::Deref;

use fixture::{Harness, TestTable};
use http_api::Services;
use http_api::sample::Call;
use key_schema::id::Born;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::organization::invitation::{self, Invitation};
use key_schema::organization::{self, Role};
use serde_json::{Value, json};

/// The organization of most tests. `ann` is its admin and `bob` a member.
pub const CLUB: &str = "chess #1~2$ Zürich 象棋";

pub struct Club(Harness<Services>);

impl Deref for Club {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
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

/// Builds the request that accepts an invitation. Clients can repeat it.
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
        let club = Self(Harness::start(organizations::routes(), TestTable::services).await);
        for id in customers {
            club.sign_up(id).await;
        }
        club
    }

    /// Creates the club as staff. `ann` is its admin, `bob` is a member, and `eve` is no member.
    pub async fn open() -> Self {
        let club = Self::empty(&["ann", "bob", "eve"]).await;
        let body = json!({ "id": CLUB, "name": "Chess" });
        club.expect(201, Call::new("POST /v1/organizations").json(&body).staff("s1")).await;
        for (customer, role) in [("ann", "admin"), ("bob", "member")] {
            club.expect(200, put_member(CLUB, customer, role, None).staff("s1")).await;
        }
        club.expect(204, remove_member(CLUB, "s1").staff("s1")).await;
        club
    }

    /// Writes an invitation to the club, without the function's checks. An invitation by a customer
    /// who is no member is void.
    pub async fn invite(&self, customer: &str, inviter: &str, expires_at: Instant) {
        let member = organization::member(&CLUB.parse().unwrap(), &inviter.parse().unwrap()).unwrap();
        let member = self.own().get(&member).await.unwrap();
        let inviter_born = member.map_or_else(|| Born::new("gone").unwrap(), |member| member.meta.born);
        let data = Invitation {
            id: CLUB.parse().unwrap(),
            customer_id: customer.parse().unwrap(),
            title: "Chess".to_owned(),
            role: Role::Member,
            team: None,
            inviter: inviter.parse().unwrap(),
            inviter_born,
            expires_at,
        };
        self.put(&Stored::new(data, Born::new("old").unwrap(), Instant::EPOCH)).await;
    }

    /// Reads an invitation to the club.
    pub async fn invitation(&self, customer: &str) -> Option<Stored<Invitation>> {
        let open = invitation::open(&CLUB.parse().unwrap()).unwrap();
        let found = self.own().query(&open).await.unwrap().items;
        found.into_iter().find(|invitation| invitation.customer_id.as_str() == customer)
    }

    /// Returns role and team of each member.
    pub async fn roles(&self) -> BTreeMap<String, (String, Option<String>)> {
        let (found, _) = self.all(&members(CLUB).staff("s1"), 100).await;
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
