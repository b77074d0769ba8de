//! What a digest is asked for.

/// How the log is read and what is kept of it.
#[derive(Debug, Clone)]
pub struct Config {
    /// Fingerprints as pt-query-digest makes them, to the letter.
    pub compat_pt: bool,
    /// The width of a time window, in seconds; none: no windows.
    pub window_s: Option<u64>,
    pub filter: Filter,
    /// The most bytes of a class's slowest statement that are kept.
    pub keep_example_bytes: usize,
    /// The literals of the examples are replaced by `?`.
    pub redact: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            compat_pt: false,
            window_s: None,
            filter: Filter::default(),
            keep_example_bytes: 1024,
            redact: false,
        }
    }
}

/// Which events are gathered; what is not given lets every event pass.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Bytes that the statement has in it, whatever their case.
    pub text: Option<String>,
    pub user: Option<String>,
    /// A host's name or address, as the log has it.
    pub host: Option<String>,
    pub database: Option<String>,
    /// From this time on, in microseconds since 1970; an event without a time does not pass.
    pub since_us: Option<i64>,
    /// Before this time, in microseconds since 1970; an event without a time does not pass.
    pub until_us: Option<i64>,
    pub min_time_us: u64,
}

impl Filter {
    /// Whether there is anything to ask of an event.
    #[must_use]
    pub fn active(&self) -> bool {
        self.text.is_some()
            || self.user.is_some()
            || self.host.is_some()
            || self.database.is_some()
            || self.since_us.is_some()
            || self.until_us.is_some()
            || self.min_time_us > 0
    }
}
