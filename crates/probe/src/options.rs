//! The options of `mydyno-probe sample`.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use mydyno_command::length;

/// The units of a time, in seconds.
const UNITS: [(&str, f64); 5] = [
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// Samples this host each tick into one file.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The file to write; it must not exist.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Time between two ticks, such as 100ms, 1s or 5m.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// How long to sample; without it until SIGTERM or SIGINT.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// A process to watch.
    #[arg(long, value_name = "ROLE=PID")]
    pub process: Vec<Named<u32>>,
    /// A process to watch whose number is in a file, which may come later and change.
    #[arg(long, value_name = "ROLE=FILE")]
    pub process_file: Vec<Named<PathBuf>>,
    /// Look so often at what the threads of these processes do, such as each 50ms; needs root, or
    /// their user.
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub states: Option<Duration>,
    /// End when this process is gone.
    #[arg(long, value_name = "PID")]
    pub owner: Option<u32>,
    #[command(flatten)]
    pub server: Server,
}

/// How the server is asked.
#[derive(Args, Clone, Debug)]
pub struct Server {
    /// Sample the server too, by user, password, socket, host and port of [client] in this option file.
    #[arg(id = "server_defaults", long = "server-defaults", value_name = "FILE")]
    pub defaults: Option<PathBuf>,
    /// Time between two questions to the server.
    #[arg(id = "server_interval", long = "server-interval", value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// An answer later than this is a gap.
    #[arg(id = "server_deadline", long = "server-deadline", value_name = "TIME", default_value = "500ms", value_parser = time)]
    pub deadline: Duration,
}

/// ROLE=VALUE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<T> {
    pub role: String,
    pub value: T,
}

impl<T: FromStr> FromStr for Named<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (role, value) = text.split_once('=').ok_or("write it as ROLE=VALUE")?;
        if role.is_empty()
            || !role
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
        {
            return Err("a role has letters, digits, _, - and . only".to_owned());
        }
        let value = value
            .parse()
            .map_err(|_| format!("{value}: not the number of a process"))?;
        Ok(Self {
            role: role.to_owned(),
            value,
        })
    }
}

impl Options {
    /// Reports what is wrong with the options in combination.
    ///
    /// # Errors
    /// A role that is given twice; states of no process.
    pub fn check(&self) -> Result<(), String> {
        let mut roles: Vec<&str> = self
            .process
            .iter()
            .map(|named| named.role.as_str())
            .collect();
        roles.extend(self.process_file.iter().map(|named| named.role.as_str()));
        roles.sort_unstable();
        match roles.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!(
                "{}: given for two processes; name each once",
                pair[0]
            )),
            None if self.states.is_some() && roles.is_empty() => Err(
                "--states: no process to look at; name one with --process or --process-file"
                    .to_owned(),
            ),
            None => Ok(()),
        }
    }
}

/// A time such as 250ms, 1s, 1.5s, 5m or 2h.
///
/// # Errors
/// Not a number with a unit, or no time at all.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text}: write a time such as 100ms, 1s or 5m");
    let seconds = length(text, &UNITS).ok_or_else(wrong)?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && time <= Duration::from_secs(400 * 86_400) => Ok(time),
        _ => Err(wrong()),
    }
}

/// A time between ticks.
fn interval(text: &str) -> Result<Duration, String> {
    let shortest = Duration::from_millis(10);
    match time(text)? {
        interval if interval < shortest => Err(format!("{text}: 10ms is the shortest")),
        interval => Ok(interval),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit() {
        assert_eq!(time("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("5m"), Ok(Duration::from_secs(300)));
        for wrong in [
            "", "1", "s", "-1s", "0s", "nans", "infs", "1d", "1 s", "1e99h",
        ] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
        assert!(interval("9ms").is_err());
    }

    #[test]
    fn a_role_names_a_process() {
        let named: Named<u32> = "mysqld=12".parse().unwrap();
        assert_eq!((named.role.as_str(), named.value), ("mysqld", 12));
        for wrong in ["12", "=12", "a/b=12", "a=b", "a=-1"] {
            assert!(wrong.parse::<Named<u32>>().is_err(), "{wrong}");
        }
    }
}
