//! A product's long description, which only its own page reads.

use std::time::Duration;

use http_api::read::long_text;
use http_api::{Code, Precondition, Problem, Request, Response, Store};
use key_schema::entity::AnyEntity;
use key_schema::id::ProductId;
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::product::{self, Part, ProductContent};
use table::TransactError;

use crate::products::no_such_product;
use crate::view::{ContentView, content_location};

/// The longest description, in bytes of UTF-8: a quarter of what an item may hold.
const MAX_TEXT: usize = 100 * 1024;
/// How long a shared cache may keep a description: an editor's change is seen everywhere after as long.
const MAX_AGE: Duration = Duration::from_secs(5);

/// GET products/{id}/content. A retired product says nothing.
pub async fn read(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let id: ProductId = request.path("id")?;
    let mut found = store.table.batch_get(&product::content(&id)?).await?.into_iter();
    match (found.next().flatten(), found.next().flatten()) {
        (Some(AnyEntity::Product(product)), Some(AnyEntity::ProductContent(content))) if !product.retired => {
            Ok(Response::ok(&ContentView::from(&content)).etag(content.meta.version).public(MAX_AGE))
        }
        (Some(AnyEntity::Product(product)), None) if !product.retired => Err(no_content()),
        _ => Err(no_such_product()),
    }
}

/// PUT products/{id}/content: creates it with `If-None-Match: *`, replaces it with If-Match.
pub async fn put(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let precondition = request.precondition()?;
    let mut body = request.object()?;
    let text = body.required("text", long_text(0..=MAX_TEXT));
    let text = body.finish(text)?;
    let at = Instant::now();
    match precondition {
        Precondition::Absent => {
            let content = Stored::new(ProductContent { product_id: id, text }, store.born(at)?, at);
            let written = store.table.transact(&product::create_content(&content)?).await;
            written.map_err(|error| refused(error, || already_exists(&content.product_id)))?;
            let location = content_location(&content.product_id);
            Ok(Response::created(location, &ContentView::from(&content)).etag(content.meta.version))
        }
        Precondition::Version(version) => {
            let written = store.table.transact(&product::replace_content(&id, &text, version, at)?).await;
            written.map_err(|error| refused(error, Problem::version_mismatch))?;
            let version = version.saturating_add(1);
            Ok(Response::ok(&ContentView::new(&id, &text, version, at)).etag(version))
        }
    }
}

/// What a refused write means: the product is missing, or the content is not as it should be.
fn refused(error: TransactError<Part>, unexpected: impl Fn() -> Problem) -> Problem {
    let refusals = match error {
        TransactError::Refused(refusals) => refusals,
        TransactError::Table(error) => return error.into(),
    };
    let content = refusals.iter().find(|refusal| refusal.label == Part::Content);
    match content {
        _ if refusals.iter().any(|refusal| refusal.label == Part::Product) => no_such_product(),
        // Only a replacement can be refused for want of something to replace.
        Some(refusal) if refusal.item.is_none() => no_content(),
        _ => unexpected(),
    }
}

fn no_content() -> Problem {
    Problem::not_found("content")
}

fn already_exists(id: &ProductId) -> Problem {
    Problem::new(Code::AlreadyExists, "This product has content; replace it with If-Match.")
        .location(content_location(id))
}
