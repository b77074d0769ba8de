//! JSON written piece by piece, with numbers of any length.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

use super::legible::drives_a_terminal;

/// Writes JSON into `W`.
pub struct Json<W> {
    out: W,
    /// Whether a value came before in the present object or array.
    after: bool,
}

impl<W: Write> Json<W> {
    /// A writer that has written nothing.
    pub fn new(out: W) -> Self {
        Self { out, after: false }
    }

    /// Begins the next value of an object.
    ///
    /// # Errors
    /// Here and below, what the output reports.
    pub fn key(&mut self, name: &str) -> io::Result<&mut Self> {
        self.item()?.string(name)?;
        self.out.write_all(b":")?;
        Ok(self)
    }

    /// Begins the next value of an array.
    ///
    /// # Errors
    /// As above.
    pub fn item(&mut self) -> io::Result<&mut Self> {
        if std::mem::replace(&mut self.after, true) {
            self.out.write_all(b",")?;
        }
        Ok(self)
    }

    /// A value that is JSON as it is displayed.
    ///
    /// # Errors
    /// As above.
    pub fn raw(&mut self, value: impl Display) -> io::Result<()> {
        write!(self.out, "{value}")
    }

    /// A number; null if it is none.
    ///
    /// # Errors
    /// As above.
    pub fn number(&mut self, value: f64) -> io::Result<()> {
        if value.is_finite() {
            write!(self.out, "{value:?}")
        } else {
            self.raw("null")
        }
    }

    /// A text, with all that could drive a terminal escaped.
    ///
    /// # Errors
    /// As above.
    pub fn string(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(b"\"")?;
        let mut plain_from = 0;
        for (at, c) in text.char_indices() {
            if c != '"' && c != '\\' && !drives_a_terminal(c) {
                continue;
            }
            self.out.write_all(&text.as_bytes()[plain_from..at])?;
            plain_from = at + c.len_utf8();
            match c {
                '"' | '\\' => write!(self.out, "\\{c}")?,
                '\n' => self.out.write_all(b"\\n")?,
                '\t' => self.out.write_all(b"\\t")?,
                _ => c
                    .encode_utf16(&mut [0; 2])
                    .iter()
                    .try_for_each(|unit| write!(self.out, "\\u{unit:04x}"))?,
            }
        }
        self.out.write_all(&text.as_bytes()[plain_from..])?;
        self.out.write_all(b"\"")
    }

    /// A text or null.
    ///
    /// # Errors
    /// As above.
    pub fn optional(&mut self, text: Option<&str>) -> io::Result<()> {
        match text {
            None => self.raw("null"),
            Some(text) => self.string(text),
        }
    }

    /// An object of names and how often each came.
    ///
    /// # Errors
    /// As above.
    pub fn counts(&mut self, counts: &[(Arc<str>, u64)]) -> io::Result<()> {
        self.object(|json| {
            counts
                .iter()
                .try_for_each(|(name, count)| json.key(name)?.raw(count))
        })
    }

    /// An object, whose values `fill` writes.
    ///
    /// # Errors
    /// As above.
    pub fn object(&mut self, fill: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.within(b"{", b"}", fill)
    }

    /// An array, whose values `fill` writes.
    ///
    /// # Errors
    /// As above.
    pub fn array(&mut self, fill: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        self.within(b"[", b"]", fill)
    }

    fn within(
        &mut self,
        open: &[u8],
        close: &[u8],
        fill: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        self.out.write_all(open)?;
        self.after = false;
        fill(self)?;
        self.after = true;
        self.out.write_all(close)
    }

    /// Ends the line.
    ///
    /// # Errors
    /// As above.
    pub fn end(mut self) -> io::Result<()> {
        self.out.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let hostile = "a\"b\\c\n\t\r\u{1b}[2J\u{9b}\u{0}\u{202e}\u{e0001}é😀";
        let mut out = Vec::new();
        let mut json = Json::new(&mut out);
        json.object(|json| {
            json.key(hostile)?.string(hostile)?;
            json.key("n")?.raw("1.5")?;
            json.key("none")?.optional(None)?;
            json.key("nan")?.number(f64::NAN)?;
            json.key("empty")?.array(|_| Ok(()))?;
            json.key("list")?.array(|json| {
                json.item()?.object(|_| Ok(()))?;
                json.item()?.number(1e-7)
            })?;
            json.key("counts")?
                .counts(&[("…".into(), 3), ("b".into(), 1)])
        })
        .unwrap();
        json.end().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text.trim_end().chars().find(|c| drives_a_terminal(*c)),
            None
        );
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        let want = serde_json::json!({hostile: hostile, "n": 1.5, "none": null, "nan": null,
            "empty": [], "list": [{}, 1e-7], "counts": {"…": 3, "b": 1}});
        assert_eq!(read, want);
    }
}
