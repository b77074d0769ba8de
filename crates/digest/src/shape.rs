//! A statement's shape: a hash of its text that passes over the literals, made at memory speed.
//!
//! Statements of one shape have one fingerprint; a fingerprint can have many shapes.  Eight bytes
//! are looked at at once; what is special in them is found by arithmetic on all of them.

use super::behind::{after, banner_before, could_be_forged, After};
use super::piece::{
    block_comment, comment_starts, dashes, in_name, line_end, list, list_before, literal,
    names_chunk, number, NoList,
};

/// A statement that is all there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub hash: u64,
    /// The statement's last byte is before this.
    pub end: usize,
    /// The next event begins here.
    pub next: usize,
}

/// Why there is no shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoShape {
    /// The text ends before the statement seems to.
    NotYet,
    /// The statement is not a plain one: the slow way decides.
    Odd,
}

impl From<NoList> for NoShape {
    fn from(why: NoList) -> Self {
        match why {
            NoList::Open => Self::NotYet,
            NoList::Other => Self::Odd,
        }
    }
}

/// The shape of the statement that starts `text`.
pub(super) fn shape(text: &[u8], seed: u64, last: bool) -> Result<Shape, NoShape> {
    let mut hash = Hash(seed);
    let mut at = 0;
    let mut in_word = 0;
    loop {
        let bytes = text.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        let word = u64::from_le_bytes(bytes.ok_or(NoShape::NotYet)?);
        let found = specials(word, &mut in_word);
        if found == 0 {
            hash.word(word);
            at += 8;
            continue;
        }
        let before = found.trailing_zeros() & !7;
        hash.part(word & ((1 << before) - 1), before);
        at += before as usize / 8;
        in_word = 0;
        match token(text, at, last, &mut hash)? {
            Next::At(next) => at = next,
            Next::End(shape) => return Ok(shape),
        }
    }
}

/// What comes behind a token.
enum Next {
    /// More of the statement, from here on.
    At(usize),
    /// Nothing.
    End(Shape),
}

/// Takes what begins with the special byte at `at` into the hash, or passes over it.
#[inline]
fn token(text: &[u8], at: usize, last: bool, hash: &mut Hash) -> Result<Next, NoShape> {
    Ok(Next::At(match text[at] {
        b'0'..=b'9' => hash.number(text, at),
        quote @ (b'\'' | b'"') => {
            hash.literal(STRING);
            literal(text, at + 1, quote)?
        }
        b'`' => {
            let end = literal(text, at + 1, b'`')?;
            hash.raw(&text[at..end]);
            end
        }
        b'(' => match list_before(text, at).map(|kind| list(text, at, kind)) {
            Some(Ok(end)) => {
                hash.literal(LIST);
                end
            }
            Some(Err(NoList::Open)) => return Err(NoShape::NotYet),
            _ => hash.byte(b'(', at),
        },
        b';' => return semicolon(text, at, last, hash),
        b'/' if comment_starts(text, at) => hash.comment(text, at)?,
        b'-' if dashes(text, at) => return hash.line(text, at, last),
        b'#' => return hash.line(text, at, last),
        b'$' => hash.name(text, at),
        other => hash.byte(other, at),
    }))
}

fn semicolon(text: &[u8], at: usize, last: bool, hash: &mut Hash) -> Result<Next, NoShape> {
    match after(text, at, last) {
        After::Event(next) => Ok(Next::End(Shape {
            hash: hash.0,
            end: at,
            next,
        })),
        After::NotYet => Err(NoShape::NotYet),
        After::Text => Ok(Next::At(hash.byte(b';', at))),
    }
}

fn forged(text: &[u8], line: usize) -> bool {
    text.get(line) == Some(&b'#') && could_be_forged(&text[line..])
}

const EACH: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * EACH;

