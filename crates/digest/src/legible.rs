//! Texts from a log made safe to print, and cut to a width.

/// Whether a terminal would obey this character or hide text by it: controls, line and direction
/// marks, tags, and what has no width.
#[must_use]
pub fn drives_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The text in one line: blanks for line ends and tabs, `\x1b` for what would drive a terminal.
#[must_use]
pub fn line(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' | '\r' => found.push(' '),
            c => push(&mut found, c),
        }
    }
    found
}

/// The text in its own lines, each safe to print and folded at `width` columns, between words where
/// it can be.
#[must_use]
pub fn lines(text: &str, width: usize) -> Vec<String> {
    text.trim_end()
        .split('\n')
        .flat_map(|line| folded(line.trim_end_matches('\r'), width))
        .collect()
}

fn folded(text: &str, most: usize) -> Vec<String> {
    let mut folds = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let mut piece = String::new();
        match c {
            '\t' => piece.push(' '),
            c => push(&mut piece, c),
        }
        let needs = width(&piece);
        if used + needs > most {
            let word = folds.last_mut().map_or_else(String::new, last_word);
            if piece == " " && word.is_empty() {
                continue; // the end of the line stands for it
            }
            used = width(&word);
            folds.push(word);
        }
        used += needs;
        if let Some(last) = folds.last_mut() {
            last.push_str(&piece);
        }
    }
    folds
}

/// Takes the word from a line that another would make too long; none if the line ends with one.
fn last_word(text: &mut String) -> String {
    let word = match text.rfind([' ', ',']).map(|at| at + 1) {
        Some(at) if text.len() - at < text.len().div_ceil(2) => text.split_off(at),
        _ => String::new(),
    };
    text.truncate(text.trim_end().len());
    word
}

fn push(text: &mut String, c: char) {
    use std::fmt::Write;
    if !drives_a_terminal(c) {
        text.push(c);
    } else if u32::from(c) < 0x100 {
        // Writing into a text cannot fail.
        let _ = write!(text, "\\x{:02x}", u32::from(c));
    } else {
        let _ = write!(text, "\\u{{{:x}}}", u32::from(c));
    }
}

/// The start of a safe text that fits `most` columns; `…` at its end when it was cut.
#[must_use]
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut used = 1;
    let fits = |c: &char| {
        used += columns(*c);
        used <= most
    };
    let start: String = text.chars().take_while(fits).collect();
    format!("{}…", start.trim_end())
}

/// How many columns a safe text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.chars().map(columns).sum()
}

/// East Asian and pictures take two columns (Unicode's annex 11, by its large blocks), marks none.
fn columns(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_drives_the_terminal() {
        let hostile = "a\x1b[2Jb\u{9b}31m\u{202e}x\u{7f}\u{0}\r\n\tend";
        assert_eq!(
            line(hostile),
            "a\\x1b[2Jb\\x9b31m\\u{202e}x\\x7f\\x00   end"
        );
        assert!(lines(hostile, 8)
            .iter()
            .all(|line| !line.chars().any(drives_a_terminal)));
    }

    #[test]
    fn texts_are_cut_by_columns() {
        assert_eq!(cut("select", 6), "select");
        assert_eq!(cut("select 1", 6), "selec…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(lines("ab\ncdef\n", 3), ["ab", "cde", "f"]);
        let text = "select aaa,bbb from t where id=123456789012345";
        assert_eq!(
            lines(text, 16),
            ["select aaa,bbb", "from t where", "id=1234567890123", "45"]
        );
    }
}
