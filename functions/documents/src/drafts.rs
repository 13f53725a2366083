//! Drafts: the next version, which readers cannot see until one write publishes it.

use http_api::fields::text;
use http_api::{Code, Problem, Request, Response, Services, read_fields};
use key_schema::document;
use key_schema::document::Draft;

use crate::access::Standing;
use crate::edit::{Open, asked};
use crate::view::{HeadView, MAX_NOTE, version_location};

/// POST documents/{id}/drafts: begins a draft.
pub async fn begin(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = asked(request, Standing::Writer)?;
    let open = asked.open(services).await?;
    if open.document.draft.is_some() {
        let problem = Problem::new(Code::DraftOpen, "The document already has a draft. Publish or delete it first.");
        return Err(open.refuse(problem).await);
    }
    let (transaction, document) = document::begin_draft(open.edit())?;
    open.commit(Ok(transaction)).await?;
    let location = version_location(&document.id, document.next());
    Ok(Response::created(location, &HeadView::new(&document, true)).etag(document.meta.version))
}

/// DELETE documents/{id}/drafts: discards the draft with its texts.
pub async fn discard(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = asked(request, Standing::Writer)?;
    let open = asked.open(services).await?;
    let draft = draft_of(&open).await?;
    open.commit(document::discard_draft(open.edit(), &draft)).await?;
    Ok(Response::no_content())
}

/// POST documents/{id}/publish: publishes the draft as the current version.
pub async fn publish(services: &Services, request: &Request<'_>) -> Result<Response, Problem> {
    let asked = asked(request, Standing::Writer)?;
    read_fields!(request.object()? => {
        note: optional(text(1..=MAX_NOTE)),
    });
    let open = asked.open(services).await?;
    let draft = draft_of(&open).await?;
    let (transaction, document) = document::publish(open.edit(), &draft, note)?;
    open.commit(Ok(transaction)).await?;
    Ok(Response::ok(&HeadView::new(&document, true)).etag(document.meta.version))
}

async fn draft_of(open: &Open<'_>) -> Result<Draft, Problem> {
    match &open.document.draft {
        Some(draft) => Ok(draft.clone()),
        None => {
            Err(open.refuse(Problem::new(Code::DraftMissing, "The document has no draft. Create one first.")).await)
        }
    }
}
