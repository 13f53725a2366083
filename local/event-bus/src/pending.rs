use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::Journal;

/// The work in progress: events in delivery and messages in queues. Work ends when the function
/// behind each target has finished the event, or when the event is in a dead-letter queue.
#[derive(Debug, Clone)]
pub struct Pending(watch::Sender<Open>);

#[derive(Debug, Default)]
struct Open {
    next: u64,
    numbers: BTreeSet<u64>,
}

/// A piece of work in progress. It ends when its last clone is finished or dropped. Follow-up work
/// has a clone, so [`Pending::settled`] waits for it, too.
///
/// Dropping a clone without [`Work::finish`] abandons the work, as when a system ends. Then no
/// caller waits for the work any more. If a journal stores the work, the next start repeats it.
#[derive(Debug)]
pub struct Work {
    ticket: Arc<Ticket>,
    finished: bool,
}

#[derive(Debug)]
struct Ticket {
    number: u64,
    open: watch::Sender<Open>,
    /// The journal and the work's id in it. The journal settles the id when all of the work is
    /// finished.
    journal: Option<(Arc<Journal>, String)>,
    abandoned: AtomicBool,
}

impl Default for Pending {
    fn default() -> Self {
        Self(watch::Sender::new(Open::default()))
    }
}

impl Pending {
    #[must_use]
    pub fn begin(&self) -> Work {
        self.open(None)
    }

    /// Begins a piece of work that a journal stores under this id until the work is finished.
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

    #[must_use]
    pub fn count(&self) -> usize {
        self.0.borrow().numbers.len()
    }

    /// Waits for the end of all work that began before the call.
    pub async fn settled(&self) {
        let end = self.0.borrow().next;
        // This value holds the sender, so waiting cannot fail.
        let _ = self.0.subscribe().wait_for(|open| open.numbers.first().is_none_or(|&first| first >= end)).await;
    }
}

impl Work {
    /// Finishes the part of the work that this clone represents.
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
    fn settled_waits_only_for_earlier_work_and_its_follow_up_work() {
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
