use std::collections::VecDeque;

use crate::SequenceNumber;

/// Tracks the settled records of a shard. Lanes may settle records out of order. The position
/// advances to a record only when this record and all earlier records are settled.
#[derive(Debug, Default)]
pub(crate) struct Checkpoint {
    /// Number of the first entry in `entries`. All entries since the start have consecutive numbers
    /// from 0, in the order of the shard.
    first: u64,
    entries: VecDeque<(SequenceNumber, bool)>,
    position: Option<SequenceNumber>,
    unsettled: usize,
}

impl Checkpoint {
    /// Adds the next record of the shard and returns its number.
    pub(crate) fn push(&mut self, sequence: SequenceNumber, settled: bool) -> u64 {
        let number = self.end();
        self.entries.push_back((sequence, settled));
        if settled {
            self.advance();
        } else {
            self.unsettled += 1;
        }
        number
    }

    /// Marks a record as settled. A second call has no effect.
    pub(crate) fn settle(&mut self, number: u64) {
        let entry = number
            .checked_sub(self.first)
            .and_then(|index| usize::try_from(index).ok())
            .and_then(|index| self.entries.get_mut(index));
        if let Some((_, settled @ false)) = entry {
            *settled = true;
            self.unsettled -= 1;
            self.advance();
        }
    }

    fn advance(&mut self) {
        while self.entries.front().is_some_and(|(_, settled)| *settled) {
            if let Some((sequence, _)) = self.entries.pop_front() {
                self.position = Some(sequence);
                self.first += 1;
            }
        }
    }

    /// Returns the position: the last record that is settled and has no unsettled record before it.
    pub(crate) fn position(&self) -> Option<&SequenceNumber> {
        self.position.as_ref()
    }

    /// Returns the number of the first unsettled record, or the next record's number if all are
    /// settled.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Returns the number that the next record will get.
    pub(crate) fn end(&self) -> u64 {
        self.first + u64::try_from(self.entries.len()).unwrap_or(u64::MAX)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn unsettled(&self) -> usize {
        self.unsettled
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn position(checkpoint: &Checkpoint) -> Option<&str> {
        checkpoint.position().map(SequenceNumber::as_str)
    }

    #[test]
    fn the_position_passes_a_record_only_when_all_earlier_records_are_settled() {
        let mut checkpoint = Checkpoint::default();
        let numbers: Vec<u64> = ["10", "11", "12", "13"]
            .into_iter()
            .map(|sequence| checkpoint.push(sequence.into(), sequence == "12"))
            .collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        checkpoint.settle(1);
        assert_eq!((position(&checkpoint), checkpoint.unsettled()), (None, 2));
        checkpoint.settle(0);
        assert_eq!((position(&checkpoint), checkpoint.first()), (Some("12"), 3));
        checkpoint.settle(0);
        checkpoint.settle(99);
        assert_eq!((checkpoint.unsettled(), checkpoint.len(), checkpoint.end()), (1, 1, 4));
        checkpoint.settle(3);
        assert_eq!(position(&checkpoint), Some("13"));
        assert_eq!(checkpoint.push("14".into(), true), 4);
        assert_eq!((position(&checkpoint), checkpoint.len()), (Some("14"), 0));
    }
}
