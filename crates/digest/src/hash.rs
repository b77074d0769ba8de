//! The hash of a statement's shape.

use super::piece::{in_name, number};

/// What is passed over.
pub(super) const NUMBER: u64 = 1;
pub(super) const STRING: u64 = 2;
pub(super) const LIST: u64 = 3;
pub(super) const COMMENT: u64 = 4;

/// A hash by 64-bit multiplication (as in wyhash, Wang Yi 2019).
pub(super) struct Hash(pub u64);

impl Hash {
    #[inline]
    fn mix(&mut self, word: u64, by: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(by);
        let halves = product.to_le_bytes();
        let half =
            |from: usize| u64::from_le_bytes(halves[from..from + 8].try_into().unwrap_or_default());
        self.0 = half(0) ^ half(8);
    }

    /// Eight bytes of text.
    #[inline]
    pub fn word(&mut self, word: u64) {
        self.mix(word, 0xa076_1d64_78bd_642f);
    }

    /// The first bytes of a word, the others 0.
    #[inline]
    pub fn part(&mut self, word: u64, bits: u32) {
        self.mix(word, 0xe703_7ed1_a0b4_28db ^ u64::from(bits));
    }

    /// Something whose text does not matter.
    #[inline]
    pub fn literal(&mut self, kind: u64) {
        self.mix(kind, 0x8ebc_6af0_9c88_c6e3);
    }

    /// One byte of text; returns where the next is.
    #[inline]
    pub fn byte(&mut self, byte: u8, at: usize) -> usize {
        self.part(u64::from(byte), 8);
        at + 1
    }

    /// Text that matters to the last byte.
    pub fn raw(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let word = chunk
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u64::from(*byte));
            self.mix(word, 0x5899_65cc_7537_4cc3 ^ chunk.len() as u64);
        }
    }

    /// A number, or the name that it starts; returns where it ends.
    #[inline]
    pub fn number(&mut self, text: &[u8], at: usize) -> usize {
        match number(text, at) {
            Some(end) => {
                self.literal(NUMBER);
                end
            }
            None => self.name(text, at),
        }
    }

    /// A name; returns where it ends.
    pub fn name(&mut self, text: &[u8], at: usize) -> usize {
        let end = at + text[at..].iter().take_while(|byte| in_name(**byte)).count();
        self.raw(&text[at..end]);
        end
    }
}
