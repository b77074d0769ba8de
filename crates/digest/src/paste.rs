//! Lines to paste into a client: the definition of each table of a statement, and its plan.

use super::legible::drives_a_terminal;
use super::piece::{block_comment, comment_starts, dashes, in_name, line_end, quoted};
use super::result::Example;

/// More tables are not listed.
const MOST: usize = 16;
/// What a server explains.
const EXPLAINED: [&str; 6] = ["select", "with", "insert", "replace", "update", "delete"];
/// Functions that have a FROM of their own.
const OWN_FROM: [&str; 4] = ["extract", "trim", "substring", "substr"];
/// What stands between a verb and its table.
const MODIFIERS: [&str; 8] = [
    "low_priority",
    "high_priority",
    "delayed",
    "quick",
    "ignore",
    "into",
    "table",
    "only",
];

/// What a client is given for an example: `USE`, `SHOW CREATE TABLE`, `EXPLAIN`.  The plan is left
/// out where the statement is not there in full, and where a client might take a part of it for a
/// command of its own.
pub fn paste(example: &Example) -> Vec<String> {
    let Some(words) = tokens(&example.query) else {
        return Vec::new();
    };
    let database = &*example.database;
    let mut found = Vec::new();
    let tables = tables(&words);
    let verb = words.iter().find_map(Token::word).unwrap_or_default();
    let explained = example.complete
        && EXPLAINED.contains(&verb.to_ascii_lowercase().as_str())
        && is_harmless(&example.query, &words);
    if !database.is_empty()
        && !database.chars().any(drives_a_terminal)
        && (explained || !tables.is_empty())
    {
        found.push(format!("USE {};", ticked(database)));
    }
    let lines = tables
        .iter()
        .map(|table| format!("SHOW CREATE TABLE {table}\\G"));
    found.extend(lines);
    if explained {
        found.push(format!("EXPLAIN {}\\G", example.query.trim()));
    }
    found
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// A name in backticks, without them.
    Name(String),
    Mark(u8),
}

impl Token<'_> {
    fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is(&self, word: &str) -> bool {
        self.word()
            .is_some_and(|found| found.eq_ignore_ascii_case(word))
    }

    fn one_of(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(word))
    }
}

/// Words, names and marks of a statement, without its literals and comments.
fn tokens(query: &str) -> Option<Vec<Token<'_>>> {
    let text = query.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let end = |end: Option<usize>| end.unwrap_or(text.len());
        at = match *byte {
            quote @ (b'\'' | b'"') => end(quoted(text, at + 1, quote, |_| false)),
            b'`' => {
                let close = quoted(text, at + 1, b'`', |_| false)?;
                found.push(Token::Name(
                    query.get(at + 1..close - 1)?.replace("``", "`"),
                ));
                close
            }
            b'/' if comment_starts(text, at) => end(block_comment(text, at + 2, |_| false)),
            b'-' if dashes(text, at) => end(line_end(text, at)),
            b'#' => end(line_end(text, at)),
            byte if in_name(byte) => {
                let length = text[at..].iter().take_while(|byte| in_name(**byte)).count();
                found.push(Token::Word(query.get(at..at + length)?));
                at + length
            }
            byte if byte <= b' ' => at + 1,
            mark => {
                found.push(Token::Mark(mark));
                at + 1
            }
        };
    }
    Some(found)
}

/// The tables of a statement, each once, as a client writes them.
fn tables(words: &[Token]) -> Vec<String> {
    let mut found = Vec::new();
    let mut own_from = Vec::new(); // for each open parenthesis
    let common: Vec<&str> = common_tables(words);
    for (at, token) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        match token {
            Token::Mark(b'(') => own_from.push(before.is_some_and(|word| word.one_of(&OWN_FROM))),
            Token::Mark(b')') => drop(own_from.pop()),
            _ => {}
        }
        let from = token.is("from") && own_from.last() != Some(&true);
        let update =
            token.is("update") && before.is_none_or(|word| !word.one_of(&["key", "for", "on"]));
        let join = token.is("join")
            || token.is("straight_join") && before.is_some_and(|word| !word.is("select"));
        let verb = at == 0 && token.one_of(&["insert", "replace"]) || token.is("into");
        if from || update || join || verb {
            listed(&words[at + 1..], from || update, &common, &mut found);
        }
    }
    found.truncate(MOST);
    found
}

/// The names that WITH defines.
fn common_tables<'a>(words: &'a [Token]) -> Vec<&'a str> {
    if !words.iter().any(|word| word.is("with")) {
        return Vec::new();
    }
    let named = words
        .windows(3)
        .filter(|three| three[1].is("as") && three[2] == Token::Mark(b'('));
    named.filter_map(|three| three[0].word()).collect()
}

/// Adds the tables that stand there, several where commas join them.
fn listed(words: &[Token], several: bool, common: &[&str], found: &mut Vec<String>) {
    let mut rest = words;
    loop {
        while let [word, more @ ..] = rest {
            if !word.one_of(&MODIFIERS) {
                break;
            }
            rest = more;
        }
        let Some((table, more)) = table(rest, common) else {
            return;
        };
        if let Some(table) = table.filter(|table| !found.contains(table)) {
            found.push(table);
        }
        rest = more;
        // An alias, with or without AS.
        if let [word, more @ ..] = rest {
            rest = if word.is("as") { more } else { rest };
        }
        if let [Token::Word(_) | Token::Name(_), comma @ ..] = rest {
            if comma.first() == Some(&Token::Mark(b',')) {
                rest = comma;
            }
        }
        match rest {
            [Token::Mark(b','), more @ ..] if several => rest = more,
            _ => return,
        }
    }
}

