//! The text before a value, compared eight bytes at once.

/// Text that is compared eight bytes at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Lead {
    len: usize,
    words: [u64; WORDS],
    masks: [u64; WORDS],
    /// What does not fit into the words.
    rest: Box<[u8]>,
}

const WORDS: usize = 3;
const WIDTH: usize = WORDS * 8;

impl Lead {
    /// The lead of that text.
    pub fn new(text: &[u8]) -> Self {
        let (start, rest) = text.split_at(text.len().min(WIDTH));
        let (mut bytes, mut used) = ([0; WIDTH], [0; WIDTH]);
        bytes[..start.len()].copy_from_slice(start);
        used[..start.len()].fill(u8::MAX);
        Self {
            len: text.len(),
            words: words(&bytes),
            masks: words(&used),
            rest: rest.into(),
        }
    }

    /// Where a text goes on behind this one, if it has this one at `at`.
    #[inline]
    pub fn behind(&self, text: &[u8], at: usize) -> Option<usize> {
        let Some(bytes) = text
            .get(at..at + WIDTH)
            .and_then(|bytes| bytes.try_into().ok())
        else {
            return self.behind_at_end(text, at);
        };
        let found: [u64; WORDS] = words(bytes);
        let differ = (0..WORDS).fold(0, |differ, i| {
            differ | ((found[i] ^ self.words[i]) & self.masks[i])
        });
        if differ != 0 || (self.len > WIDTH && !text[at + WIDTH..].starts_with(&self.rest)) {
            return None;
        }
        Some(at + self.len)
    }

    #[cold]
    fn behind_at_end(&self, text: &[u8], at: usize) -> Option<usize> {
        let found = text.get(at..at + self.len)?;
        let mut bytes = [0; WIDTH];
        let (start, rest) = found.split_at(self.len.min(WIDTH));
        bytes[..start.len()].copy_from_slice(start);
        (words(&bytes) == self.words && *rest == *self.rest).then_some(at + self.len)
    }
}

#[inline]
fn words(bytes: &[u8; WIDTH]) -> [u64; WORDS] {
    std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|k| bytes[i * 8 + k])))
}