/// The high bit of every byte that is a quote, a parenthesis, the start of a number or a comment,
/// or a `;`.  `in_word` is that bit of the byte before, if a digit here would belong to its word.
#[inline]
fn specials(word: u64, in_word: &mut u64) -> u64 {
    let low = word & !HIGH;
    // Each sum sets a byte's high bit where the byte is at least the bound, without a carry.
    let at_least = |bound: u64| low + (0x80 - bound) * EACH;
    let is = |byte: u64| !((low ^ (byte * EACH)) + !HIGH);
    let digit = at_least(0x30) & !at_least(0x3A);
    // Letters, and a few signs that no digit follows in practice; those only make shapes finer.
    let letter = (low | (0x20 * EACH)) + 0x20 * EACH;
    let name = (digit | letter | word) & HIGH;
    let number = digit & !(name << 8 | *in_word);
    let quote = at_least(0x22) & !at_least(0x29);
    let dash = !(((low & (0x7D * EACH)) ^ (0x2D * EACH)) + !HIGH);
    *in_word = name >> 56;
    (number | quote | dash | is(0x3B) | is(0x60)) & !word & HIGH
}

impl Hash {
    /// Passes over a comment.
    fn comment(&mut self, text: &[u8], at: usize) -> Result<usize, NoShape> {
        let mut odd = false;
        let end = block_comment(text, at + 2, |line| {
            odd = forged(text, line);
            odd
        });
        let end = end.ok_or(if odd { NoShape::Odd } else { NoShape::NotYet })?;
        if names_chunk(&text[at..end]) {
            return Err(NoShape::Odd);
        }
        self.literal(COMMENT);
        Ok(end)
    }

