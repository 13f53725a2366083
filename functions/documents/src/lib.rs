//! Documents: separately versioned sections, drafts, history and editors.

mod access;
mod delete;
mod documents;
mod drafts;
mod edit;
mod editors;
mod sections;
mod versions;
mod view;

use http_api::{Error, Routes, Services};
use key_schema::document;
use key_schema::pattern::Pattern;

const DELETE_DOCUMENT: &[&Pattern] = &[
    &document::EDIT,
    &document::STANDING,
    &document::RETIRE,
    &document::RETIRE_SHARED,
    &document::HISTORY,
    &document::SWEEP,
    &document::DELETE,
];

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("POST /v1/documents", &[&document::CREATE], |services, request| {
            Box::pin(documents::create(services, request))
        })
        .on("GET /v1/documents/{id}", &[&document::GET, &document::TEXTS], |services, request| {
            Box::pin(documents::read(services, request))
        })
        .on("DELETE /v1/documents/{id}", DELETE_DOCUMENT, |services, request| {
            Box::pin(delete::delete(services, request))
        })
        .on("GET /v1/documents/{id}/sections/{name}", &[&document::GET, &document::TEXTS], |services, request| {
            Box::pin(sections::read(services, request))
        })
        .on(
            "PUT /v1/documents/{id}/sections/{name}",
            &[&document::EDIT, &document::STANDING, &document::DISCARD_TEXTS, &document::PUT_SECTION],
            |services, request| Box::pin(sections::put(services, request)),
        )
        .on(
            "GET /v1/documents/{id}/versions",
            &[&document::GET, &document::VERSIONS, &document::STANDING],
            |services, request| Box::pin(versions::list(services, request)),
        )
        .on(
            "GET /v1/documents/{id}/versions/{n}",
            &[&document::TEXTS, &document::VERSION, &document::STANDING],
            |services, request| Box::pin(versions::read(services, request)),
        )
        .on(
            "POST /v1/documents/{id}/drafts",
            &[&document::EDIT, &document::STANDING, &document::DISCARD_TEXTS, &document::BEGIN_DRAFT],
            |services, request| Box::pin(drafts::begin(services, request)),
        )
        .on(
            "DELETE /v1/documents/{id}/drafts",
            &[&document::EDIT, &document::STANDING, &document::DISCARD_DRAFT, &document::DISCARD_TEXTS],
            |services, request| Box::pin(drafts::discard(services, request)),
        )
        .on(
            "POST /v1/documents/{id}/publish",
            &[&document::EDIT, &document::STANDING, &document::PUBLISH],
            |services, request| Box::pin(drafts::publish(services, request)),
        )
        .on(
            "POST /v1/documents/{id}/restore",
            &[&document::VERSION, &document::STANDING, &document::EDIT, &document::DISCARD_TEXTS, &document::RESTORE],
            |services, request| Box::pin(versions::restore(services, request)),
        )
        .on(
            "PUT /v1/documents/{id}/editors/{customer}",
            &[&document::EDIT, &document::STANDING, &document::ADD_EDITOR],
            |services, request| Box::pin(editors::add(services, request)),
        )
        .on(
            "DELETE /v1/documents/{id}/editors/{customer}",
            &[&document::EDIT, &document::STANDING, &document::REMOVE_EDITOR],
            |services, request| Box::pin(editors::remove(services, request)),
        )
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("documents");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
