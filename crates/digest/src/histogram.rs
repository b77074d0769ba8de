//! Counts of values in buckets a sixty-fourth of an octave wide, small while there are few.
//!
//! Values below 128 have a bucket each; above, a bucket's middle is within 0.8 % of every value in
//! it (log-linear as in G. Tene's `HdrHistogram`, 2012).  Zeros are counted apart.
//!
//! The crate `hdrhistogram` gives the same digests but is slower: it takes 1.27 times as long for a
//! value of the bench's `oltp` log [1.18..1.67], 3.17 times for one of `wide` [2.13..3.38], and has
//! 4.5 and 17 times the memory.  It has no limit of memory, which a log of many classes needs.
//! `target/release/examples/slowlog oltp --bytes=150000000 --seed=7 --out=LOG` and
//! `cargo bench -p mydyno-digest --bench histogram -- LOG` reproduce this.

pub(super) const SUB_BITS: u32 = 6;
pub(super) const SUB: usize = 1 << SUB_BITS;
pub(super) const OCTAVES: usize = 64 - SUB_BITS as usize + 1;
/// More buckets than these and the counts go into pages of an octave each.
const FEW: usize = 24;
const COUNT_BITS: u32 = 48;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// How often each value was seen, to within 0.8 % of the value.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    zeros: u64,
    storage: Storage,
}

/// Bucket numbers with counts, in order, or a page of counts for each octave that has any.
#[derive(Debug, Clone)]
enum Storage {
    Few(Vec<u64>),
    Many(Box<Pages>),
}

impl Default for Storage {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl Histogram {
    /// Counts one value.  Memory it takes is taken from `room`; where there is none left, the value
    /// goes to the nearest bucket that is there.
    #[inline]
    pub fn add(&mut self, value: u64, room: &mut i64) {
        if value == 0 {
            self.zeros += 1;
        } else {
            self.count(bucket_of(value), 1, room);
        }
    }

    /// Counts all that `other` counted; memory as for a value.
    pub(crate) fn merge_within(&mut self, other: &Self, room: &mut i64) {
        self.zeros += other.zeros;
        other.each(|bucket, count| self.count(bucket, count, room));
    }

    /// The memory that the counts take.
    pub(crate) fn room(&self) -> i64 {
        match &self.storage {
            Storage::Few(few) => bytes_of::<u64>(few.capacity()),
            Storage::Many(pages) => pages.room(),
        }
    }

    #[inline]
    fn count(&mut self, bucket: usize, by: u64, room: &mut i64) {
        match &mut self.storage {
            Storage::Many(pages) => pages.count(bucket, by, room),
            Storage::Few(few) => {
                let at = few.partition_point(|entry| (entry >> COUNT_BITS) < bucket as u64);
                if few
                    .get(at)
                    .is_some_and(|entry| entry >> COUNT_BITS == bucket as u64)
                {
                    few[at] += by;
                } else {
                    self.insert(at, bucket, by, room);
                }
            }
        }
    }

    fn insert(&mut self, at: usize, bucket: usize, by: u64, room: &mut i64) {
        let Storage::Few(few) = &mut self.storage else {
            return;
        };
        if *room <= 0 && !few.is_empty() {
            let nearest = at.min(few.len() - 1);
            few[nearest] += by;
            return;
        }
        if few.len() < FEW {
            if few.len() == few.capacity() {
                let more = few.len().max(1);
                few.reserve_exact(more);
                *room -= bytes_of::<u64>(more);
            }
            few.insert(at, (bucket as u64) << COUNT_BITS | by);
            return;
        }
        let mut pages = Box::<Pages>::default();
        *room -= bytes_of::<Pages>(1);
        let mut enough = i64::MAX;
        self.each(|bucket, count| pages.count(bucket, count, &mut enough));
        pages.count(bucket, by, &mut enough);
        *room -= i64::MAX - enough;
        self.storage = Storage::Many(pages);
    }

    fn each(&self, mut visit: impl FnMut(usize, u64)) {
        match &self.storage {
            Storage::Few(few) => {
                for entry in few {
                    visit(
                        usize::try_from(entry >> COUNT_BITS).unwrap_or(0),
                        entry & COUNT_MASK,
                    );
                }
            }
            Storage::Many(pages) => pages.each(visit),
        }
    }

    /// How many zeros were counted.
    #[must_use]
    pub fn zeros(&self) -> u64 {
        self.zeros
    }

