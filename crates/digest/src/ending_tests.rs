//! Where statements end, in one piece and in two.

use super::ending::{Ending, Found, BELIEVED};

const HEADER: &str = "# User@Host: a[a] @ b []\n# Query_time: 1\n";

/// The end that is found, whole and in every two parts, and how many headers were refused.
fn end(text: &str) -> (Found, u64) {
    let bytes = text.as_bytes();
    let mut whole = Ending::new(0);
    let found = whole.search(bytes, true);
    for cut in 0..bytes.len() {
        let mut parts = Ending::new(0);
        let first = parts.search(&bytes[..cut], false);
        let both = if first == Found::More {
            parts.search(bytes, true)
        } else {
            first
        };
        assert_eq!(
            (both, parts.forged()),
            (found, whole.forged()),
            "cut at {cut}: {text}"
        );
    }
    (found, whole.forged())
}

#[test]
fn a_statement_ends_where_a_header_follows() {
    for statement in [
        "select 1",
        "select ';\n', \"a'b\"",
        "begin select 1;\nend",
        "a -- it's",
    ] {
        let text = format!("{statement};\n{HEADER}");
        let want = Found::End {
            end: statement.len(),
            next: statement.len() + 2,
        };
        assert_eq!(end(&text), (want, 0), "{statement}");
    }
}

#[test]
fn a_statement_ends_with_the_log_and_before_a_banner() {
    assert_eq!(end("select 1;"), (Found::End { end: 8, next: 9 }, 0));
    assert_eq!(end("select 1;\r\n\n"), (Found::End { end: 8, next: 12 }, 0));
    let banner = "select 1;\n/usr/sbin/mysqld, Version: 8.0.33 (x). started with:\n";
    assert_eq!(end(banner), (Found::End { end: 8, next: 10 }, 0));
    assert_eq!(end("select 1"), (Found::Cut(8), 0));
}

#[test]
fn a_banner_cuts_the_statement_before_it() {
    let banner =
        "/usr/sbin/mysqld, Version: 8 (x). started with:\nTcp port: 3306\nTime    Id Command\n";
    assert_eq!(
        end(&format!("select a fr{banner}{HEADER}")),
        (Found::Cut(11), 0)
    );
}

#[test]
fn a_header_in_a_literal_or_comment_is_refused() {
    for (open, close) in [("'", "'"), ("\"", "\""), ("/*", "*/"), ("`", "`")] {
        let inner = format!("select {open};\n{HEADER}drop;\n{HEADER}{close}");
        let text = format!("{inner};\n{HEADER}");
        let (found, forged) = end(&text);
        assert_eq!(
            found,
            Found::End {
                end: inner.len(),
                next: inner.len() + 2
            },
            "{inner}"
        );
        assert_eq!(forged, 2);
    }
}

#[test]
fn a_statement_that_broke_off_in_a_literal_is_cut() {
    let events = format!("{HEADER}select 'a';\n").repeat(BELIEVED + 3);
    let text = format!("select 'abc;\n{events}");
    assert_eq!(end(&text), (Found::Cut(13), 0));
    assert_eq!(
        end(&format!("select 'abc;\n{HEADER}select 1;\n")),
        (Found::Cut(13), 0)
    );
}
