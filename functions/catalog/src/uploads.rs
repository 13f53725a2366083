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

use http_api::fields::{exact_text, integer, one_of};
use http_api::json::Value;
use http_api::{Code, Invalid, Problem, Request, Response, read_fields};
use key_schema::id::{MediaId, ProductId};
use key_schema::instant::Instant;
use key_schema::item::Stored;
use key_schema::media::{self as notes, MediaKind, MediaObject, UnsettledObject};
use storage::media::{Expected, MediaError, Reading};
use table::retry_on_conflict;

use crate::App;
use crate::pictures;
use crate::products::no_such_product;
use crate::view::{UploadView, picture_location, upload_location};

/// The largest picture: 10 MiB.
const MAX_PICTURE: u64 = 10 << 20;
/// The largest text: 5 MiB.
const MAX_CONTENT: u64 = 5 << 20;
/// Media types that browsers display but do not execute.
const PICTURES: &[&str] = &["image/avif", "image/jpeg", "image/png", "image/webp"];
const TEXTS: &[&str] = &["text/markdown", "text/plain"];

/// Returns the accepted media types of a kind, and the maximum size in bytes.
const fn accepted_types(kind: MediaKind) -> (&'static [&'static str], u64) {
    match kind {
        MediaKind::Picture => (PICTURES, MAX_PICTURE),
        MediaKind::Content => (TEXTS, MAX_CONTENT),
    }
}

/// POST products/{id}/pictures and products/{id}/content/uploads: returns the request that the
/// client must send to upload, and its expiry.
pub async fn permit(app: &App, request: &Request<'_>, kind: MediaKind) -> Result<Response, Problem> {
    request.staff()?;
    let product: ProductId = request.path("id")?;
    let (types, most) = accepted_types(kind);
    read_fields!(request.object()? => {
        content_type: required(one_of::<String>(types)),
        bytes: required(integer(1..=most)),
        sha256: optional(sha256),
    });
    let read = pictures::read(app, &product).await?;
    if !read.is_sold() {
        return Err(no_such_product());
    }
    if kind == MediaKind::Picture {
        read.room()?;
    }
    let at = Instant::now();
    let id = MediaId::generate(at, app.services.random()?);
    let expected = Expected { content_type: &content_type, bytes, sha256: sha256.as_deref() };
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
    Ok(StoredUpload { object, note })
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
    let reading = app.media.reading(&kind.kept(product, id), system(Instant::now())).await.map_err(failed)?;
    let Reading { url, expires_at } = reading;
    Ok((url, instant(expires_at)))
}

/// Reads the base64 of 32 bytes.
fn sha256(value: Value<'_>) -> Result<String, Invalid> {
    let sum = exact_text(44..=44)(value)?;
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    match sum.strip_suffix('=') {
        Some(digits) if digits.bytes().all(is_digit) => Ok(sum),
        _ => Err(Invalid::new("must be the base64 of a SHA-256")),
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
