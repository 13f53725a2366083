//! Crash points: places where a crash matters, and the switch that lets the local system cause one.
//!
//! A function calls [`crash_point`] right after it has made something durable, while other work is
//! still to be done. The code around the call must survive a crash there. Deployed functions are
//! built without the feature `crash-points`, and the call does nothing. Only the local system has
//! the feature, and `/_local/faults` arms the points.

#[cfg(feature = "crash-points")]
mod clock;
#[cfg(feature = "crash-points")]
mod plan;

#[cfg(feature = "crash-points")]
pub use clock::{clock_step, step_clock};
#[cfg(feature = "crash-points")]
pub use plan::{FOLDER_VARIABLE, Plan, PlanError, arm, armed, disarm};

/// All crash points: the name, `<function or sink>.<action just done>`, and a text that says which
/// data is durable and which is not. `docs/crash-points.md` is generated from it.
pub const CRASH_POINTS: &[(&str, &str)] = &[
    ("catalog.move.advanced", "A phase of a category's move is over; the next one has not begun to work."),
    ("catalog.move.begun", "A category's move is begun; nothing of it is done, and its client has no answer."),
    ("catalog.move.cleared", "A category that has moved is gone from its old place; others are not."),
    ("catalog.move.copied", "A category has its successor and is marked; what lies below it does not."),
    ("catalog.move.placed", "Some products of a category that moves stand at the new place; the others do not."),
    ("catalog.move.transferred", "A product's memberships have moved; those of other products have not."),
    (
        "customers.belongings.erased",
        "Everything of a customer but the profile is erased; with the profile a repetition finds what came in between.",
    ),
    (
        "customers.profile.erased",
        "The profile is gone and the erasure is noted; what came in between and what the archive holds are still there.",
    ),
    ("fulfilment.admitted", "A waiting order has a picking station; the message of the queue is not yet answered."),
    ("fulfilment.waiting", "An order is on the list of those that wait for a station; none is admitted yet."),
    ("janitor.archive.emptied", "The archive holds nothing of an erased customer; the erasure's note is still there."),
    ("notifier.claimed", "The right to send a message is claimed; the message is not sent."),
    ("notifier.sent", "A message is sent; that it was is not recorded. The next attempt may send it again."),
    (
        "orders.moved",
        "An order has changed its status; its client has no answer, and the rest of a large order's stock is not back.",
    ),
    ("orders.placed", "An order is committed; its client has no answer."),
    ("orders.staged.begun", "The head of a large order and its claims are written; nothing is reserved."),
    ("orders.staged.given_back", "Some of a large order's stock is back; its client has no answer."),
    ("orders.staged.reserved", "Some or all lines of a large order are reserved; it is not committed."),
    ("orders.staged.undone", "Some lines of a large order that is not placed are undone; the others are not."),
    ("stream.audit.archived", "An expired item lies in the archive; its audit entry is not written."),
    ("stream.audit.recorded", "Archive object and audit entry are written; the batch is not answered."),
    ("stream.bus.marked", "An event is published and marked as such; the batch is not answered."),
    ("stream.bus.published", "An event is published; its mark is not written. The next attempt publishes it again."),
    ("stream.derived.applied", "A record's derived data is written; the batch is not answered."),
    ("stream.quarantine.kept", "A record is set aside; the batch is not answered."),
    ("stream.search.written", "The index has taken a batch; the batch is not answered."),
];

/// Aborts the process when the local system has armed the point `name`. In this build it does
/// nothing.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub fn crash_point(_name: &'static str) {}

/// Aborts the process when the local system has armed the point `name`.
#[cfg(feature = "crash-points")]
pub fn crash_point(name: &'static str) {
    if let Some(folder) = std::env::var_os(FOLDER_VARIABLE)
        && plan::strikes(std::path::Path::new(&folder), name)
    {
        // No destructor runs, no buffer is flushed and no response is sent, as in a machine
        // failure.
        std::process::abort();
    }
}
