//! What is under way, so that somebody can wait for it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::Journal;

/// The events that are on their way and the messages that wait, each until its last consequence is over:
/// a target has taken it, its function has finished it, or a dead-letter queue has it.
#[derive(Debug, Clone)]
pub struct Pending(watch::Sender<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// The numbers of what is under way.
    numbers: BTreeSet<u64>,
}

/// Something under way, until its last clone is finished or dropped: whoever hands it on hands this on with it, so
/// that what follows from it is waited for like itself.
///
/// To drop one is to abandon it, as happens when a system ends: nobody waits for it any more, but a journal keeps
/// what it was about, to be done again.
#[derive(Debug)]
pub struct Work {
    ticket: Arc<Ticket>,
    finished: bool,
}

#[derive(Debug)]
struct Ticket {
    number: u64,
    open: watch::Sender<Open>,
    /// Where it is noted by which id, once all of it is finished.
    journal: Option<(Arc<Journal>, String)>,
    abandoned: AtomicBool,
}

impl Default for Pending {
    fn default() -> Self {
        Self(watch::Sender::new(Open::default()))
    }
}

impl Pending {
    /// Something begins.
    #[must_use]
    pub fn begin(&self) -> Work {
        self.open(None)
    }

    /// Something begins that a journal keeps under this id until it is finished.
    #[must_use]
    pub fn begin_kept(&self, journal: &Arc<Journal>, id: &str) -> Work {
        self.open(Some((Arc::clone(journal), id.to_owned())))
    }

    fn open(&self, journal: Option<(Arc<Journal>, String)>) -> Work {
        let mut number = 0;
        self.0.send_modify(|open| {
            number = open.next;
            open.next += 1;
            open.numbers.insert(number);
        });
        let ticket = Ticket { number, open: self.0.clone(), journal, abandoned: AtomicBool::new(false) };
        Work { ticket: Arc::new(ticket), finished: false }
    }

    /// How much is under way.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.borrow().numbers.len()
    }

    /// Waits until everything that began before the call is over.
    pub async fn settled(&self) {
        let end = self.0.borrow().next;
        // The sender is part of this value: it cannot be gone.
        let _ = self.0.subscribe().wait_for(|open| open.numbers.first().is_none_or(|&first| first >= end)).await;
    }
}

impl Work {
    /// This part of it is over.
    pub fn finish(mut self) {
        self.finished = true;
    }
}

impl Clone for Work {
    fn clone(&self) -> Self {
        Self { ticket: Arc::clone(&self.ticket), finished: false }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if !self.finished {
            self.ticket.abandoned.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some((journal, id)) = &self.journal
            && !*self.abandoned.get_mut()
        {
            journal.settle(id);
        }
        self.open.send_modify(|open| {
            open.numbers.remove(&self.number);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn what_began_before_is_waited_for_with_what_follows_from_it_and_nothing_else_is() {
        let pending = Pending::default();
        let (first, second) = (pending.begin(), pending.begin());
        let mut settled = Box::pin(pending.settled());
        assert!((&mut settled).now_or_never().is_none());
        let (later, handed_on) = (pending.begin(), first.clone());
        drop((first, second));
        assert!((&mut settled).now_or_never().is_none());
        drop(handed_on);
        assert!(settled.now_or_never().is_some());
        assert_eq!(pending.count(), 1);
        drop(later);
        assert!(pending.settled().now_or_never().is_some());
    }
}
