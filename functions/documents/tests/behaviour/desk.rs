//! Documents and their authors, in a separate table for each test.

use std::collections::BTreeMap;

use fixture::TestTable;
use http_api::sample::{Answered, Call};
use http_api::{Routes, Services};
use key_schema::customer::{self, Customer};
use key_schema::document::{self, Document, DocumentSection};
use key_schema::id::{Born, CustomerId, DocumentId, OrganizationId, SectionName};
use key_schema::instant::Instant;
use key_schema::item::{Entity, Stored};
use key_schema::organization::{self, Authority, Member, Organization, Role};
use serde_json::{Value, json};

/// The document of most tests. `ann` owns it.
pub const DOC: &str = "statutes #1~2$ Zürich 章程";
/// An organization with `mia` as admin and `max` as member.
pub const CLUB: &str = "club";

pub struct Desk {
    pub test: TestTable,
    pub services: Services,
    routes: Routes<Services>,
}

/// Creates a document with a chosen id, which only staff may do.
pub fn create(id: &str, sections: &Value) -> Call {
    Call::new("POST /v1/documents").json(&json!({ "id": id, "title": "Statutes", "sections": sections }))
}

fn on(route: &'static str, id: &str) -> Call {
    Call::new(route).path("id", id)
}

fn at(call: Call, version: u64) -> Call {
    call.header("if-match", &format!("\"{version}\""))
}

pub fn read(id: &str) -> Call {
    on("GET /v1/documents/{id}", id)
}

pub fn delete(id: &str, version: u64) -> Call {
    at(on("DELETE /v1/documents/{id}", id), version)
}

pub fn put(id: &str, name: &str, text: &str, version: u64) -> Call {
    let call = on("PUT /v1/documents/{id}/sections/{name}", id).path("name", name);
    at(call.json(&json!({ "text": text })), version)
}

pub fn section(id: &str, name: &str) -> Call {
    on("GET /v1/documents/{id}/sections/{name}", id).path("name", name)
}

pub fn versions(id: &str) -> Call {
    on("GET /v1/documents/{id}/versions", id)
}

pub fn version(id: &str, number: u64) -> Call {
    on("GET /v1/documents/{id}/versions/{n}", id).path("n", &number.to_string())
}

pub fn begin(id: &str, version: u64) -> Call {
    at(on("POST /v1/documents/{id}/drafts", id), version)
}

pub fn discard(id: &str, version: u64) -> Call {
    at(on("DELETE /v1/documents/{id}/drafts", id), version)
}

pub fn publish(id: &str, version: u64) -> Call {
    at(on("POST /v1/documents/{id}/publish", id).json(&json!({ "note": "as agreed" })), version)
}

pub fn restore(id: &str, number: u64, version: u64) -> Call {
    at(on("POST /v1/documents/{id}/restore", id).json(&json!({ "version": number })), version)
}

pub fn add_editor(id: &str, customer: &str) -> Call {
    on("PUT /v1/documents/{id}/editors/{customer}", id).path("customer", customer)
}

pub fn remove_editor(id: &str, customer: &str) -> Call {
    on("DELETE /v1/documents/{id}/editors/{customer}", id).path("customer", customer)
}

impl Desk {
    /// Creates the document with the sections `a` and `b`, version 1.
    pub async fn open() -> Self {
        let test = TestTable::create().await;
        let desk = Self { services: test.services(), test, routes: documents::routes() };
        for id in ["ann", "ben"] {
            desk.join(id).await;
        }
        desk.own(DOC, "ann", None, &json!({ "a": "A1", "b": "B1" })).await;
        desk
    }

    /// Also creates the club and a document of it, whose owner is `mia`.
    pub async fn with_club(id: &str) -> Self {
        let desk = Self::open().await;
        let organization = OrganizationId::new(CLUB).unwrap();
        let member = |customer: &str, role| {
            let customer_id = CustomerId::new(customer).unwrap();
            let member = Member { id: organization.clone(), customer_id, role, team: None };
            Stored::new(member, Born::new("b").unwrap(), Instant::now())
        };
        let head = Organization { id: organization.clone(), teams: 0, admins: 1, invited: 0, name: "Club".into() };
        let head = Stored::new(head, Born::new("b").unwrap(), Instant::now());
        let table = &desk.services.table;
        for id in ["mia", "max"] {
            desk.join(id).await;
        }
        let mia = member("mia", Role::Admin);
        table.transact(&organization::create(&head, &mia, Authority::Staff).unwrap()).await.unwrap().unwrap();
        let max = organization::put_member(None, &member("max", Role::Member), Authority::Staff).unwrap();
        table.transact(&max).await.unwrap().unwrap();
        desk.own(id, "mia", Some(CLUB), &json!({ "a": "A1" })).await;
        desk
    }

