//! Crash points: named points in the code where the local system can make a function crash.
//!
//! A function calls [`crash_point`] right after a durable write, while other work is still to be
//! done. A crash at such a point must lose no work, and must not repeat the effect of a write.
//! Deployed functions are built without the feature `crash-points`, so their calls do nothing. Only
//! the local system has the feature, and `/_local/faults` arms the points.

#[cfg(feature = "crash-points")]
mod clock;
#[cfg(feature = "crash-points")]
mod plan;

#[cfg(feature = "crash-points")]
pub use clock::{clock_step, step_clock};
#[cfg(feature = "crash-points")]
pub use plan::{FOLDER_VARIABLE, Plan, PlanError, arm, armed, disarm};

/// All crash points. Each has a name, `<function or sink>.<action just done>`, and a text about the
/// data that is durable at that point and the data that is not. `docs/crash-points.md` is generated
/// from this list.
pub const CRASH_POINTS: &[(&str, &str)] = &[
    ("catalog.move.advanced", "A phase of a category move has ended. The next phase has not begun."),
    ("catalog.move.begun", "A category move has begun. Nothing has moved yet, and the client has no response."),
    (
        "catalog.move.cleared",
        "A category that has moved is removed from its old path. Other moved categories still exist at their old \
         paths.",
    ),
    (
        "catalog.move.copied",
        "A category has its successor and is marked. The categories below it have no successors yet.",
    ),
    ("catalog.move.placed", "Some products of a moving category are in the new category. The other products are not."),
    ("catalog.move.transferred", "A product's memberships have moved. The memberships of other products have not."),
    (
        "catalog.stock.resharded",
        "A stock has another number of shards. Their pieces are not level. The client has no response.",
    ),
    (
        "checkouts.placed",
        "A checkout of an agent has its order. The order is not paid, and the client has no response.",
    ),
    ("courier.sent", "A webhook was sent. The table does not record it yet, so it is sent again after a minute."),
    (
        "customers.belongings.erased",
        "Everything of a customer except the profile is erased. A retry erases items that were added \
         during the erasure, and then the profile.",
    ),
    (
        "customers.erasure.begun",
        "A customer's profile is marked, so the table refuses transactions that need the customer. Nothing is \
         erased yet.",
    ),
    (
        "customers.profile.erased",
        "The profile is erased, and an `Erasure` is written. Archived items and items that were added during \
         the erasure still exist.",
    ),
    (
        "documents.draft.discarded",
        "A draft is discarded, so no caller sees it. Its texts are not removed. The client has no response.",
    ),
    ("documents.draft.removed", "Some or all texts of a discarded draft are removed. The client has no response."),
    ("documents.retired", "A document is marked as deleted, so no caller sees it. Nothing is removed yet."),
    ("documents.texts.removed", "Some texts of a deleted document are removed. Their versions still exist."),
    (
        "fulfilment.admitted",
        "A waiting order has a picking station. The function has not answered the queue's message.",
    ),
    (
        "fulfilment.waiting",
        "An order is in the waiting list for a station. The function has not admitted any order yet.",
    ),
    ("janitor.archive.emptied", "The archive no longer has items of an erased customer. The `Erasure` still exists."),
    ("notifier.claimed", "The right to send a message is claimed. The message is not sent."),
    ("notifier.sent", "A message is sent, and the table does not record it yet. The next attempt may send it again."),
    (
        "orders.lapsed",
        "An order that was not paid in time is cancelled. The rest of a large order's stock is not returned.",
    ),
    (
        "orders.moved",
        "An order has its new status. The client has no response, and the rest of a large order's stock is not \
         returned.",
    ),
    ("orders.placed", "An order is committed. The client has no response."),
    ("orders.staged.begun", "The head of a large order and its claims are written. No line is reserved."),
    ("orders.staged.given_back", "Some of a large order's stock is returned. The client has no response."),
    ("orders.staged.reserved", "Some or all lines of a large order are reserved. The order is not committed."),
    ("orders.staged.undone", "Some lines of a large order that was not placed are undone. The other lines are not."),
    (
        "payments.begun",
        "An operation of a payment is written. The payment provider has no call of it yet, and the client no response.",
    ),
    ("payments.called", "The payment provider has answered a call. The table does not have the result yet."),
    ("payments.recorded", "The result of a call of the payment provider is written. The client has no response."),
    (
        "payments.refreshed",
        "The provider's present state of a payment is written. The function has not answered the message.",
    ),
    ("stream.audit.archived", "An expired item is in the archive. Its audit entry is not written."),
    ("stream.audit.recorded", "Archive object and audit entry are written. The function has not answered the batch."),
    ("stream.bus.marked", "An event is published, and its mark is written. The function has not answered the batch."),
    (
        "stream.bus.published",
        "An event is published, and its mark is not written. The next attempt publishes it again.",
    ),
    ("stream.derived.applied", "A record's derived data is written. The function has not answered the batch."),
    ("stream.quarantine.kept", "A record is in the quarantine. The function has not answered the batch."),
    ("stream.search.written", "The search index has taken a batch. The function has not answered the batch."),
];

/// Does nothing, because this build has no feature `crash-points`.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn crash_point(_name: &'static str) {}

/// Aborts the process when the local system has armed the point `name` and its plan selects this
/// pass.
#[cfg(feature = "crash-points")]
pub fn crash_point(name: &'static str) {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE)
        && plan::must_crash(std::path::Path::new(&folder), name)
    {
        // No destructor runs, no buffer is flushed and no response is sent, as in a machine
        // failure.
        std::process::abort();
    }
}
