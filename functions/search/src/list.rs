//! What both searches share: pages of hits, and an engine that may be away.

use std::collections::BTreeMap;

use http_api::{Code, Page, Problem};
use key_schema::encoding::{decode, encode};
use search_index::{Hit, SearchAfter, SearchError, SearchPage};

/// How the engine names an index that is not there.
const NO_INDEX: &str = "index_not_found_exception";

/// Where the page before ended, as the cursor has it: the sort values of its last hit, one key part of JSON.
pub fn after(page: &Page<'_>) -> Result<Option<SearchAfter>, Problem> {
    let read = |part: String| {
        let json = decode(&part)?;
        serde_json::from_str(&json).ok()
    };
    // It was sealed by us for this very list, so it can only fail after a change of its form.
    let invalid = || Problem::new(Code::CursorInvalid, "The cursor is not valid for this list.");
    page.after().map(|part| read(part).ok_or_else(invalid)).transpose()
}

/// How many hits to ask for: one more than the page has, which tells whether there is another page.
pub fn size(page: &Page<'_>) -> u32 {
    u32::try_from(page.limit()).unwrap_or(u32::MAX).saturating_add(1)
}

/// Where the list goes on behind each hit of a page.
pub struct Ends {
    ends: Vec<String>,
    /// More hits follow the page.
    more: bool,
}

impl Ends {
    /// Where the list goes on behind the first `kept` hits; `None` at its end.
    pub fn behind(&self, kept: usize) -> Option<String> {
        let end = self.ends.get(kept.checked_sub(1)?)?;
        (self.more || kept < self.ends.len()).then(|| end.clone())
    }
}

/// Cuts the hits to the page.
pub fn cut<D>(found: &mut SearchPage<D>, page: &Page<'_>) -> Result<Ends, Problem> {
    let more = found.hits.len() > page.limit();
    found.hits.truncate(page.limit());
    let end = |hit: &Hit<D>| serde_json::to_string(&hit.sort).map(|json| encode(&json));
    let ends = found.hits.iter().map(end).collect::<Result<_, _>>().map_err(Problem::internal)?;
    Ok(Ends { ends, more })
}

/// What the engine found. An index that was never made is an empty one: nothing was ever sold here.
pub fn found<D>(answer: Result<SearchPage<D>, SearchError>) -> Result<SearchPage<D>, Problem> {
    match answer {
        Ok(page) => Ok(page),
        Err(SearchError::Rejected { kind, .. }) if kind == NO_INDEX => {
            tracing::warn!("there is no index yet");
            Ok(SearchPage { hits: Vec::new(), total: 0, facets: BTreeMap::new() })
        }
        Err(error) if error.is_retryable() => Err(Problem::unavailable(error)),
        Err(error) => Err(Problem::internal(error)),
    }
}