    /// Writes a customer's document with a chosen id, as its creation does.
    pub async fn own(&self, id: &str, owner: &str, organization: Option<&str>, sections: &Value) {
        let (id, by) = (DocumentId::new(id).unwrap(), CustomerId::new(owner).unwrap());
        let (born, at) = (Born::new(format!("{id}-1")).unwrap(), Instant::now());
        let sections = sections.as_object().unwrap().iter();
        let sections: BTreeMap<SectionName, String> =
            sections.map(|(name, text)| (SectionName::new(name).unwrap(), text.as_str().unwrap().to_owned())).collect();
        let head = Document {
            id: id.clone(),
            owner_id: Some(by.clone()),
            organization_id: organization.map(|id| OrganizationId::new(id).unwrap()),
            editors: [].into(),
            deleting: false,
            title: "Statutes".to_owned(),
            current: 1,
            sections: sections.keys().map(|name| (name.clone(), 1)).collect(),
            draft: None,
        };
        let section = |(name, text)| {
            let section = DocumentSection { id: id.clone(), name, number: 1, text, by: by.clone(), at };
            Stored::new(section, born.clone(), at)
        };
        let sections: Vec<_> = sections.into_iter().map(section).collect();
        let create = document::create(&Stored::new(head, born.clone(), at), &sections, &by, false).unwrap();
        self.services.table.transact(&create).await.unwrap().unwrap();
    }

    /// Ends a membership of the club.
    pub async fn leave(&self, customer: &str) {
        let (club, customer) = (OrganizationId::new(CLUB).unwrap(), CustomerId::new(customer).unwrap());
        let member = self.services.table.get(&organization::member(&club, &customer).unwrap()).await.unwrap().unwrap();
        let remove = organization::remove_member(&member, Authority::Staff).unwrap();
        self.services.table.transact(&remove).await.unwrap().unwrap();
    }

    /// Begins a membership of the club.
    pub async fn enter(&self, customer: &str, role: Role) {
        let (id, customer_id) = (OrganizationId::new(CLUB).unwrap(), CustomerId::new(customer).unwrap());
        let member = Member { id, customer_id, role, team: None };
        let member = Stored::new(member, Born::new("later").unwrap(), Instant::now());
        self.services
            .table
            .transact(&organization::put_member(None, &member, Authority::Staff).unwrap())
            .await
            .unwrap()
            .unwrap();
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

    /// Returns the sort keys in a document's partition.
    pub async fn stored(&self, id: &str) -> Vec<String> {
        let mut keys = Vec::new();
        let mut pages = self.test.client().scan().table_name(self.test.name()).into_paginator().items().send();
        let partition = format!("DOC#{}", key_schema::encoding::encode(id));
        while let Some(item) = pages.next().await {
            let item: key_schema::item::Item = item.unwrap().into();
            let key = key_schema::item::key_of(&item).unwrap();
            if key.pk.as_str() == partition {
                keys.push(key.sk.into_string());
            }
        }
        keys.sort();
        keys
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

    /// Returns the number of requests per pattern since the last call.
    pub fn requests(&self) -> BTreeMap<&'static str, u32> {
        self.services.table.meter().take().iter().map(|cost| (cost.pattern.id, cost.requests)).collect()
    }

    /// Returns the current texts.
    pub async fn texts(&self, id: &str) -> Value {
        texts(&self.expect(200, read(id).staff("s1")).await)
    }

    /// Reads a list to its end in pages of `limit`. Also returns the number of requests per page.
    pub async fn all(&self, list: impl Fn() -> Call, limit: usize) -> (Vec<Value>, Vec<u32>) {
        let (mut found, mut requests, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
        loop {
            let _ = self.requests();
            let call = list().query("limit", &limit.to_string());
            let body = self.expect(200, cursor.iter().fold(call, |call, cursor| call.query("cursor", cursor))).await;
            requests.push(self.requests().values().sum());
            found.extend(body["items"].as_array().unwrap().iter().cloned());
            match body["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return (found, requests),
            }
        }
    }
}

/// Returns the texts in a response by section.
pub fn texts(body: &Value) -> Value {
    body["sections"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, section)| (name.clone(), section["text"].clone()))
        .collect()
}

/// Returns the status and code for a document that is hidden or does not exist.
pub fn hidden() -> (u16, String) {
    (404, "not_found".to_owned())
}
