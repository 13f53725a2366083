//! Work that takes several transactions, and survives an interruption between any two of them.
//!
//! A function begins the work. If the function is interrupted, the janitor completes or undoes the
//! work. The janitor finds orders, documents and customers through sparse indexes, and the category
//! move by its key. `key_schema` builds the transactions, and this crate sends them in order.
//!
//! | work | steps | after an interruption |
//! | --- | --- | --- |
//! | a large order, [`place`](staging::place) | begin, reserve lines (repeated), commit | [`undo`](staging::undo) gives the reserved lines back, and then removes the head |
//! | a cancelled or returned large order | new status, give back stock (repeated) | [`give_back`](staging::give_back) returns the rest |
//! | an order that was not paid in time | cancel, give back stock | [`lapse`](staging::lapse) cancels each order once |
//! | the deletion of a document, [`delete`](removal::delete) | mark, remove texts and versions (repeated), remove the head | [`go_on`](removal::go_on) continues |
//! | a discarded draft, [`discard`](removal::discard) | discard, remove texts (repeated) | [`go_on`](removal::go_on) continues |
//! | the erasure of a customer | mark, remove the customer's other items (repeated), remove the profile | [`go_on`](erasure::go_on) continues |
//! | a category that moves, [`Mover`](relocation::Mover) | copy, place, clear, settle, check | [`go_on`](relocation::Mover::go_on) continues in the recorded phase. No phase is undone |
//!
//! Two workers may do the same work at once. A step that must not run twice has a condition, for
//! example on the head of the order or on the item of the move. The condition refuses the step if
//! the other worker has already taken it.

pub mod erasure;
pub mod personal;
pub mod relocation;
pub mod removal;
pub mod staging;
