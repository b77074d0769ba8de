//! The text of a fingerprint while it is made, and what is done to all of it.

use memchr::memmem;

use super::piece::in_name;

/// A growing text in lower case and with single spaces.
#[derive(Debug)]
pub(super) struct Text(Vec<u8>);

/// Behind these words a sign belongs to its number.
const BEFORE_SIGN: [&[u8]; 24] = [
    b"and",
    b"as",
    b"between",
    b"by",
    b"case",
    b"div",
    b"else",
    b"having",
    b"in",
    b"interval",
    b"is",
    b"like",
    b"limit",
    b"mod",
    b"not",
    b"offset",
    b"on",
    b"or",
    b"return",
    b"select",
    b"set",
    b"then",
    b"when",
    b"where",
];

impl Text {
    /// An empty text with room for one of a statement of that length.
    pub fn new(statement: usize) -> Self {
        Self(Vec::with_capacity(statement.min(4096)))
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend(bytes.iter().map(u8::to_ascii_lowercase));
    }

    pub fn space(&mut self) {
        if self.0.last().is_some_and(|last| *last != b' ') {
            self.0.push(b' ');
        }
    }

    pub fn string(&mut self) {
        self.0.push(b'?');
    }

    /// A number takes the sign or the point before it along.
    pub fn number(&mut self) {
        if let [before @ .., b'.'] = self.0.as_slice() {
            if !before
                .last()
                .is_some_and(|byte| in_name(*byte) || matches!(byte, b'`' | b'?'))
            {
                self.0.pop();
            }
        }
        if let [before @ .., b'-' | b'+'] = self.0.as_slice() {
            if !ends_operand(before) {
                self.0.pop();
            }
        }
        self.0.push(b'?');
    }

    /// A list of literals follows its word at once.
    pub fn list(&mut self) {
        if self.0.last() == Some(&b' ') {
            self.0.pop();
        }
        self.0.extend_from_slice(b"(?+)");
    }

    pub fn done(mut self) -> Vec<u8> {
        if self.0.last() == Some(&b' ') {
            self.0.pop();
        }
        self.0
    }
}

/// Whether a text ends with something from which could be subtracted.
fn ends_operand(text: &[u8]) -> bool {
    let text = text.strip_suffix(b" ").unwrap_or(text);
    let Some(last) = text.last() else {
        return false;
    };
    if !in_name(*last) {
        return matches!(last, b')' | b'`' | b'?' | b']' | b'}');
    }
    let start = text
        .iter()
        .rposition(|byte| !in_name(*byte))
        .map_or(0, |before| before + 1);
    !BEFORE_SIGN.contains(&&text[start..])
}

/// Where the name ends that a `call` calls.
pub(super) fn call(text: &[u8]) -> Option<usize> {
    let name = text.strip_prefix(b"call ")?;
    Some(
        5 + name
            .iter()
            .position(|byte| matches!(byte, b'(' | b' '))
            .unwrap_or(name.len()),
    )
}

/// Leaves only the first row of an INSERT's or REPLACE's values that are more than literals.
pub(super) fn first_tuple_only(text: &mut Vec<u8>) {
    if !text.starts_with(b"insert ") && !text.starts_with(b"replace ") {
        return;
    }
    let Some(first) = values(text).and_then(|open| closing(text, open)) else {
        return;
    };
    let mut end = first;
    while let Some(open) = next_tuple(text, end) {
        end = closing(text, open).unwrap_or(text.len());
    }
    text.drain(first..end);
}

/// Where the parenthesis behind `values` opens.
fn values(text: &[u8]) -> Option<usize> {
    memmem::find_iter(text, b"value").find_map(|at| {
        let mut open = at + 5;
        open += usize::from(text.get(open) == Some(&b's'));
        open += usize::from(text.get(open) == Some(&b' '));
        let word = at > 0 && !in_name(text[at - 1]) && text[at - 1] != b'`';
        (word && text.get(open) == Some(&b'(')).then_some(open)
    })
}

fn next_tuple(text: &[u8], end: usize) -> Option<usize> {
    let blank = |at: usize| usize::from(text.get(at) == Some(&b' '));
    let comma = end + blank(end);
    let open = comma + 1 + blank(comma + 1);
    (text.get(comma) == Some(&b',') && text.get(open) == Some(&b'(')).then_some(open)
}