    /// The buckets that counted something, from the smallest values up: lowest value, highest
    /// value, count.  Zeros come first, as a bucket of their own.
    #[must_use]
    pub fn buckets(&self) -> Vec<(u64, u64, u64)> {
        let mut found = Vec::new();
        if self.zeros > 0 {
            found.push((0, 0, self.zeros));
        }
        self.each(|bucket, count| {
            let (low, high) = bounds(bucket);
            found.push((low, high, count));
        });
        found
    }

    /// The middle of the bucket that holds the value of rank ⌈share × count⌉ (nearest rank), or
    /// nothing if nothing was counted.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a rank is far below 2^52"
    )]
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let buckets = self.buckets();
        let count: u64 = buckets.iter().map(|bucket| bucket.2).sum();
        let rank = ((share * count as f64 - 1e-9).ceil() as u64).max(1);
        let mut seen = 0;
        buckets.iter().find_map(|(low, high, count)| {
            seen += count;
            (seen >= rank).then_some(low + (high - low) / 2)
        })
    }
}

/// The bucket of a value that is not 0.
#[inline]
fn bucket_of(value: u64) -> usize {
    let octave = (value | 1).ilog2().saturating_sub(SUB_BITS - 1);
    if octave == 0 {
        return usize::try_from(value).unwrap_or(0);
    }
    let sub = usize::try_from(value >> (octave - 1)).unwrap_or(0) & (SUB - 1);
    (octave as usize) << SUB_BITS | sub
}

/// The lowest and the highest value of a bucket.
fn bounds(bucket: usize) -> (u64, u64) {
    let (octave, sub) = (bucket >> SUB_BITS, (bucket & (SUB - 1)) as u64);
    if octave == 0 {
        return (sub, sub);
    }
    let low = (sub | SUB as u64) << (octave - 1);
    (low, low + ((1 << (octave - 1)) - 1))
}

const LOWER: u64 = u32::MAX as u64;

/// Counts of buckets.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    /// One more than the place of an octave's page; 0 where it has none.
    place: [u8; OCTAVES],
    /// The lower halves of the counts, so that more of them fit into the processor's cache.
    counts: Vec<[u32; SUB]>,
    /// The upper halves that are not 0, by bucket.
    upper: Vec<(usize, u64)>,
}

impl Default for Pages {
    fn default() -> Self {
        Self {
            place: [0; OCTAVES],
            counts: Vec::new(),
            upper: Vec::new(),
        }
    }
}

impl Pages {
    /// Calls `visit` with each bucket that counted something, and its count, in order.
    pub fn each(&self, mut visit: impl FnMut(usize, u64)) {
        for (octave, place) in self
            .place
            .iter()
            .enumerate()
            .filter(|(_, place)| **place > 0)
        {
            let counts = self.counts[usize::from(*place) - 1];
            for (sub, lower) in counts.iter().enumerate() {
                let bucket = octave << SUB_BITS | sub;
                let count = u64::from(*lower) | self.upper_of(bucket) << 32;
                if count > 0 {
                    visit(bucket, count);
                }
            }
        }
    }

    #[inline]
    /// The memory that the counts take.
    pub fn room(&self) -> i64 {
        bytes_of::<Self>(1) + bytes_of::<[u32; SUB]>(self.counts.len())
    }

    /// Counts a value of a bucket so many times.
    pub fn count(&mut self, bucket: usize, by: u64, room: &mut i64) {
        let octave = bucket >> SUB_BITS;
        match self.place[octave] {
            0 => self.open(octave, bucket, by, room),
            _ => self.put(bucket, by),
        }
    }

    #[inline]
    fn put(&mut self, bucket: usize, by: u64) {
        let page = usize::from(self.place[bucket >> SUB_BITS]) - 1;
        let lower = &mut self.counts[page][bucket & (SUB - 1)];
        let sum = u64::from(*lower) + (by & LOWER);
        *lower = u32::try_from(sum & LOWER).unwrap_or(u32::MAX);
        let upper = (by >> 32) + (sum >> 32);
        if upper > 0 {
            self.carry(bucket, upper);
        }
    }

    #[cold]
    fn carry(&mut self, bucket: usize, upper: u64) {
        match self.upper.iter_mut().find(|known| known.0 == bucket) {
            Some(known) => known.1 += upper,
            None => self.upper.push((bucket, upper)),
        }
    }

    fn upper_of(&self, bucket: usize) -> u64 {
        self.upper
            .iter()
            .find(|known| known.0 == bucket)
            .map_or(0, |known| known.1)
    }

