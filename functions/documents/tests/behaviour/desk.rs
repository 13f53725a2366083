//! Documents and their authors, in a separate table for each test.

use std::ops::Deref;

use fixture::{Harness, TestTable, seed};
use http_api::Services;
use http_api::sample::Call;
use key_schema::document::{self, Edit, Right};
use key_schema::id::{Born, CustomerId, DocumentId, OrganizationId, SectionName};
use key_schema::instant::Instant;
use key_schema::organization::{self, Authority, Role};
use serde_json::{Value, json};

/// The document of most tests. `ann` owns it.
pub const DOC: &str = "statutes #1~2$ Zürich 章程";
/// An organization with `mia` as admin and `max` as member.
pub const CLUB: &str = "club";

pub struct Desk(Harness<Services>);

impl Deref for Desk {
    type Target = Harness<Services>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// Builds the request that creates a document with a chosen id. Only staff may choose an id.
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
    /// Opens a desk with the document [`DOC`], which has the sections `a` and `b` in version 1.
    pub async fn open() -> Self {
        let desk = Self(Harness::start(documents::routes(), TestTable::services).await);
        for id in ["ann", "ben"] {
            desk.sign_up(id).await;
        }
        desk.draw_up(DOC, "ann", None, &json!({ "a": "A1", "b": "B1" })).await;
        desk
    }

    /// Opens a desk that also has the club, and a document of `mia` in the club.
    pub async fn with_club(id: &str) -> Self {
        let desk = Self::open().await;
        for id in ["mia", "max"] {
            desk.sign_up(id).await;
        }
        desk.found(CLUB, "mia").await;
        desk.enter(CLUB, "max", Role::Member).await;
        desk.draw_up(id, "mia", Some(CLUB), &json!({ "a": "A1" })).await;
        desk
    }

    /// Writes a customer's document with a chosen id, in the same way as the route does.
    pub async fn draw_up(&self, id: &str, owner: &str, organization: Option<&str>, sections: &Value) {
        let sections = sections.as_object().unwrap().iter();
        let sections: Vec<(&str, &str)> =
            sections.map(|(name, text)| (name.as_str(), text.as_str().unwrap())).collect();
        self.write(seed::document(id, owner, organization, &sections)).await;
    }

    /// Begins a draft, writes one text into it, and discards the draft. The text's item stays in
    /// the table, as after an interrupted request. The document's version increases by 3.
    pub async fn abandon_draft(&self, id: &str) {
        let (id, by) = (DocumentId::new(id).unwrap(), CustomerId::new("s1").unwrap());
        let (name, at, born) = (SectionName::new("a").unwrap(), Instant::now(), Born::new("b2").unwrap());
        let edit = |old| Edit { old, right: Right::Staff, by: &by, at, born: &born };
        let head = self.own().get(&document::read_for_update(&id).unwrap()).await.unwrap().unwrap();
        let (begin, head) = document::begin_draft(edit(&head)).unwrap();
        self.transact(&begin).await;
        let (put, head) = document::put_section(edit(&head), &name, "drafted".to_owned()).unwrap();
        self.transact(&put).await;
        let (discard, _) = document::discard_draft(edit(&head), head.draft.as_ref().unwrap()).unwrap();
        self.transact(&discard).await;
    }

    /// Ends a membership of the club.
    pub async fn leave(&self, customer: &str) {
        let (club, customer) = (OrganizationId::new(CLUB).unwrap(), CustomerId::new(customer).unwrap());
        let member = self.own().get(&organization::member(&club, &customer).unwrap()).await.unwrap().unwrap();
        self.transact(&organization::remove_member(&member, Authority::Staff).unwrap()).await;
    }

    /// Returns the sort keys in a document's partition.
    pub async fn stored(&self, id: &str) -> Vec<String> {
        let partition = format!("DOC#{}", key_schema::encoding::encode(id));
        let keys = self.keys(&partition).await.into_iter();
        keys.filter(|(pk, _)| *pk == partition).map(|(_, sk)| sk).collect()
    }

    /// Returns the current texts.
    pub async fn texts(&self, id: &str) -> Value {
        texts(&self.expect(200, read(id).staff("s1")).await)
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
