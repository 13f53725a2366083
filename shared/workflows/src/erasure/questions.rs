//! Removes an erased customer's questions with their answers.

use key_schema::id::CustomerId;
use key_schema::instant::Instant;
use key_schema::question;
use table::{Budget, Table};

use crate::removal::RemovalError;

const PAGE: usize = 25;

/// Erases the questions with their answers. The customer's copy of a question is removed last,
/// because a repeated erasure finds the other items through this copy (see [`question`]).
pub(super) async fn erase(
    table: &Table,
    customer: &CustomerId,
    until: Instant,
    budget: &Budget<'_>,
) -> Result<(), RemovalError> {
    let mut after = None;
    loop {
        let page = table.query(&question::erasable(customer)?.limit(PAGE).after(after)).await?;
        let copies = || page.items.iter().filter(|copy| copy.meta.created_at < until).map(|copy| &copy.data);
        budget.write(&question::erase(copies().map(|copy| &copy.id))?).await?;
        // The copy's count of answers may be too small, because another answer may have been added
        // before the question was erased. So the loop reads the answers themselves.
        for copy in copies() {
            let answers = table.query(&question::answers(&copy.id)?).await?;
            budget.write(&question::erase_answers(answers.items.iter().map(|answer| &answer.data))?).await?;
        }
        budget.write(&question::erase_copies(copies())?).await?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}
