//! Work that takes several transactions, and survives an interruption between any two of them.
//!
//! A function begins the work. If the function is interrupted, the janitor completes or undoes the
//! work, and the cashier completes payments. The janitor finds orders, documents and customers through
//! sparse indexes, and the category move by its key. `key_schema` builds the transactions. [`WORKFLOWS`] lists the workflows, each
//! declared as a table of steps, and the [`engine`] sends their transactions.

pub mod engine;
pub mod erasure;
pub mod old_stock;
pub mod payments;
pub mod personal;
pub mod relocation;
pub mod removal;
pub mod staging;
pub mod stock;
pub mod uses;

pub use engine::WorkflowError;

pub const WORKFLOWS: &[&engine::Workflow] = &[
    &staging::PlaceOrder::WORKFLOW,
    &staging::ReturnStock::WORKFLOW,
    &payments::SettlePayments::WORKFLOW,
    &removal::DeleteDocument::WORKFLOW,
    &removal::DiscardDraft::WORKFLOW,
    &erasure::EraseCustomer::WORKFLOW,
    &relocation::MoveCategory::WORKFLOW,
];
