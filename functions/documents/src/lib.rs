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

#[must_use]
pub fn routes() -> Routes<Services> {
    Routes::new()
        .checking(Services::checks)
        .on("POST /v1/documents", |services, request| Box::pin(documents::create(services, request)))
        .on("GET /v1/documents/{id}", |services, request| Box::pin(documents::read(services, request)))
        .on("DELETE /v1/documents/{id}", |services, request| Box::pin(delete::delete(services, request)))
        .on("GET /v1/documents/{id}/sections/{name}", |services, request| Box::pin(sections::read(services, request)))
        .on("PUT /v1/documents/{id}/sections/{name}", |services, request| Box::pin(sections::put(services, request)))
        .on("GET /v1/documents/{id}/versions", |services, request| Box::pin(versions::list(services, request)))
        .on("GET /v1/documents/{id}/versions/{n}", |services, request| Box::pin(versions::read(services, request)))
        .on("POST /v1/documents/{id}/drafts", |services, request| Box::pin(drafts::begin(services, request)))
        .on("DELETE /v1/documents/{id}/drafts", |services, request| Box::pin(drafts::discard(services, request)))
        .on("POST /v1/documents/{id}/publish", |services, request| Box::pin(drafts::publish(services, request)))
        .on("POST /v1/documents/{id}/restore", |services, request| Box::pin(versions::restore(services, request)))
        .on("PUT /v1/documents/{id}/editors/{customer}", |services, request| Box::pin(editors::add(services, request)))
        .on("DELETE /v1/documents/{id}/editors/{customer}", |services, request| {
            Box::pin(editors::remove(services, request))
        })
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("documents");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
