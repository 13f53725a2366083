use http_api::url::location;
use http_api::{Code, Precondition, Problem, Request, Response, Services};
use key_schema::settings::{self, Known};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::body::{self, Wanted};

/// GET /v1/settings: returns the public values, at most [`http_api::SETTINGS_MAX_AGE`] old. The
/// response tells caches how much of that time remains.
pub async fn public(services: &Services) -> Result<Response, Problem> {
    let (known, rest) = services.settings.current(&services.table).await?;
    let values = stored(&known.values)?;
    Ok(Response::ok(&PublicView { values, version: known.version }).etag(known.version).fresh_for(rest))
}

/// GET /v1/settings/private: returns all current values. For a change, staff need the version of
/// these values.
pub async fn whole(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    show(&*services.settings.latest(&services.table).await?)
}

/// PUT /v1/settings: replaces the settings. Settings that were never set have version 0 and accept
/// `If-None-Match: *` or `If-Match: "0"`.
pub async fn put(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    request.staff()?;
    let precondition = request.precondition()?;
    let Wanted { values, private } = body::read(request)?;
    let at = services.settings.now();
    let (before, transaction) = match precondition {
        Precondition::Version(version) if version > 0 || !is_first(request) => {
            (version, settings::change(&values, &private, version, at)?)
        }
        Precondition::Absent | Precondition::Version(_) => {
            (0, settings::create(&values, &private, &services.born(at)?, at)?)
        }
    };
    let written = services.table.transact(&transaction).await;
    if !matches!(written, Ok(Ok(()))) {
        // Another request has changed the settings, or the outcome of this write is unknown. Either
        // way the cache may be outdated.
        services.settings.forget();
    }
    written?.map_err(|_| match precondition {
        Precondition::Absent => {
            Problem::new(Code::AlreadyExists, "The settings exist already. Change them with If-Match.").location(here())
        }
        Precondition::Version(_) => Problem::version_mismatch(),
    })?;
    // The cache also holds the layouts of the lists. The request does not have them, so the
    // function reads the settings again.
    if services.settings.latest(&services.table).await.is_err() {
        services.settings.forget();
    }
    let known = Known { version: before + 1, values, private, ..Known::default() };
    match precondition {
        Precondition::Absent => Ok(Response::created(here(), &view(&known)?).etag(known.version)),
        Precondition::Version(_) => show(&known),
    }
}

/// Returns whether the client sent exactly the tag of version 0. Unknown tags are also parsed as 0.
fn is_first(request: &Request<'_>) -> bool {
    request.header("if-match") == Some("\"0\"")
}

fn show(known: &Known) -> Result<Response, Problem> {
    Ok(Response::ok(&view(known)?).etag(known.version))
}

fn view(known: &Known) -> Result<SettingsView<'_>, Problem> {
    Ok(SettingsView { values: stored(&known.values)?, private: stored(&known.private)?, version: known.version })
}

/// Returns stored values as JSON: the text of an object.
fn stored(text: &str) -> Result<&RawValue, Problem> {
    serde_json::from_str(text).map_err(Problem::internal)
}

fn here() -> String {
    location(&["settings"])
}

#[derive(Serialize)]
struct PublicView<'a> {
    values: &'a RawValue,
    version: u64,
}

#[derive(Serialize)]
struct SettingsView<'a> {
    values: &'a RawValue,
    private: &'a RawValue,
    version: u64,
}
