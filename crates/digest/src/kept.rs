//! How much of a class's texts is kept: less where there are many classes.

use super::fingerprint::redacted;
use super::result::{Class, Digest, Example};

/// Of so many classes, the first, as much is kept as is asked for.
const RICH: usize = 8192;
const FINGERPRINT: usize = 1024;
const FINGERPRINT_OF_MANY: usize = 512;
const EXAMPLE_OF_MANY: usize = 256;

/// How many bytes are kept of the fingerprint of the class at that place.
#[inline]
pub(super) fn fingerprint_bytes(place: usize) -> usize {
    if place < RICH {
        FINGERPRINT
    } else {
        FINGERPRINT_OF_MANY
    }
}

/// The most bytes that are kept of the example of the class at that place.
#[inline]
pub(super) fn example_bytes(place: usize) -> usize {
    if place < RICH {
        usize::MAX
    } else {
        EXAMPLE_OF_MANY
    }
}

/// The start of a text, at most so many bytes.
pub(super) fn cut(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

impl Class {
    /// Cuts the texts of a class to what is kept at that place.
    pub(super) fn fit(&mut self, place: usize) {
        if self.fingerprint.len() > fingerprint_bytes(place) {
            self.fingerprint = cut(&self.fingerprint, fingerprint_bytes(place)).into();
        }
        if let Some(Example { query, .. }) = &mut self.example {
            if query.len() > example_bytes(place) {
                *query = cut(query, example_bytes(place)).to_owned();
            }
        }
    }
}

impl Digest {
    /// Replaces the literals of all examples.
    pub(super) fn redact(&mut self) {
        for class in &mut self.classes {
            if let Some(Example { query, .. }) = &mut class.example {
                *query = String::from_utf8_lossy(&redacted(query.as_bytes())).into_owned();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!(
            (cut("a\u{e9}", 2), cut("a\u{e9}", 3), cut("", 5)),
            ("a", "a\u{e9}", "")
        );
    }
}
