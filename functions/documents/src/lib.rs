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

use http_api::{Error, Routes, Store};

/// Returns the routes of this function.
#[must_use]
pub fn routes() -> Routes<Store> {
    Routes::new()
        .checking(Store::sign_ins)
        .on("POST /v1/documents", |store, request| Box::pin(documents::create(store, request)))
        .on("GET /v1/documents/{id}", |store, request| Box::pin(documents::read(store, request)))
        .on("DELETE /v1/documents/{id}", |store, request| Box::pin(delete::delete(store, request)))
        .on("GET /v1/documents/{id}/sections/{name}", |store, request| Box::pin(sections::read(store, request)))
        .on("PUT /v1/documents/{id}/sections/{name}", |store, request| Box::pin(sections::put(store, request)))
        .on("GET /v1/documents/{id}/versions", |store, request| Box::pin(versions::list(store, request)))
        .on("GET /v1/documents/{id}/versions/{n}", |store, request| Box::pin(versions::read(store, request)))
        .on("POST /v1/documents/{id}/drafts", |store, request| Box::pin(drafts::begin(store, request)))
        .on("DELETE /v1/documents/{id}/drafts", |store, request| Box::pin(drafts::discard(store, request)))
        .on("POST /v1/documents/{id}/publish", |store, request| Box::pin(drafts::publish(store, request)))
        .on("POST /v1/documents/{id}/restore", |store, request| Box::pin(versions::restore(store, request)))
        .on("PUT /v1/documents/{id}/editors/{customer}", |store, request| Box::pin(editors::add(store, request)))
        .on("DELETE /v1/documents/{id}/editors/{customer}", |store, request| Box::pin(editors::remove(store, request)))
}

/// Answers requests until Lambda shuts down the execution environment.
///
/// # Errors
/// Fails when the environment lacks a required setting, or when the Runtime API breaks.
pub async fn run() -> Result<(), Error> {
    telemetry::init("documents");
    let store = Store::from_env().await?;
    http_api::run(routes(), store).await
}
