//! Statements of one shape have one fingerprint, whatever is in their literals.

use proptest::prelude::*;

use super::fingerprint::fingerprint;
use super::shape::shape;

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
