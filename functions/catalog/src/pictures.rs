//! The list of a product's pictures. A client first uploads a picture ([`crate::uploads`]) and
//! then adds it to the list. A repeated PUT or DELETE of a picture changes nothing. So a write
//! needs no If-Match, and a client can repeat each request.
//!
//! A change reads the list with strong consistency. Its write has the condition that the list is
//! unchanged. If the write is refused, the function reads again.

use http_api::contract::rules::{OneOf, one_of};
use http_api::contract::{Body, route};
use http_api::{Code, Problem, Request, Response};
use key_schema::id::{MediaId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::media::{MediaKind, UnsettledObject};
use key_schema::picture::PicturesItem;
use key_schema::picture::{self, MAX_PICTURES, Picture, PictureAction, PictureSize, ProductPictures};
use key_schema::product::Product;
use key_schema::request::BatchGet;
use table::{Backoff, retry_on_conflict};

use crate::App;
use crate::products::no_such_product;
use crate::uploads::{self, StoredUpload};
use crate::view::{PICTURE_TEXT, PictureList, PictureView, picture_location};

const SIZE: OneOf = one_of(&["small", "medium", "large"]);

#[derive(Body)]
#[body(name = "PictureChange")]
struct NewPicture {
    #[field(rule = PICTURE_TEXT, example = "A bag of ice")]
    alt: Option<String>,
}

/// List a product's pictures
///
/// Returns the pictures in the order in which they were added, at most 20. Each `url` is valid until
/// `url_expires_at`, which is 45 to 60 minutes after the response. A picture's `url` changes every
/// 15 minutes. A shared cache may keep the list for five seconds.
#[route(GET "/v1/products/{id}/pictures", id = "listPictures", who = any, task = "browse", path(id: ProductId),
    answers(200 = PictureList<'_> "The pictures" [ETag]), refuses(not_found))]
pub async fn list(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let id: ProductId = request.path("id")?;
    let read = read_by(app, picture::list(&id)?).await?;
    if !read.is_sold() {
        return Err(no_such_product());
    }
    let mut items = Vec::new();
    for picture in read.pictures() {
        // The URL takes no request to the bucket.
        let by = uploads::reading(app, MediaKind::Picture, &id, &picture.object.id).await?;
        items.push(PictureView::new(&id, picture, by));
    }
    Ok(Response::ok(&PictureList { items, next_cursor: () }).fresh_for(uploads::READING))
}

/// Read a picture
///
/// Redirects to a signed URL of the picture, which is valid for at least 45 minutes. The `thumbnail`
/// of a product is the path of such a request. To show the picture in an `<img>`, set `src` to the
/// API's address followed by this path. With `size`, the URL is that of a smaller copy, if the picture
/// has one of this size. Caches may keep the redirection for 15 minutes. The pictures
/// of a product that has left the catalogue are not listed any more, but this path still works for
/// the pages of earlier orders.
// So lists of products need no signed URLs, which are long and expire.
#[route(GET "/v1/products/{id}/pictures/{picture}", id = "readPicture", who = any, task = "browse",
    path(id: ProductId, picture: MediaId),
    parameters(size = SIZE "The longer side has 320 pixels (`small`), 800 (`medium`) or 1,600 (`large`)."),
    answers(307 = () "The picture has this URL now" [SignedUrl]), refuses(not_found))]
pub async fn redirect(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let (product, id) = names(request)?;
    let size = request.query_as::<PictureSize>("size")?;
    let read = read_by(app, picture::list(&product)?).await?;
    if read.product.is_none() {
        return Err(no_such_product());
    }
    let picture = read.pictures().iter().find(|picture| picture.object.id == id);
    let picture = picture.ok_or_else(|| Problem::not_found("picture"))?;
    let name = match size.filter(|size| picture.has(*size)) {
        Some(size) => MediaKind::Picture.copy(&product, &id, size),
        None => MediaKind::Picture.kept(&product, &id),
    };
    let (url, _) = uploads::reading_of(app, &name).await?;
    Ok(Response::redirect(url).kept_for(uploads::READING))
}

/// Add an uploaded picture, or change its description
///
/// Adds the picture, or replaces its description. The request can be repeated and needs no If-Match.
/// Without `alt` the picture has no description. The response comes when the smaller copies of a JPEG,
/// PNG or WebP picture exist. A picture in AVIF, a damaged one and one with a side of over 12,000
/// pixels have no copies, and `width` and `height` are null.
#[route(PUT "/v1/products/{id}/pictures/{picture}", id = "putPicture", who = staff, task = "media",
    path(id: ProductId, picture: MediaId), body = NewPicture,
    answers(
        200 = PictureView<'_> "The product had the picture already",
        201 = PictureView<'_> "The product has the picture now" [Location],
    ),
    refuses(
        not_found,
        not_uploaded = "this product has no upload with this id now",
        too_many_pictures = "the product has 20 already",
    ))]
