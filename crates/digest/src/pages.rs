//! The counts of a histogram with many buckets: a page for each octave that has any.

use super::histogram::{OCTAVES, SUB, SUB_BITS};

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