/// The table at the start, none for a name that is no table; and what stands behind it.
fn table<'a, 'b>(
    words: &'b [Token<'a>],
    common: &[&str],
) -> Option<(Option<String>, &'b [Token<'a>])> {
    let (first, rest) = words.split_first()?;
    let name = name_of(first)?;
    if let [Token::Mark(b'.'), second, more @ ..] = rest {
        let table = name_of(second)?;
        return Some((Some(format!("{}.{}", ticked(name), ticked(table))), more));
    }
    if matches!(first, Token::Word(_))
        && rest.first() == Some(&Token::Mark(b'('))
        && !words
            .iter()
            .any(|word| word.one_of(&["values", "value", "select"]))
    {
        return None; // a function
    }
    let no_table = first.one_of(&["dual", "select", "lateral", "outfile", "dumpfile", "set"])
        || common.iter().any(|known| first.is(known));
    Some((Some(ticked(name)).filter(|_| !no_table), rest))
}

fn name_of<'a>(token: &'a Token) -> Option<&'a str> {
    let name = match token {
        Token::Word(word) if !word.starts_with('@') => word,
        Token::Name(name) => name.as_str(),
        _ => return None,
    };
    (!name.chars().any(drives_a_terminal)).then_some(name)
}

fn ticked(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Whether a client sends the text as it is: no `;` or `\` of its own, nothing that it would obey,
/// no character that the terminal would.
fn is_harmless(query: &str, words: &[Token]) -> bool {
    let commands = |line: &str| {
        let start = line.trim_start().to_ascii_lowercase();
        start.starts_with("delimiter") || start.starts_with('\\')
    };
    let marks = [Token::Mark(b';'), Token::Mark(b'\\')];
    let obeyed = words.iter().any(|word| marks.contains(word))
        || (query.contains('\\') && query.contains(';'))
        || query.lines().any(commands)
        || query
            .chars()
            .any(|c| drives_a_terminal(c) && !matches!(c, '\n' | '\r' | '\t'));
    !obeyed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pasted(query: &str, database: &str) -> Vec<String> {
        paste(&Example {
            query: query.to_owned(),
            query_time_us: 0,
            at_us: None,
            database: database.into(),
            complete: true,
        })
    }

    fn found(query: &str) -> Vec<String> {
        tables(&tokens(query).unwrap())
    }

    #[test]
    fn a_statement_has_its_tables_and_its_plan() {
        assert_eq!(
            pasted("SELECT c FROM item WHERE id=1", "shop"),
            [
                "USE `shop`;",
                "SHOW CREATE TABLE `item`\\G",
                "EXPLAIN SELECT c FROM item WHERE id=1\\G"
            ]
        );
        assert_eq!(pasted("COMMIT", "shop"), [""; 0]);
        assert_eq!(pasted("administrator command: Quit", ""), [""; 0]);
    }

    #[test]
    fn tables_are_found_where_they_stand() {
        for (query, want) in [
            ("select 1", &[][..]),
            (
                "select a from t, `u v` as x, s.w y where b='from z'",
                &["`t`", "`u v`", "`s`.`w`"],
            ),
            (
                "select * from a left join b on a.i=b.i join c using(i)",
                &["`a`", "`b`", "`c`"],
            ),
            ("select * from (select x from a) d join b", &["`a`", "`b`"]),
            (
                "with c as (select 1 from a) select * from c join b",
                &["`a`", "`b`"],
            ),
            (
                "insert low_priority into t (a) values (1) on duplicate key update a=2",
                &["`t`"],
            ),
            ("insert ignore t values (1)", &["`t`"]),
            ("replace into t select * from u for update", &["`t`", "`u`"]),
            ("update t set a=(select max(b) from u)", &["`t`", "`u`"]),
            ("delete from t where a=1", &["`t`"]),
            ("delete a from t a join u on 1", &["`t`", "`u`"]),
            (
                "select extract(day from d), trim(both 'x' from y) from t",
                &["`t`"],
            ),
            ("select a into @x from t -- from no", &["`t`"]),
            (
                "select straight_join a.x from a straight_join b",
                &["`a`", "`b`"],
            ),
            ("select a from dual", &[]),
            ("select a from t union all select b from t", &["`t`"]),
        ] {
            assert_eq!(found(query), want, "{query}");
        }
    }

    #[test]
    fn nothing_that_a_client_would_obey_is_pasted() {
        for query in [
            "select 1; drop table t",
            "select 1 \\! sh",
            "select '\\'; drop table t -- '",
            "select 1\ndelimiter x",
            "select '\u{1b}[2J'",
        ] {
            assert!(
                pasted(query, "")
                    .iter()
                    .all(|line| !line.starts_with("EXPLAIN")),
                "{query}"
            );
        }
        assert!(pasted("select 'a;b' from t", "")
            .last()
            .unwrap()
            .starts_with("EXPLAIN"));
    }
}
