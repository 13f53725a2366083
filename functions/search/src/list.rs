//! The shared parts of both searches: pages of hits, and errors of the engine.

use std::collections::BTreeMap;

use http_api::{Code, PageRequest, Problem};
use key_schema::encoding::{decode, encode};
use search_index::{Hit, PageStart, SearchAfter, SearchError, SearchPage};

/// The engine's error type for an index that does not exist.
const NO_INDEX: &str = "index_not_found_exception";

/// Returns the position in the cursor: the sort values of the previous page's last hit, as JSON.
pub fn after(page: &PageRequest<'_>) -> Result<Option<SearchAfter>, Problem> {
    page.after().map(|part| position(&part).ok_or_else(invalid)).transpose()
}

/// Returns where a page of products begins. The cursor of a page of groups has the number of hits
/// before the next page.
pub fn start(page: &PageRequest<'_>) -> Result<PageStart, Problem> {
    let Some(part) = page.after() else { return Ok(PageStart::After(None)) };
    let group = part.parse().ok().map(PageStart::Group);
    group.or_else(|| position(&part).map(|after| PageStart::After(Some(after)))).ok_or_else(invalid)
}

fn position(part: &str) -> Option<SearchAfter> {
    serde_json::from_str(&decode(part)?).ok()
}

// Only the function `search` seals these cursors, so parsing fails only after a change of format.
fn invalid() -> Problem {
    Problem::new(Code::CursorInvalid, "The cursor is not valid for this list.")
}

/// Returns the number of hits to request: one more than the page, to detect a next page.
pub fn size(page: &PageRequest<'_>) -> u32 {
    u32::try_from(page.limit()).unwrap_or(u32::MAX).saturating_add(1)
}

/// The cursor positions after each hit of a page.
pub struct Ends {
    ends: Vec<String>,
    /// Whether more hits follow the page.
    more: bool,
}

impl Ends {
    /// Returns the position after the first `kept` hits, or `None` at the end of the list.
    pub fn behind(&self, kept: usize) -> Option<String> {
        let end = self.ends.get(kept.checked_sub(1)?)?;
        (self.more || kept < self.ends.len()).then(|| end.clone())
    }
}

/// Removes the hits beyond the page, and returns the offsets after the remaining hits. `from` is
/// the number of hits before the page.
pub fn cut_at<D>(found: &mut SearchPage<D>, page: &PageRequest<'_>, from: u32) -> Ends {
    let more = found.hits.len() > page.limit();
    found.hits.truncate(page.limit());
    let ends = (from.saturating_add(1)..).take(found.hits.len()).map(|end| end.to_string()).collect();
    Ends { ends, more }
}

/// Removes the hits beyond the page, and returns the positions after the remaining hits.
pub fn cut<D>(found: &mut SearchPage<D>, page: &PageRequest<'_>) -> Result<Ends, Problem> {
    let more = found.hits.len() > page.limit();
    found.hits.truncate(page.limit());
    let end = |hit: &Hit<D>| serde_json::to_string(&hit.sort).map(|json| encode(&json));
    let ends = found.hits.iter().map(end).collect::<Result<_, _>>().map_err(Problem::internal)?;
    Ok(Ends { ends, more })
}

/// Returns the engine's result. A missing index counts as empty, because no item was indexed yet.
pub fn found<D>(answer: Result<SearchPage<D>, SearchError>) -> Result<SearchPage<D>, Problem> {
    match answer {
        Ok(page) => Ok(page),
        Err(SearchError::Rejected { kind, .. }) if kind == NO_INDEX => {
            tracing::warn!("there is no index yet");
            Ok(SearchPage { hits: Vec::new(), total: 0, facets: BTreeMap::new() })
        }
        Err(error) => Err(failed(error)),
    }
}

/// Maps an error of the engine to the problem in the response.
pub fn failed(error: SearchError) -> Problem {
    if error.is_too_broad() {
        let broad = "The query parameter `q` matches too many different words. Use fewer or more exact words.";
        return Problem::new(Code::InvalidParameter, broad);
    }
    if error.is_retryable() { Problem::unavailable(error) } else { Problem::internal(error) }
}
