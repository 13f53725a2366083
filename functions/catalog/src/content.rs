//! A product's long description, which no list of products contains. A text that is too large for
//! an item is uploaded to the bucket ([`crate::uploads`]), and the item references it.

use http_api::contract::{Body, route};
use http_api::{Code, Precondition, Problem, Request, Response};
use key_schema::id::{MediaId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::{Stored, take};
use key_schema::media::{MediaKind, UnsettledObject};
use key_schema::product::{self, Product, ProductAction, ProductContent};
use table::{Refusals, retry_on_conflict};

use crate::App;
use crate::products::no_such_product;
use crate::uploads::{self, StoredUpload};
use crate::view::{CONTENT_TEXT, ContentView, content_location};

#[derive(Body)]
struct NewContent {
    #[field(rule = CONTENT_TEXT, example = "# Ice")]
    text: String,
}

enum Wanted {
    Text(String),
    Upload(MediaId),
}

/// Read a product's long description
///
/// Returns the content. For a product without content, `text`, `version` and `updated_at` are
/// `null`, and the response has no ETag. A shared cache may keep the response for five seconds.
#[route(GET "/v1/products/{id}/content", id = "readContent", who = any, task = "browse", path(id: ProductId),
    answers(200 = ContentView<'_> "The content" [ETag]), refuses(not_found))]
pub async fn read(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let id: ProductId = request.path("id")?;
    let mut found = app.services.table.batch_get(&product::content(&id)?).await?;
    take::<Product, _>(&mut found).filter(|product| !product.retired).ok_or_else(no_such_product)?;
    let Some(content) = take::<ProductContent, _>(&mut found) else {
        return Ok(Response::ok(&ContentView::none(&id)));
    };
    let view = view(app, &content, content.meta.version, content.meta.updated_at).await?;
    Ok(Response::ok(&view).etag_of_parts(content.meta.version).fresh_for(uploads::READING))
}

/// Write a product's long description
///
/// `If-None-Match: *` creates the content, `If-Match` replaces it. Upload a text of over 100 KB
/// instead (`POST …/content/uploads`).
#[route(PUT "/v1/products/{id}/content", id = "putContent", who = staff, task = "media", path(id: ProductId),
    parameters(IfMatchOrNone, IfNoneMatch), body = NewContent,
    answers(200 = ContentView<'_> "The content" [ETag], 201 = ContentView<'_> "The new content" [Location, ETag]),
    refuses(already_exists = "with Location"))]
pub async fn put(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let id: ProductId = request.path("id")?;
    let precondition = request.precondition()?;
    let NewContent { text } = request.body()?;
    write(app, id, Wanted::Text(text), precondition).await
}

/// Use an upload as a product's long description
///
/// Makes the uploaded text the content. `If-None-Match: *` creates the content, `If-Match` replaces
/// it.
#[route(PUT "/v1/products/{id}/content/uploads/{upload}", id = "putContentUpload", who = staff, task = "media",
    path(id: ProductId, upload: MediaId), parameters(IfMatchOrNone, IfNoneMatch),
    answers(200 = ContentView<'_> "The content" [ETag], 201 = ContentView<'_> "The new content" [Location, ETag]),
    refuses(
        already_exists = "with Location",
        not_uploaded = "this product has no text upload with this id",
    ))]
pub async fn put_upload(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (id, upload) = (request.path("id")?, request.path("upload")?);
    write(app, id, Wanted::Upload(upload), request.precondition()?).await
}

async fn write(app: &App, id: ProductId, wanted: Wanted, precondition: Precondition) -> Result<Response, Problem> {
    retry_on_conflict(async || {
        let (content, note) = match &wanted {
            Wanted::Text(text) => (ProductContent { product_id: id.clone(), text: text.clone(), file: None }, None),
            Wanted::Upload(upload) => {
                let StoredUpload { object, note, .. } =
                    uploads::keep(app, MediaKind::Content, &id, upload.clone()).await?;
                (ProductContent { product_id: id.clone(), text: String::new(), file: Some(object) }, Some(note))
            }
        };
        let at = Instant::now();
        let (refusals, version) = match precondition {
            Precondition::Absent => {
                let content = Stored::new(content, app.services.born(at)?, at);
                match app.services.table.transact(&product::create_content(&content, note.as_ref())?).await? {
                    Ok(()) => {
                        let view = view(app, &content, content.meta.version, at).await?;
                        return Ok(Some(Response::created(content_location(&id), &view).etag(content.meta.version)));
                    }
                    Err(refusals) => (refusals, None),
                }
            }
            Precondition::Version(version) => match replace(app, &content, note.as_ref(), version, at).await? {
                Ok(()) => {
                    let version = version.saturating_add(1);
                    return Ok(Some(Response::ok(&view(app, &content, version, at).await?).etag(version)));
                }
                Err(refusals) => (refusals, Some(version)),
            },
        };
        // If only the condition on the `UnsettledObject` fails, the janitor or another request
        // with the same upload has changed this item. Then this function tries again. The response
        // reports any other refusal.
        if refusals.only(ProductAction::Object) { Ok(None) } else { Err(refused(&id, &refusals, version)) }
    })
    .await
}

/// Replaces the content at a version. The first write is refused if the old content references an
/// object. Then a second write also adds an [`UnsettledObject`] for this object. So the usual case,
/// a text that replaces a text, needs no read.
async fn replace(
    app: &App,
    content: &ProductContent,
    note: Option<&Stored<UnsettledObject>>,
    version: u64,
    at: Instant,
) -> Result<Result<(), Refusals<ProductAction>>, Problem> {
    let mut before = None;
    loop {
        let replace = product::replace_content(content, note, before.as_ref(), version, at)?;
        let Err(refusals) = app.services.table.transact(&replace).await? else { return Ok(Ok(())) };
        let stored = refusals.of(ProductAction::Content).and_then(|refusal| refusal.stored().ok().flatten());
        let stored =
            stored.filter(|stored: &Stored<ProductContent>| before.is_none() && stored.meta.version == version);
        let Some(file) = stored.and_then(|stored| stored.data.file) else { return Ok(Err(refusals)) };
        let note = UnsettledObject::new(MediaKind::Content, content.product_id.clone(), file.id, at);
        before = Some(uploads::noted(app, note, at)?);
    }
}

/// Explains a refused write: the product is missing, or the content is not in the expected state.
fn refused(id: &ProductId, refusals: &Refusals<ProductAction>, version: Option<u64>) -> Problem {
    let content = refusals.of(ProductAction::Content);
    match (content, version) {
        _ if refusals.names(ProductAction::Product) => no_such_product(),
        // A refusal without an item means that there is no content to replace.
        (Some(refusal), _) if refusal.item.is_none() => no_content(),
        (_, Some(_)) => Problem::version_mismatch(),
        (_, None) => already_exists(id),
    }
}

async fn view<'a>(
    app: &App,
    content: &'a ProductContent,
    version: u64,
    updated_at: Instant,
) -> Result<ContentView<'a>, Problem> {
    let by = match &content.file {
        Some(file) => Some(uploads::reading(app, MediaKind::Content, &content.product_id, &file.id).await?),
        None => None,
    };
    Ok(ContentView::new(content, by, version, updated_at))
}

fn no_content() -> Problem {
    Problem::not_found("content")
}

fn already_exists(id: &ProductId) -> Problem {
    Problem::new(Code::AlreadyExists, "This product already has content. Replace it with If-Match.")
        .location(content_location(id))
}
