//! The list of a product's pictures. A client first uploads a picture ([`crate::uploads`]) and
//! then adds it to the list. A repeated PUT or DELETE of a picture changes nothing. So a write
//! needs no If-Match, and a client can repeat each request.
//!
//! A change reads the list with strong consistency. Its write has the condition that the list is
//! unchanged. If the write is refused, the function reads again.

use http_api::fields::text;
use http_api::{Code, Problem, Request, Response, read_fields};
use key_schema::id::{MediaId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::media::{MediaKind, UnsettledObject};
use key_schema::picture::PicturesItem;
use key_schema::picture::{self, MAX_PICTURES, Picture, PictureAction, ProductPictures};
use key_schema::product::Product;
use key_schema::request::BatchGet;
use table::{Backoff, retry_on_conflict};

use crate::App;
use crate::products::no_such_product;
use crate::uploads::{self, StoredUpload};
use crate::view::{PictureView, picture_location};

/// The longest description of a picture, in bytes of UTF-8.
const MAX_ALT: usize = 300;

/// GET products/{id}/pictures: lists the pictures with a URL for each. Computing a URL takes no
/// request to the bucket.
pub async fn list(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let id: ProductId = request.path("id")?;
    let read = read_by(app, picture::list(&id)?).await?;
    if !read.is_sold() {
        return Err(no_such_product());
    }
    let mut items = Vec::new();
    for picture in read.pictures() {
        let by = uploads::reading(app, MediaKind::Picture, &id, &picture.object.id).await?;
        items.push(PictureView::new(picture, by));
    }
    Ok(Response::all(&items).fresh_for(uploads::READING))
}

/// GET products/{id}/pictures/{picture}: redirects to the signed URL of a picture. So lists of
/// products need no signed URLs, which are long and expire. Earlier orders show the pictures of a
/// retired product.
pub async fn redirect(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    let (product, id) = names(request)?;
    let read = read_by(app, picture::list(&product)?).await?;
    if read.product.is_none() {
        return Err(no_such_product());
    }
    if !read.pictures().iter().any(|picture| picture.object.id == id) {
        return Err(Problem::not_found("picture"));
    }
    let (url, _) = uploads::reading(app, MediaKind::Picture, &product, &id).await?;
    Ok(Response::redirect(url).kept_for(uploads::READING))
}

/// PUT products/{id}/pictures/{picture}: adds a picture that was uploaded for the product, or
/// changes the description of a picture in the list.
pub async fn put(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let (product, id) = names(request)?;
    read_fields!(request.object()? => {
        alt: optional(text(1..=MAX_ALT)),
    });
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
                let StoredUpload { object, note } = match kept.take() {
                    Some(kept) => kept,
                    None => uploads::keep(app, MediaKind::Picture, &product, id.clone()).await?,
                };
                let picture = Picture { object, alt: alt.clone(), added_at: at };
                let add = picture::add(&picture, &note, read.known.as_ref(), at)?;
                let Err(refusals) = app.services.table.transact(&add).await? else {
                    return shown(app, &product, &picture, true).await;
                };
                // If the condition on the `UnsettledObject` fails, the janitor may have deleted the
                // object. Then the next attempt copies the upload again, unless the picture was
                // added meanwhile.
                let is_noted = !refusals.names(PictureAction::Object);
                kept = is_noted.then_some(StoredUpload { object: picture.object, note });
            }
        }
        backoff.after_conflict().await?;
    }
}

/// DELETE products/{id}/pictures/{picture}: removes a picture, even from a retired product. A
/// picture that is not in the list counts as removed.
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
    let view = PictureView::new(picture, by);
    Ok(if is_new {
        Response::created(picture_location(product, &picture.object.id), &view)
    } else {
        Response::ok(&view)
    })
}

fn names(request: &Request<'_>) -> Result<(ProductId, MediaId), Problem> {
    Ok((request.path("id")?, request.path("picture")?))
}
