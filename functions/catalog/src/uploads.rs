//! Uploads: a client sends large data to the bucket by a URL that is valid only for one object. A
//! second request then puts the upload into use.
//!
//! The function can permit an upload without a write to the table. It signs a request for the
//! client, and this request contains the permitted name, type, size and expiry. Later the bucket
//! reports the uploaded object's type and size.
//!
//! An [`UnsettledObject`] is an item about an object that possibly no other item references. The
//! janitor finds unused objects by these items. [`key_schema::media`] explains why the janitor
//! deletes every unused object and no object in use.

use std::time::{Duration, SystemTime};

use futures::future::try_join_all;
use http_api::contract::rules::{Named, exact_text, integer, named, one_of};
use http_api::contract::{Body, Context, Node, Rule, RuleSchema, Schemas, route};
use http_api::json::Value;
use http_api::{Code, Invalid, Problem, Request, Response};
use key_schema::id::{MediaId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::media::{self as notes, MediaKind, MediaObject, UnsettledObject};
use key_schema::picture::Shape;
use storage::media::{Expected, MediaError, Reading};
use table::retry_on_conflict;

use crate::App;
use crate::pictures;
use crate::products::no_such_product;
use crate::sizes;
use crate::view::{PICTURE_BYTES, PICTURE_TYPES, UploadView, picture_location, upload_location};

/// The largest picture: 10 MiB.
pub const MAX_PICTURE: u64 = 10 << 20;
/// The largest text: 5 MiB.
const MAX_CONTENT: u64 = 5 << 20;
/// Media types that browsers display but do not execute.
pub const PICTURES: &[&str] = &["image/avif", "image/jpeg", "image/png", "image/webp"];
const TEXTS: &[&str] = &["text/markdown", "text/plain"];

/// Returns the accepted media types of a kind, and the maximum size in bytes.
const fn accepted_types(kind: MediaKind) -> (&'static [&'static str], u64) {
    match kind {
        MediaKind::Picture => (PICTURES, MAX_PICTURE),
        MediaKind::Content => (TEXTS, MAX_CONTENT),
    }
}

const SHA_256: Named<Sha256> = named("Sha256", "The base64 of the upload's SHA-256, which S3 verifies.", Sha256);

#[derive(Body)]
struct NewPictureUpload {
    #[field(rule = PICTURE_TYPES, example = "image/webp")]
    content_type: String,
    /// The exact size of the upload in bytes.
    #[field(rule = PICTURE_BYTES, example = 482113)]
    bytes: u64,
    #[field(rule = SHA_256, left_out)]
    sha256: Option<String>,
}

#[derive(Body)]
struct NewTextUpload {
    #[field(rule = one_of(TEXTS), example = "text/markdown")]
    content_type: String,
    /// The exact size of the upload in bytes.
    #[field(rule = integer(1..=MAX_CONTENT), example = 4500000)]
    bytes: u64,
    #[field(rule = SHA_256, left_out)]
    sha256: Option<String>,
}

/// Request an upload of a picture
///
/// Permits the upload of a picture of up to 10 MB. Within 15 minutes, send the request that `upload`
/// describes. The upload must have the described headers, and exactly the requested size and type.
/// Any other upload is refused. Then add the picture with a `PUT` to the URL in Location. An upload
/// without this `PUT` is deleted after a day.
#[route(POST "/v1/products/{id}/pictures", id = "uploadPicture", who = staff, task = "media", path(id: ProductId),
    body = NewPictureUpload, answers(201 = UploadView<'_> "The permitted upload" [Location]),
    refuses(not_found, too_many_pictures = "the product has 20 already"))]
pub async fn picture(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let product: ProductId = request.path("id")?;
    let NewPictureUpload { content_type, bytes, sha256 } = request.body()?;
    permit(app, MediaKind::Picture, product, Expected { content_type: &content_type, bytes, sha256: sha256.as_deref() })
        .await
}