pub async fn put(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (product, id) = names(request)?;
    let NewPicture { alt } = request.body()?;
    let (mut backoff, mut kept) = (Backoff::new(), None::<StoredUpload>);
    loop {
        let read = read(app, &product).await?;
        if !read.is_sold() {
            return Err(no_such_product());
        }
        let at = Instant::now();
        match read.known.as_ref().and_then(|known| Some((known, known.find(&id)?))) {
            Some((_, picture)) if picture.alt == alt => return shown(app, &product, picture, false).await,
            Some((known, _)) => {
                let describe = picture::describe(known, &id, alt.as_deref(), at)?;
                if let Ok(list) = app.services.table.update(&describe).await? {
                    let picture = list.find(&id).ok_or_else(|| Problem::internal("a picture is not in its list"))?;
                    return shown(app, &product, picture, false).await;
                }
            }
            None => {
                read.room()?;
                let StoredUpload { object, shape, note } = match kept.take() {
                    Some(kept) => kept,
                    None => uploads::keep(app, MediaKind::Picture, &product, id.clone()).await?,
                };
                let picture = Picture { object, alt: alt.clone(), shape, added_at: at };
                let add = picture::add(&picture, &note, read.known.as_ref(), at)?;
                let Err(refusals) = app.services.table.transact(&add).await? else {
                    return shown(app, &product, &picture, true).await;
                };
                // If the condition on the `UnsettledObject` fails, the janitor may have deleted the
                // object. Then the next attempt copies the upload again, unless the picture was
                // added meanwhile.
                let is_noted = !refusals.names(PictureAction::Object);
                kept = is_noted.then_some(StoredUpload { object: picture.object, shape: picture.shape, note });
            }
        }
        backoff.after_conflict().await?;
    }
}

/// Remove a picture
///
/// Removes the picture from the list at once, and deletes it within minutes. Until then, its URL
/// still works. The request can be repeated and needs no If-Match.
#[route(DELETE "/v1/products/{id}/pictures/{picture}", id = "deletePicture", who = staff, task = "media",
    path(id: ProductId, picture: MediaId),
    answers(204 = () "The product no longer has the picture"), refuses(not_found))]
pub async fn remove(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (product, id) = names(request)?;
    retry_on_conflict(async || {
        let read = read(app, &product).await?;
        if read.product.is_none() {
            return Err(no_such_product());
        }
        let Some(known) = read.known.filter(|known| known.find(&id).is_some()) else {
            return Ok(Some(Response::no_content()));
        };
        let at = Instant::now();
        let note = UnsettledObject::new(MediaKind::Picture, product.clone(), id.clone(), at);
        let remove = picture::remove(&known, &uploads::noted(app, note, at)?, at)?;
        Ok(app.services.table.transact(&remove).await?.ok().map(|()| Response::no_content()))
    })
    .await
}

pub struct Read {
    product: Option<Stored<Product>>,
    known: Option<Stored<ProductPictures>>,
}

impl Read {
    /// Returns whether the product is in the catalogue.
    pub fn is_sold(&self) -> bool {
        self.product.as_ref().is_some_and(|product| !product.retired)
    }

    pub fn room(&self) -> Result<(), Problem> {
        if self.pictures().len() < MAX_PICTURES {
            return Ok(());
        }
        Err(Problem::new(Code::TooManyPictures, format!("A product can have at most {MAX_PICTURES} pictures.")))
    }

    fn pictures(&self) -> &[Picture] {
        self.known.as_ref().map_or(&[], |known| &known.pictures)
    }
}

/// Reads a product and its pictures with strong consistency.
pub async fn read(app: &App, product: &ProductId) -> Result<Read, Problem> {
    read_by(app, picture::prepare(product)?).await
}

async fn read_by(app: &App, request: BatchGet<PicturesItem>) -> Result<Read, Problem> {
    let mut read = Read { product: None, known: None };
    for item in app.services.table.batch_get(&request).await?.into_iter().flatten() {
        match item {
            PicturesItem::Product(product) => read.product = Some(product),
            PicturesItem::ProductPictures(known) => read.known = Some(known),
        }
    }
    Ok(read)
}

async fn shown(app: &App, product: &ProductId, picture: &Picture, is_new: bool) -> Result<Response, Problem> {
    let by = uploads::reading(app, MediaKind::Picture, product, &picture.object.id).await?;
    let view = PictureView::new(product, picture, by);
    Ok(if is_new {
        Response::created(picture_location(product, &picture.object.id), &view)
    } else {
        Response::ok(&view)
    })
}

fn names(request: &Request<'_>) -> Result<(ProductId, MediaId), Problem> {
    Ok((request.path("id")?, request.path("picture")?))
}
