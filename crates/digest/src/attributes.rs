//! The attributes of a header: what each name means, in which unit, and how it is reported.

use std::sync::Arc;

/// What is to be done with an attribute's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// A count or a number of bytes; the number is the attribute's.
    Count(u16),
    /// A time, in millionths of what is written.
    Time(u16),
    /// Yes or No.
    Flag(u16),
    /// An error number: a flag unless 0.
    Error(u16),
    /// The database.
    Schema,
    /// One of so many statements was logged.
    RateLimit,
    /// A word or number that is never reported.
    Word,
    /// A word where others of that name may have a number.
    Text,
    /// All to the end of the line, not reported.
    Line,
    /// Nothing, to the end of the line.
    Nothing,
}

impl Slot {
    /// The attribute of a count or a time.
    pub fn number(self) -> Option<u16> {
        match self {
            Self::Count(attribute) | Self::Time(attribute) => Some(attribute),
            _ => None,
        }
    }

    /// Whether it is of an attribute that is reported.
    pub fn counts(self) -> bool {
        matches!(self, Self::Flag(_) | Self::Error(_)) || self.number().is_some()
    }
}

/// An attribute that is reported.
#[derive(Debug, Clone)]
pub(super) struct Attribute {
    pub name: Arc<str>,
    pub decimals: u8,
}

/// The attributes that the summary adds up; every set of attributes begins with them.
pub(super) const QUERY_TIME: u16 = 0;
pub(super) const LOCK_TIME: u16 = 1;
pub(super) const ROWS_SENT: u16 = 2;
pub(super) const ROWS_EXAMINED: u16 = 3;
/// How many those are.
pub(super) const TOTALS: usize = 4;
const FIRST: [(&str, u8); TOTALS] = [
    ("query_time_s", 6),
    ("lock_time_s", 6),
    ("rows_sent", 0),
    ("rows_examined", 0),
];

/// More names than any server has.
const MOST: usize = 1024;
const LONGEST: usize = 64;

/// The attributes seen, in their order; an attribute's number is its place.
#[derive(Debug)]
pub(super) struct Attributes(Vec<Attribute>);

impl Default for Attributes {
    fn default() -> Self {
        let first = FIRST.iter();
        Self(
            first
                .map(|(name, decimals)| Attribute {
                    name: Arc::from(*name),
                    decimals: *decimals,
                })
                .collect(),
        )
    }
}

impl Attributes {
    /// The attribute of that number.
    pub fn get(&self, number: u16) -> &Attribute {
        &self.0[usize::from(number)]
    }

    /// Whether a name was dropped.
    pub fn full(&self) -> bool {
        self.0.len() >= MOST
    }

    /// What to do with the attribute `key`, which has this value.
    pub fn slot(&mut self, key: &[u8], value: &[u8]) -> Slot {
        let name = String::from_utf8_lossy(key).to_ascii_lowercase();
        match name.as_str() {
            "schema" | "db" => return Slot::Schema,
            "log_slow_rate_limit" => return Slot::RateLimit,
            "explain" => return Slot::Line,
            "thread_id" | "id" | "innodb_trx_id" | "start" | "end" => return Slot::Word,
            "errno" | "last_errno" | "killed" => {
                return self.numbered(name, 0).map_or(Slot::Word, Slot::Error)
            }
            _ => {}
        }
        if value.starts_with(b"Yes") || value.starts_with(b"No") {
            return self.numbered(name, 0).map_or(Slot::Word, Slot::Flag);
        }
        if !value.first().is_some_and(u8::is_ascii_digit) {
            return Slot::Text;
        }
        if !name.ends_with("_time") && !name.ends_with("_wait") {
            return self.numbered(name, 0).map_or(Slot::Word, Slot::Count);
        }
        // MariaDB writes these in milliseconds with four digits behind the point.
        let millis = name == "engine_time" || name.starts_with("pages_");
        let number = self.numbered(format!("{name}_s"), if millis { 9 } else { 6 });
        number.map_or(Slot::Word, Slot::Time)
    }

    fn numbered(&mut self, name: String, decimals: u8) -> Option<u16> {
        if let Some(at) = self.0.iter().position(|known| *known.name == *name) {
            return u16::try_from(at).ok();
        }
        let number = u16::try_from(self.0.len()).ok();
        if self.0.len() >= MOST || name.len() > LONGEST {
            return None;
        }
        self.0.push(Attribute {
            name: Arc::from(name),
            decimals,
        });
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_unit_in_its_name() {
        let mut attributes = Attributes::default();
        for (key, value, name, decimals) in [
            ("Query_time", "0.1", "query_time_s", 6),
            ("InnoDB_IO_r_wait", "0.1", "innodb_io_r_wait_s", 6),
            ("Engine_time", "12.7423", "engine_time_s", 9),
            ("Pages_read_time", "1.5", "pages_read_time_s", 9),
            ("Rows_sent", "1", "rows_sent", 0),
            ("Bytes_sent", "1", "bytes_sent", 0),
        ] {
            let (Slot::Count(number) | Slot::Time(number)) =
                attributes.slot(key.as_bytes(), value.as_bytes())
            else {
                panic!("{key}");
            };
            let found = attributes.get(number);
            assert_eq!((&*found.name, found.decimals), (name, decimals));
        }
    }

    #[test]
    fn what_is_no_measure_is_not_reported() {
        let mut attributes = Attributes::default();
        assert_eq!(attributes.slot(b"Thread_id", b"5"), Slot::Word);
        assert_eq!(attributes.slot(b"Schema", b"5"), Slot::Schema);
        assert_eq!(attributes.slot(b"Stored_routine", b"a.b"), Slot::Text);
        assert!(matches!(
            attributes.slot(b"Full_scan", b"Yes"),
            Slot::Flag(_)
        ));
        assert!(matches!(
            attributes.slot(b"Last_errno", b"1062"),
            Slot::Error(_)
        ));
    }
}