    #[cold]
    fn open(&mut self, octave: usize, bucket: usize, by: u64, room: &mut i64) {
        if *room <= 0 {
            let far = |other: &usize| other.abs_diff(octave);
            let nearest = (0..OCTAVES)
                .filter(|other| self.place[*other] > 0)
                .min_by_key(far);
            let nearest = nearest.unwrap_or(octave);
            let edge = if nearest < octave { SUB - 1 } else { 0 };
            return self.put(nearest << SUB_BITS | edge, by);
        }
        self.counts.push([0; SUB]);
        self.place[octave] = u8::try_from(self.counts.len()).unwrap_or(u8::MAX);
        self.put(bucket, by);
        *room -= bytes_of::<[u32; SUB]>(1);
    }
}

/// The size of so many values.
pub(super) fn bytes_of<T>(count: usize) -> i64 {
    i64::try_from(size_of::<T>() * count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram as Theirs;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn buckets_follow_one_another_without_a_gap() {
        let mut next = 1;
        for bucket in 1..OCTAVES << SUB_BITS {
            let (low, high) = bounds(bucket);
            assert_eq!(low, next, "bucket {bucket}");
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            next = high.wrapping_add(1);
        }
        assert_eq!(next, 0, "the last bucket ends with the largest number");
    }

    #[test]
    fn the_nearest_rank_of_few_values_is_one_of_them() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), None);
        for value in [0, 0, 0, 100] {
            histogram.add(value, &mut 1_000_000);
        }
        assert_eq!(histogram.percentile(0.75), Some(0));
        assert_eq!(histogram.percentile(0.95), Some(100));
        assert_eq!(histogram.buckets(), [(0, 0, 3), (100, 100, 1)]);
    }

    proptest! {
        /// The counts are those of `HdrHistogram`, whose buckets are half as wide, or exact.
        #[test]
        fn it_counts_as_hdrhistogram_does(
            values in prop::collection::vec((any::<u64>(), 2_u32..64), 1..400),
            shares in prop::collection::vec(0.001..1.0, 4),
        ) {
            let (mut ours, mut theirs) = (Histogram::default(), Theirs::<u64>::new(2).unwrap());
            for (value, shift) in values {
                ours.add(value >> shift, &mut 1_000_000);
                theirs.record(value >> shift).unwrap();
            }
            let mut counted = 0;
            for (low, high, count) in ours.buckets() {
                prop_assert_eq!(count, theirs.count_between(low, high));
                counted += count;
            }
            prop_assert_eq!(counted, theirs.len());
            for share in shares {
                let (got, want) = (ours.percentile(share).unwrap(), theirs.value_at_quantile(share));
                prop_assert!(got.abs_diff(want) <= want / 60 + 1, "{share}: {got} for {want}");
            }
        }
    }

    #[test]
    fn merged_halves_equal_the_histogram_of_all_values() {
        let (mut all, mut odd, mut even) = Default::default();
        for i in 0..5000_u64 {
            let value = i * i * 977 % 1_000_003;
            Histogram::add(&mut all, value, &mut 1_000_000);
            Histogram::add(
                if i % 2 == 0 { &mut even } else { &mut odd },
                value,
                &mut 1_000_000,
            );
        }
        odd.merge_within(&even, &mut { i64::MAX });
        assert_eq!(odd.buckets(), all.buckets());
    }

    #[test]
    fn a_count_may_be_larger_than_half_a_word() {
        let mut histogram = Histogram::default();
        let mut room = 1_000_000;
        for value in 1..=100 {
            histogram.count(bucket_of(value), u64::from(u32::MAX), &mut room);
            histogram.count(bucket_of(value), 5 << 32 | 7, &mut room);
        }
        let want = u64::from(u32::MAX) + (5 << 32 | 7);
        assert!(histogram.buckets().iter().all(|bucket| bucket.2 == want));
        assert_eq!(histogram.buckets().len(), 100);
    }

    #[test]
    fn without_room_nothing_is_lost_but_the_place() {
        let mut histogram = Histogram::default();
        let mut room = 2000;
        for value in 1..100_000 {
            histogram.add(value * 997, &mut room);
        }
        assert!(room > -2000, "{room}");
        assert_eq!(
            histogram
                .buckets()
                .iter()
                .map(|bucket| bucket.2)
                .sum::<u64>(),
            99_999
        );
    }
}
