//! Removes an erased customer's questions with their answers.

use key_schema::id::CustomerId;
use key_schema::question;
use table::{Budget, Table};

use crate::removal::RemovalError;

/// The questions per page.
const PAGE: usize = 25;

/// Erases the questions with their answers. The customer's copy of a question is removed last,
/// because an interrupted erasure finds the other items by it (see [`question`]).
pub(super) async fn erase(table: &Table, customer: &CustomerId, budget: &Budget<'_>) -> Result<(), RemovalError> {
    loop {
        // The loop always reads the first page, because erased questions are not read again.
        let page = table.query(&question::erasable(customer)?.limit(PAGE)).await?;
        let copies = || page.items.iter().map(|copy| &copy.data);
        budget.write(&question::erase(copies().map(|copy| &copy.id))?).await?;
        // The copy's count of answers may be too small, because another answer may have been added
        // before the question was erased. So this reads the answers.
        for copy in copies() {
            let answers = table.query(&question::answers(&copy.id)?).await?;
            budget.write(&question::erase_answers(answers.items.iter().map(|answer| &answer.data))?).await?;
        }
        budget.write(&question::erase_copies(copies())?).await?;
        if page.next.is_none() {
            return Ok(());
        }
    }
}
