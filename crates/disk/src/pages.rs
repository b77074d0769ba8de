//! Which pages of a disk its overlay holds: a bitmap that many threads read and fill.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size of a page in bytes.
pub const PAGE: u64 = 4096;
/// The bytes that one word of the bitmap covers.
pub const REGION: u64 = PAGE * 64;

/// A part of a request whose pages are all held, or all not held.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    pub bytes: Range<u64>,
    pub held: bool,
}

/// One bit per page; a bit once set stays set.
#[derive(Debug)]
pub struct Pages {
    words: Box<[AtomicU64]>,
    held: AtomicU64,
}

impl Pages {
    /// An empty map for a disk of `size` bytes.
    pub fn new(size: u64) -> Self {
        Self {
            words: (0..size.div_ceil(REGION))
                .map(|_| AtomicU64::new(0))
                .collect(),
            held: AtomicU64::new(0),
        }
    }

    /// How many pages are held.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// Whether the page that contains byte `at` is held.
    pub fn holds(&self, at: u64) -> bool {
        self.missing(&(at..at + 1)) == 0
    }

    /// Whether every page touched by `bytes`, which lie in one region, is held.
    pub fn holds_all(&self, bytes: &Range<u64>) -> bool {
        self.missing(bytes) == 0
    }

    /// Marks every page touched by `bytes`, which lie in one region, as held.
    ///
    /// Release pairs with the acquire of a reader: who sees the bit sees the overlay's bytes.
    pub fn hold(&self, bytes: &Range<u64>) {
        let (word, mask) = self.locate(bytes);
        let before = word.fetch_or(mask, Ordering::Release);
        let new = u64::from((mask & !before).count_ones());
        self.held.fetch_add(new, Ordering::Relaxed);
    }

    /// Cuts `bytes` into runs, in order.
    pub fn runs(&self, bytes: Range<u64>) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::with_capacity(1);
        let mut at = bytes.start;
        while at < bytes.end {
            let end = (at / PAGE + 1) * PAGE;
            let end = end.min(bytes.end);
            let held = self.holds(at);
            match runs.last_mut() {
                Some(run) if run.held == held => run.bytes.end = end,
                _ => runs.push(Run {
                    bytes: at..end,
                    held,
                }),
            }
            at = end;
        }
        runs
    }

    fn missing(&self, bytes: &Range<u64>) -> u64 {
        let (word, mask) = self.locate(bytes);
        mask & !word.load(Ordering::Acquire)
    }

    /// Returns the word of the region and the bits of the pages in it.
    fn locate(&self, bytes: &Range<u64>) -> (&AtomicU64, u64) {
        let first = bytes.start / PAGE;
        let last = (bytes.end - 1) / PAGE;
        debug_assert_eq!(first / 64, last / 64, "one region");
        let index = usize::try_from(first / 64).unwrap_or(usize::MAX);
        let mask = (u64::MAX >> (63 - (last - first))) << (first % 64);
        (&self.words[index], mask)
    }
}

/// Cuts `bytes` at the borders of regions.
pub fn by_region(bytes: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut at = bytes.start;
    std::iter::from_fn(move || {
        let end = ((at / REGION + 1) * REGION).min(bytes.end);
        let part = at..end;
        at = end;
        (part.start < part.end).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_the_bits() {
        let map = Pages::new(1 << 20);
        map.hold(&(PAGE..3 * PAGE));
        let got = map.runs(100..4 * PAGE + 7);
        let want = [
            (100..PAGE, false),
            (PAGE..3 * PAGE, true),
            (3 * PAGE..4 * PAGE + 7, false),
        ];
        let want = want.map(|(bytes, held)| Run { bytes, held });
        assert_eq!(got, want);
    }

    #[test]
    fn a_run_crosses_regions() {
        let map = Pages::new(4 * REGION);
        for part in by_region(0..2 * REGION) {
            map.hold(&part);
        }
        let got = map.runs(0..4 * REGION);
        assert_eq!(got.len(), 2);
        assert_eq!(got[0].bytes, 0..2 * REGION);
        assert_eq!(map.held(), 128);
    }

    #[test]
    fn the_first_and_the_last_page_of_a_region_are_its_own() {
        let map = Pages::new(3 * REGION);
        map.hold(&(REGION..REGION + 1));
        map.hold(&(2 * REGION - 1..2 * REGION));
        assert!(!map.holds(REGION - 1) && map.holds(REGION));
        assert!(map.holds(2 * REGION - PAGE) && !map.holds(2 * REGION));
        assert_eq!(map.held(), 2);
    }

    #[test]
    fn holding_twice_counts_once() {
        let map = Pages::new(REGION);
        map.hold(&(0..REGION));
        map.hold(&(5..6));
        assert_eq!(map.held(), 64);
        assert!(map.holds_all(&(0..REGION)));
    }

    #[test]
    fn a_range_is_cut_at_region_borders() {
        let parts: Vec<_> = by_region(10..2 * REGION + 5).collect();
        assert_eq!(
            parts,
            [10..REGION, REGION..2 * REGION, 2 * REGION..2 * REGION + 5]
        );
        assert_eq!(by_region(7..7).count(), 0);
    }
}