/// Behind the parenthesis that closes the one at `open`.
fn closing(text: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_quotes = false;
    for (i, byte) in text[open..].iter().enumerate() {
        match byte {
            b'`' => in_quotes = !in_quotes,
            b'(' if !in_quotes => depth += 1,
            b')' if !in_quotes => {
                depth -= 1;
                if depth == 0 {
                    return Some(open + i + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// One LIMIT whatever its offset.
pub(super) fn one_limit(text: Vec<u8>) -> Vec<u8> {
    if memmem::find(&text, b"limit ?").is_none() {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = memmem::find(&text[from..], b"limit ?").map(|i| from + i) {
        let end = at + 7;
        out.extend_from_slice(&text[from..end]);
        let word = at == 0 || !in_name(text[at - 1]);
        let rests = [&b", ?"[..], b",?", b" , ?", b" offset ?"];
        let rest = rests
            .iter()
            .find(|rest| word && text[end..].starts_with(rest));
        from = end + rest.map_or(0, |rest| rest.len());
    }
    out.extend_from_slice(&text[from..]);
    out
}

/// Drops the ASC behind ORDER BY, which is the default.
pub(super) fn without_asc(mut text: Vec<u8>) -> Vec<u8> {
    let Some(order) = memmem::find(&text, b"order by ") else {
        return text;
    };
    let mut written = order + 9;
    let mut from = written;
    while let Some(at) = memmem::find(&text[from..], b" asc").map(|i| from + i) {
        let end = at + 4;
        text.copy_within(from..at, written);
        written += at - from;
        from = end;
        if text.get(end).is_some_and(|byte| in_name(*byte)) {
            text.copy_within(at..end, written);
            written += 4;
        }
    }
    let len = text.len();
    text.copy_within(from..len, written);
    text.truncate(written + len - from);
    text
}

/// How many bytes are compared to find repeated selects, so that no text can take for ever.
const COMPARED: usize = 16 << 20;

/// Selects that repeat under UNION become one.
pub(super) fn collapse_unions(text: Vec<u8>) -> Vec<u8> {
    if memmem::find(&text, b" union ").is_none() {
        return text;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    let mut left = COMPARED;
    while let Some(at) = memmem::find(&text[from..], b"select ").map(|i| from + i) {
        let word = at == 0 || !in_name(text[at - 1]);
        let repeat = if word {
            repeated(&text, at, &mut left)
        } else {
            None
        };
        if let Some(repeat) = repeat {
            out.extend_from_slice(&text[from..repeat.unit_end]);
            out.extend_from_slice(b" /*repeat");
            out.extend_from_slice(repeat.union);
            out.extend_from_slice(b"*/");
            from = repeat.end;
        } else {
            out.extend_from_slice(&text[from..at + 7]);
            from = at + 7;
        }
    }
    out.extend_from_slice(&text[from..]);
    out
}

/// A select that is repeated: where its first copy ends and its last, and what joins the last.
struct Repeat {
    unit_end: usize,
    end: usize,
    union: &'static [u8],
}

fn repeated(text: &[u8], start: usize, left: &mut usize) -> Option<Repeat> {
    for unit in memmem::find_iter(&text[start..], b" union ") {
        let unit_end = start + unit;
        *left = left.checked_sub(unit + 64)?;
        let mut found = None;
        let mut end = unit_end;
        while let Some((behind, union)) = copy(text, start..unit_end, end) {
            end = behind;
            found = Some(Repeat {
                unit_end,
                end,
                union,
            });
        }
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Where a further copy of `unit` ends that a union at `at` joins.
fn copy(text: &[u8], unit: std::ops::Range<usize>, at: usize) -> Option<(usize, &'static [u8])> {
    const UNIONS: [&[u8]; 2] = [b" union all", b" union"];
    let union = UNIONS
        .into_iter()
        .find(|union| text[at..].starts_with(union))?;
    let rest = text[at + union.len()..].strip_prefix(b" ")?;
    let behind = rest.strip_prefix(&text[unit])?;
    let complete = behind.is_empty()
        || behind[0] == b')'
        || [&b" union "[..], b" order by ", b" limit ", b" )"]
            .iter()
            .any(|next| behind.starts_with(next));
    complete.then_some((text.len() - behind.len(), union))
}
