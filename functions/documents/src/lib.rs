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

use http_api::{Error, Services};

http_api::routes! {
    Services;
    documents::create, documents::read, delete::delete,
    sections::read, sections::put,
    versions::list, versions::read,
    drafts::begin, drafts::discard, drafts::publish, versions::restore,
    editors::add, editors::remove
}

pub async fn run() -> Result<(), Error> {
    telemetry::init("documents");
    let services = Services::from_env().await?;
    http_api::run(routes(), services).await
}
