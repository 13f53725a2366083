//! Pages of a list: how many entries, from where on, and how the next page is asked for.

use key_schema::cursor::{Cursors, Scope};
use key_schema::instant::Instant;

use crate::problem::{Code, Problem};
use crate::request::Request;

/// Entries of a page when the request does not say.
pub const DEFAULT_LIMIT: usize = 20;
/// The most entries of a page.
pub const MAX_LIMIT: usize = 100;

/// A page that a request asks for.
#[derive(Debug)]
pub struct Page<'p> {
    limit: usize,
    after: Option<String>,
    cursors: &'p Cursors,
    scope: Scope<'p>,
}

impl<'p> Page<'p> {
    pub(crate) fn new(
        request: &'p Request<'_>,
        cursors: &'p Cursors,
        list: &'p str,
        parameters: &'p [(&'p str, &'p str)],
    ) -> Result<Self, Problem> {
        let limit = request.limit()?;
        let scope = Scope { list, parameters, caller: request.caller().key() };
        let open = |cursor: &str| {
            cursors.open(&scope, cursor, Instant::now()).map_err(|error| {
                Problem::new(Code::CursorInvalid, "The cursor is not valid for this list.").because(error)
            })
        };
        let after = request.query("cursor")?.map(open).transpose()?;
        Ok(Self { limit, after, cursors, scope })
    }

    /// How many entries it has at most, 1 to [`MAX_LIMIT`].
    #[must_use]
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// The sort key that the page before ended with; none for the first page.
    #[must_use]
    pub fn after(&self) -> Option<String> {
        self.after.clone()
    }

    /// The cursor of the next page, from the sort key that this one ended with; none when the list is at its end.
    ///
    /// # Errors
    /// 500 `internal` when the sort key cannot be sealed.
    pub fn next_cursor(&self, last: Option<&str>) -> Result<Option<String>, Problem> {
        last.map(|sort_key| self.cursors.seal(&self.scope, sort_key, Instant::now()).map_err(Problem::internal))
            .transpose()
    }
}

pub(crate) fn limit(given: Option<&str>) -> Result<usize, Problem> {
    let Some(text) = given else {
        return Ok(DEFAULT_LIMIT);
    };
    match text.parse::<usize>() {
        // `parse` would take a sign, and zeros in front.
        Ok(limit) if (1..=MAX_LIMIT).contains(&limit) && limit.to_string() == text => Ok(limit),
        _ => Err(Problem::new(Code::InvalidParameter, format!("The limit must be an integer from 1 to {MAX_LIMIT}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_from_1_to_100_and_20_when_left_out() {
        assert!(matches!(limit(None), Ok(20)));
        assert!(matches!(limit(Some("1")), Ok(1)));
        assert!(matches!(limit(Some("100")), Ok(100)));
        for bad in ["0", "101", "-1", "+5", "05", "", " 5", "5.0", "1e1", "99999999999999999999", "ten"] {
            assert!(matches!(limit(Some(bad)), Err(problem) if problem.code() == Code::InvalidParameter), "{bad}");
        }
    }
}