    /// Passes over a comment to the end of the line.
    fn line(&mut self, text: &[u8], at: usize, last: bool) -> Result<Next, NoShape> {
        let first = at == 0 || text[at - 1] == b'\n';
        if first && (forged(text, at) || banner_before(text, at).is_some()) {
            return Err(NoShape::Odd);
        }
        let end = line_end(text, at).ok_or(NoShape::NotYet)?;
        self.literal(COMMENT);
        let line = text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]);
        if !line.ends_with(b";") {
            return Ok(Next::At(end));
        }
        let semicolon = at + line.len() - 1;
        match after(text, semicolon, last) {
            After::Event(next) => Ok(Next::End(Shape {
                hash: self.0,
                end: semicolon,
                next,
            })),
            After::NotYet => Err(NoShape::NotYet),
            After::Text => Ok(Next::At(end)),
        }
    }
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fingerprint::fingerprint;

    fn of(statement: &str) -> u64 {
        let text = format!("{statement};\n# User@Host: a[a] @ b []\n");
        let shape = shape(text.as_bytes(), 7, false).expect(statement);
        assert_eq!(
            (shape.end, shape.next),
            (statement.len(), statement.len() + 2)
        );
        shape.hash
    }

    #[test]
    fn literals_do_not_make_a_shape() {
        let same = [
            (
                "select * from t1 where a = 5 and b='x'",
                "select * from t1 where a = 123456 and b=''",
            ),
            (
                "select a from t where b in (1,2)",
                "select a from t where b in ('a', -3, null)",
            ),
            (
                "insert into t values (1,'a')",
                "insert into t values (2,'b'), (3,'c;\n')",
            ),
            ("select 1.5e3, 0xff", "select 1, 2"),
            ("select 1 /* a */", "select 2 /* 'b */"),
            ("select 1 -- it's", "select 2 -- "),
        ];
        for (one, other) in same {
            assert_eq!(of(one), of(other), "{one} | {other}");
        }
    }

    #[test]
    fn everything_else_does() {
        let differ = [
            ("select * from t1", "select * from t2"),
            ("select * from `1`", "select * from `2`"),
            ("select f(1, 2)", "select f(1)"),
            ("select 1a from t", "select 2a from t"),
            ("select a$1 from t", "select a$2 from t"),
            ("select /*! 1 */ 2", "select /*+ 1 */ 2"),
            ("select abcdefgh", "select abcdefg"),
            ("select a-1 from t", "select a+1 from t"),
            (
                "insert into t values (1), (now())",
                "insert into t values (1)",
            ),
        ];
        for (one, other) in differ {
            assert_ne!(of(one), of(other), "{one} | {other}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_slow_way() {
        for (text, why) in [
            (
                "select 'a\n# User@Host: x[x] @ y []\n';\n# Time: 1                ",
                NoShape::Odd,
            ),
            (
                "select 1 /* a\n# User@Host: x[x] @ y []\n*/;\n# Time: 1           ",
                NoShape::Odd,
            ),
            (
                "select /*a.b:1/2*/ 1;\n# User@Host: x[x] @ y []\n",
                NoShape::Odd,
            ),
            (
                "select 'never closed;\n# User@Host: x[x] @ y []\n",
                NoShape::Odd,
            ),
            ("select 'never closed;\n", NoShape::NotYet),
            ("select a from t where b in (1,2", NoShape::NotYet),
            ("select 1 /* not closed", NoShape::NotYet),
            ("select 1;", NoShape::NotYet),
        ] {
            assert_eq!(shape(text.as_bytes(), 7, false), Err(why), "{text}");
        }
    }

    // Statements of one shape have one fingerprint, whatever is in their literals.
    /// Pieces of statements, each in several forms that may or may not matter.
    const PIECES: [&[&str]; 30] = [
        &["1", "22", "333333333", "4.5", "0x1F", "1e5", "0b1"],
        &[
            "'a'",
            "''",
            "'it''s'",
            "'a\\'b'",
            "'; -- /* #'",
            "'123456789012345678901234567890'",
        ],
        &["\"a\"", "\"\"", "\"it's\""],
        &[
            "(1,2)",
            "(1)",
            "('a', -3, null)",
            "((1,2),(3,4))",
            "( )",
            "(?, ?)",
        ],
        &[
            "values (1,'a')",
            "values (1), (2)",
            "values (1),(now()),(')')",
            "values ('x'),\n('y')",
        ],
        &[
            "in (1)",
            "in (1,2,3,4,5,6,7,8,9,10)",
            "in ('a)','b')",
            "IN(1)",
        ],
        &["in (select 1)", "in (select 2)"],
        &[
            "/* a */",
            "/* 'b */",
            "/**/",
            "/* x.y:1/2 */",
            "/*x.y:1/2*/",
        ],
        &["/*! 1 */", "/*! 2 */", "/*M! 1 */"],
        &["-- a\n", "-- it's\n", "--\n", "# b\n"],
        &["t1", "t2"],
        &["1a", "2a"],
        &["a$1", "a$2", "$1"],
        &["@1", "@2"],
        &["`1`", "`2`", "`a``b`"],
        &["-", "+", "--1", "- 1", "-1", "+1", ".5", ".1"],
        &["x'1f'", "x'00'", "b'1'", "n'a'", "_utf8'a'"],
        &["null", "NULL", "true", "nullable"],
        &["union select 1", "union select 2", "union all select 1"],
        &["limit 1", "limit 1, 2", "limit 5 offset 6"],
        &["order by a asc", "order by 1 ASC"],
        &["a|1", "a|2", "a~3", "a[4]", "\u{e9}1", "\u{e9}2"],
        &["1.2.3", "4.5.6", "t.1", "1.", "1.e"],
        &["call p(1)", "call p(2)"],
        &["use a", "use b1", "use b2"],
        &["insert into t", "replace into t"],
        &["1'a'", "2'b'", "'a'1", "'b'2"],
        &["mod 5", "mod 6", "div -5", "between -1 and -2"],
        &["12345678901234567890123", "1"],
        &["; ", ";\n", ";;"],
    ];

    /// Two statements that are put together from the same pieces, in forms of their own.
    fn pair() -> impl Strategy<Value = (String, String)> {
        let piece = (
            0..PIECES.len(),
            any::<prop::sample::Index>(),
            any::<prop::sample::Index>(),
            0..4_u8,
        );
        prop::collection::vec(piece, 1..7).prop_map(|pieces| {
            let (mut one, mut other) = ("select ".to_owned(), "select ".to_owned());
            for (piece, form, another, blank) in pieces {
                let blank = if blank == 0 { "" } else { " " };
                let forms = PIECES[piece];
                one.extend([forms[form.index(forms.len())], blank]);
                other.extend([forms[another.index(forms.len())], blank]);
            }
            (one, other)
        })
    }

    proptest! {
        #[test]
        fn one_shape_has_one_fingerprint((one, other) in pair()) {
            let shape_of = |statement: &str| {
                let text = format!("{statement};\n# User@Host: a[a] @ b []\n");
                let found = shape(text.as_bytes(), 7, false).ok();
                found.map(|found| (found.hash, text.into_bytes()[..found.end].to_vec()))
            };
            if let (Some((one, text)), Some((other, another))) = (shape_of(&one), shape_of(&other)) {
                if one == other {
                    prop_assert_eq!(fingerprint(&text, false), fingerprint(&another, false));
                }
            }
        }
    }
}
