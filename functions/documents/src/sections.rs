//! One section's text. While a draft is open it goes into the draft; without one it is published at once, as a version of its own.
//!
//! So whoever changes one section does one request, as they would expect, and whoever changes several so that nobody sees half of it opens a draft first.

use http_api::read::long_text;
use http_api::{Code, Problem, Request, Response, Store};
use key_schema::document::{self, MAX_SECTIONS, MAX_TEXT};
use key_schema::id::SectionName;

use crate::edit::asked;
use crate::view::HeadView;

/// PUT documents/{id}/sections/{name}: answers the document without its texts.
pub async fn put(store: &Store, request: &Request<'_>) -> Result<Response, Problem> {
    let name = request.signed_in().and_then(|_| request.path::<SectionName>("name"))?;
    let asked = asked(request)?;
    let mut body = request.object()?;
    let text = body.required("text", long_text(0..=MAX_TEXT));
    let text = body.finish(text)?;
    let open = asked.open(store).await?;
    let sections = open.document.draft.as_ref().map_or(&open.document.sections, |draft| &draft.sections);
    if sections.len() >= MAX_SECTIONS && !sections.contains_key(&name) {
        let full = Problem::new(Code::InvalidBody, format!("A document has at most {MAX_SECTIONS} sections."));
        return Err(open.refuse(full).await);
    }
    let (transaction, document) = document::put_section(open.edit(), &name, text)?;
    open.commit(Ok(transaction)).await?;
    Ok(Response::ok(&HeadView::new(&document, true)).etag(document.meta.version))
}