/// Request an upload of a long description
///
/// Permits the upload of a text of up to 5 MB. Within 15 minutes, send the request that `upload`
/// describes. Then send a `PUT` to the URL in Location. An upload without this `PUT` is deleted after
/// a day.
#[route(POST "/v1/products/{id}/content/uploads", id = "uploadContent", who = staff, task = "media",
    path(id: ProductId),
    body = NewTextUpload, answers(201 = UploadView<'_> "The permitted upload" [Location]), refuses(not_found))]
pub async fn text(app: &App, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let product: ProductId = request.path("id")?;
    let NewTextUpload { content_type, bytes, sha256 } = request.body()?;
    permit(app, MediaKind::Content, product, Expected { content_type: &content_type, bytes, sha256: sha256.as_deref() })
        .await
}

/// Returns the request that the client must send to upload, and its expiry.
async fn permit(app: &App, kind: MediaKind, product: ProductId, expected: Expected<'_>) -> Result<Response, Problem> {
    let read = pictures::read(app, &product).await?;
    if !read.is_sold() {
        return Err(no_such_product());
    }
    if kind == MediaKind::Picture {
        read.room()?;
    }
    let at = Instant::now();
    let id = MediaId::generate(at, app.services.random()?);
    let (content_type, bytes) = (expected.content_type.to_owned(), expected.bytes);
    let upload = app.media.upload(&kind.pending(&product, &id), expected, system(at)).await.map_err(failed)?;
    let location = match kind {
        MediaKind::Picture => picture_location(&product, &id),
        MediaKind::Content => upload_location(&product, &id),
    };
    let object = MediaObject { id, content_type, bytes };
    let view = UploadView::new(&object, &upload, instant(upload.expires_at));
    Ok(Response::created(location, &view))
}

/// An upload that was copied to its permanent name, with its [`UnsettledObject`]. No other item
/// references the object yet.
pub struct StoredUpload {
    pub object: MediaObject,
    /// The dimensions of a picture, whose smaller copies were written, too.
    pub shape: Option<Shape>,
    pub note: Stored<UnsettledObject>,
}

/// Writes the [`UnsettledObject`] of an upload, and copies the upload to its permanent name. Then
/// the caller must write the item that references the object. Otherwise the janitor deletes the
/// object.
pub async fn keep(app: &App, kind: MediaKind, product: &ProductId, id: MediaId) -> Result<StoredUpload, Problem> {
    let pending = kind.pending(product, &id);
    let (types, most) = accepted_types(kind);
    let described = app.media.describe(&pending).await.map_err(failed)?;
    let described = described.filter(|it| types.contains(&it.content_type.as_str()) && (1..=most).contains(&it.bytes));
    let described = described.ok_or_else(not_uploaded)?;
    let note = retry_on_conflict(async || {
        let at = Instant::now();
        let note = noted(app, UnsettledObject::new(kind, product.clone(), id.clone(), at), at)?;
        // A refusal means that the janitor is deleting the object of an earlier attempt.
        Ok::<_, Problem>(app.services.table.write(&notes::note(&note)?).await?.ok().map(|()| note))
    })
    .await?;
    if !app.media.copy(&pending, &kind.kept(product, &id)).await.map_err(failed)? {
        return Err(not_uploaded());
    }
    let object = MediaObject { id, content_type: described.content_type, bytes: described.bytes };
    let shape = if kind == MediaKind::Picture { shape(app, product, &object).await? } else { None };
    Ok(StoredUpload { object, shape, note })
}

/// Writes the smaller copies of a kept picture, and returns its dimensions. A picture that cannot be
/// decoded has neither.
async fn shape(app: &App, product: &ProductId, object: &MediaObject) -> Result<Option<Shape>, Problem> {
    let kind = MediaKind::Picture;
    let most = usize::try_from(MAX_PICTURE).unwrap_or(usize::MAX);
    let read = app.media.read(&kind.kept(product, &object.id), most).await.map_err(failed)?;
    let bytes = read.ok_or_else(not_uploaded)?;
    let content_type = object.content_type.clone();
    let resized = tokio::task::spawn_blocking(move || sizes::resize(&content_type, &bytes)).await;
    let resized = match resized.map_err(Problem::internal)? {
        Some(Ok(resized)) => resized,
        Some(Err(error)) => {
            tracing::warn!(product = %product, picture = %object.id, %error, "a picture has no smaller copies");
            return Ok(None);
        }
        None => return Ok(None),
    };
    let writes = resized.files.into_iter().map(|file| async move {
        app.media.write(&kind.copy(product, &object.id, file.size), file.content_type, file.bytes).await
    });
    try_join_all(writes).await.map_err(failed)?;
    Ok(Some(resized.shape))
}

pub fn noted(app: &App, note: UnsettledObject, at: Instant) -> Result<Stored<UnsettledObject>, Problem> {
    Ok(Stored::new(note, app.services.born(at)?, at))
}

/// The time for which caches may keep the signed URL of an object. The URL is valid for more than
/// twice this time.
pub const READING: Duration = Duration::from_secs(15 * 60);

/// Returns the URL by which a client reads an object in use, and the URL's expiry.
pub async fn reading(
    app: &App,
    kind: MediaKind,
    product: &ProductId,
    id: &MediaId,
) -> Result<(String, Instant), Problem> {
    reading_of(app, &kind.kept(product, id)).await
}

/// Returns the URL by which a client reads a kept object, and the URL's expiry.
pub async fn reading_of(app: &App, name: &str) -> Result<(String, Instant), Problem> {
    let Reading { url, expires_at } = app.media.reading(name, system(Instant::now())).await.map_err(failed)?;
    Ok((url, instant(expires_at)))
}

/// The base64 of 32 bytes.
struct Sha256;

impl Rule<String> for Sha256 {
    fn read(&self, value: Value<'_>, context: &Context<'_>) -> Result<String, Invalid> {
        let sum: String = exact_text(44..=44).read(value, context)?;
        let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
        match sum.strip_suffix('=') {
            Some(digits) if digits.bytes().all(is_digit) => Ok(sum),
            _ => Err(Invalid::new("must be the base64 of a SHA-256")),
        }
    }
}

impl RuleSchema for Sha256 {
    fn schema(&self, _: &mut Schemas) -> Node {
        Node::map([("type", "string".into()), ("pattern", "^[A-Za-z0-9+/]{43}=$".into())])
    }
}

fn not_uploaded() -> Problem {
    Problem::new(Code::NotUploaded, "There is no such upload for this product, or it has expired.")
}

fn failed(error: MediaError) -> Problem {
    match error {
        MediaError::Unavailable(_) => Problem::unavailable(error),
        MediaError::Refused(_) | MediaError::Signing(_) => Problem::internal(error),
    }
}

fn system(at: Instant) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.as_millis()).unwrap_or_default())
}

fn instant(at: SystemTime) -> Instant {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).ok().and_then(Instant::from_millis).unwrap_or(Instant::MAX)
}
