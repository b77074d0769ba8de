//! Power: a volatile write cache, and what a power cut leaves of what is in it.
//!
//! A write is durable once a flush that began after it was answered.  For each other write a cut draws
//! whether it is lost, is there, or is torn: then only its first sectors are there.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;

/// What a disk writes completely, or not at all.
const SECTOR: usize = 512;
/// A cache of so many bytes writes its oldest out, as a disk's own does.
const MOST: usize = 64 << 20;

/// What becomes of writes that are not durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Lost,
    /// Drawn for each write, from this seed.
    Drawn(u64),
}

/// What a cut did with the writes that were not durable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loss {
    pub lost: u64,
    pub kept: u64,
    pub torn: u64,
}

struct Write {
    at: u64,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// What was written and is not durable yet, the oldest first.
#[derive(Default)]
pub struct Cache {
    writes: VecDeque<Write>,
    bytes: usize,
    /// How many writes have become durable.
    durable: u64,
}

impl Cache {
    /// Takes a write with what was there before.
    pub fn add(&mut self, at: u64, old: Vec<u8>, new: &[u8]) {
        self.bytes += new.len();
        let new = new.to_vec();
        self.writes.push_back(Write { at, old, new });
        while self.bytes > MOST {
            self.write_out();
        }
    }

    /// Returns what a flush that begins now makes durable.
    pub fn mark(&self) -> u64 {
        self.durable + self.writes.len() as u64
    }

    /// Makes durable what was written before a mark.
    pub fn flushed(&mut self, mark: u64) {
        while self.durable < mark && !self.writes.is_empty() {
            self.write_out();
        }
    }

    /// How many writes are not durable.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    fn write_out(&mut self) {
        if let Some(one) = self.writes.pop_front() {
            self.bytes -= one.new.len();
            self.durable += 1;
        }
    }

    /// Undoes all that is not durable, then writes what the cut has left of it.
    pub fn cut(
        self,
        fate: Fate,
        mut write: impl FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<Loss> {
        for one in self.writes.iter().rev() {
            write(one.at, &one.old)?;
        }
        let mut loss = Loss::default();
        let Fate::Drawn(seed) = fate else {
            loss.lost = self.writes.len() as u64;
            return Ok(loss);
        };
        let mut random = Random(seed);
        for one in &self.writes {
            match random.below(3) {
                0 => loss.lost += 1,
                1 => {
                    loss.kept += 1;
                    write(one.at, &one.new)?;
                }
                _ => {
                    loss.torn += 1;
                    write(one.at, torn(&one.new, &mut random))?;
                }
            }
        }
        Ok(loss)
    }
}

/// Returns the first sectors of a write, fewer than all: of one sector none.
pub fn torn<'a>(data: &'a [u8], random: &mut Random) -> &'a [u8] {
    let sectors = data.len().div_ceil(SECTOR).max(1) as u64;
    let kept = usize::try_from(random.below(sectors)).unwrap_or(0);
    &data[..kept * SECTOR]
}

/// Ranges of the device whose next write is torn by a cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trap {
    pub seed: u64,
    pub ranges: Vec<Range<u64>>,
}

impl Trap {
    /// Returns whether a write goes into it.
    pub fn holds(&self, at: u64, len: usize) -> bool {
        let end = at + len as u64;
        self.ranges.iter().any(|r| at < r.end && r.start < end)
    }
}

/// Numbers that a seed determines (`SplitMix64`).
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `limit`, which is small: the bias is nothing.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// Returns whether an event of this probability comes.
    pub fn comes(&mut self, share: f64) -> bool {
        #[allow(clippy::cast_precision_loss)] // 53 bits are enough
        let drawn = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device of bytes, and the cache that its writes go through.
    struct Device(Vec<u8>, Cache);

    impl Device {
        fn new(len: usize) -> Self {
            Self(vec![0; len], Cache::default())
        }

        fn write(&mut self, at: usize, byte: u8, len: usize) {
            let old = self.0[at..at + len].to_vec();
            self.0[at..at + len].fill(byte);
            self.1.add(at as u64, old, &vec![byte; len]);
        }

        fn cut(&mut self, fate: Fate) -> Loss {
            let bytes = &mut self.0;
            std::mem::take(&mut self.1)
                .cut(fate, |at, data| {
                    let at = usize::try_from(at).unwrap();
                    bytes[at..at + data.len()].copy_from_slice(data);
                    Ok(())
                })
                .unwrap()
        }
    }

    #[test]
    fn what_was_flushed_stays_and_the_rest_is_lost() {
        let mut device = Device::new(4096);
        device.write(0, 1, 1024);
        let mark = device.1.mark();
        device.write(512, 2, 1024); // after the flush began
        device.1.flushed(mark);
        let loss = device.cut(Fate::Lost);
        assert_eq!(
            loss,
            Loss {
                lost: 1,
                ..Loss::default()
            }
        );
        assert!(device.0[..1024].iter().all(|b| *b == 1));
        assert!(device.0[1024..].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_draw_keeps_loses_and_tears_at_a_sector() {
        let mut seen = Loss::default();
        for seed in 0..64 {
            let mut device = Device::new(8192);
            device.write(0, 7, 4096);
            let loss = device.cut(Fate::Drawn(seed));
            let there = device.0.iter().take_while(|b| **b == 7).count();
            assert_eq!(there % SECTOR, 0);
            assert!(device.0[there..].iter().all(|b| *b == 0), "a prefix");
            match loss {
                Loss { lost: 1, .. } => assert_eq!(there, 0),
                Loss { kept: 1, .. } => assert_eq!(there, 4096),
                _ => assert!(there < 4096),
            }
            seen.lost += loss.lost;
            seen.kept += loss.kept;
            seen.torn += loss.torn;
        }
        assert!(seen.lost > 9 && seen.kept > 9 && seen.torn > 9, "{seen:?}");
    }

    #[test]
    fn the_same_seed_leaves_the_same() {
        let left = |seed| {
            let mut device = Device::new(1 << 16);
            for n in 0..16_u8 {
                device.write(usize::from(n) * 4096, n + 1, 4096);
            }
            device.cut(Fate::Drawn(seed));
            device.0
        };
        assert_eq!(left(5), left(5));
        assert_ne!(left(5), left(6));
    }

    #[test]
    fn a_full_cache_writes_its_oldest_out() {
        let mut cache = Cache::default();
        for _ in 0..3 {
            cache.add(0, vec![0; MOST / 2], &vec![1; MOST / 2]);
        }
        assert_eq!((cache.durable, cache.writes.len()), (1, 2));
    }

    #[test]
    fn a_trap_is_for_what_overlaps_it() {
        let trap = Trap {
            seed: 1,
            ranges: vec![4096..8192, 1 << 20..1 << 21],
        };
        assert!(trap.holds(0, 4097) && trap.holds(8191, 1) && trap.holds(5000, 10));
        assert!(!trap.holds(0, 4096) && !trap.holds(8192, 512));
    }
}
