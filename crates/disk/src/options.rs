//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::bucket::Cap;
use crate::classes;
use crate::command::parse_level;
use crate::disk::{Latency, Setup};
use crate::pacer::Caps;

/// A lab disk with the caps and bursts of a cloud disk.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Options {
    #[command(subcommand)]
    pub task: Task,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Serve one disk until it is unmounted or told to end.
    Serve(Box<Serve>),
    /// List the disk classes.
    Classes {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct Serve {
    /// An empty directory; `disk` and `ctl` appear in it.
    #[arg(long)]
    pub mount: PathBuf,
    /// The file that holds the disk; made if it is not there.
    #[arg(long)]
    pub base: PathBuf,
    /// Where what is written after `freeze` is kept; the file has no name while it is used.
    #[arg(long)]
    pub overlay: PathBuf,
    /// The size of the disk in bytes, a multiple of 4096.
    #[arg(long, value_parser = parse_size)]
    pub size: u64,
    /// The base is frozen already: begin with an empty overlay.
    #[arg(long)]
    pub frozen: bool,
    /// The bucket at the start: empty, full, or a share between 0 and 1.
    #[arg(long, default_value = "empty", value_parser = parse_level)]
    pub credits: f64,
    /// Start with the caps off; `cap on` switches them on.
    #[arg(long)]
    pub uncapped: bool,
    /// Threads that take requests.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: u16,
    /// End when this process has ended.
    #[arg(long)]
    pub owner_pid: Option<u32>,
    #[command(flatten)]
    caps: CapOptions,
    #[command(flatten)]
    latency: LatencyOptions,
}

#[derive(Debug, Args)]
struct CapOptions {
    /// A disk class; the other caps replace its own, one by one.
    #[arg(long)]
    class: Option<String>,
    /// I/Os per second.
    #[arg(long, value_parser = parse_rate)]
    iops: Option<f64>,
    /// 10^6 bytes per second.
    #[arg(long, value_parser = parse_rate)]
    mbps: Option<f64>,
    /// I/Os per second while there are credits.
    #[arg(long, value_parser = parse_rate)]
    burst_iops: Option<f64>,
    /// 10^6 bytes per second while there are credits.
    #[arg(long, value_parser = parse_rate)]
    burst_mbps: Option<f64>,
    /// How long a full bucket lasts at the burst rate; 1800 if a burst is given without it.
    #[arg(long, value_parser = parse_rate)]
    burst_seconds: Option<f64>,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_field_names)] // the unit belongs to the name
struct LatencyOptions {
    /// Added to every read.
    #[arg(long = "read-latency-us", default_value_t = 0)]
    read_us: u64,
    /// Added to every write.
    #[arg(long = "write-latency-us", default_value_t = 0)]
    write_us: u64,
    /// Time that a flush takes.
    #[arg(long = "flush-latency-us", default_value_t = 0)]
    flush_us: u64,
}

impl Serve {
    /// What the disk is to be, or which option is wrong.
    pub fn setup(&self) -> Result<Setup, String> {
        let caps = self.caps.resolve(self.size)?;
        if caps.ios.is_none() && caps.bytes.is_none() && !self.uncapped {
            return Err("no cap given: name a --class, --iops, --mbps, or --uncapped".into());
        }
        Ok(Setup {
            class: self.caps.class.clone(),
            caps,
            capped: !self.uncapped,
            credits: self.credits,
            latency: Latency {
                read: Duration::from_micros(self.latency.read_us),
                write: Duration::from_micros(self.latency.write_us),
                flush: Duration::from_micros(self.latency.flush_us),
            },
        })
    }
}

impl CapOptions {
    fn resolve(&self, size: u64) -> Result<Caps, String> {
        let class = match &self.class {
            None => None,
            Some(name) => Some(classes::find(name, size).ok_or_else(|| {
                format!("--class {name}: not known; `mydyno-disk classes` lists them")
            })?),
        };
        let mega = |mb: Option<f64>| mb.map(|mb| mb * 1e6);
        Ok(Caps {
            ios: self.cap(
                class.and_then(|c| c.ios),
                self.iops,
                self.burst_iops,
                "iops",
            )?,
            bytes: self.cap(
                class.and_then(|c| c.bytes),
                mega(self.mbps),
                mega(self.burst_mbps),
                "mbps",
            )?,
        })
    }

    /// One cap: the class's own where nothing else is given.
    fn cap(
        &self,
        class: Option<Cap>,
        base: Option<f64>,
        burst: Option<f64>,
        name: &str,
    ) -> Result<Option<Cap>, String> {
        if base.is_none() && burst.is_none() && self.burst_seconds.is_none() {
            return Ok(class);
        }
        let Some(base) = base.or(class.map(|cap| cap.base)) else {
            return match burst {
                Some(_) => Err(format!("--burst-{name} needs --{name}")),
                None => Ok(None),
            };
        };
        let burst = burst
            .or(class.map(|cap| cap.burst))
            .unwrap_or(base)
            .max(base);
        let seconds = self.burst_seconds.unwrap_or(1800.0);
        Ok(Some(Cap::bursting(base, burst, seconds)))
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|rate: &f64| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| format!("{text:?}: a number above 0 is wanted"))
}

fn parse_size(text: &str) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|size: &u64| *size > 0 && size % 4096 == 0 && *size < 1 << 62)
        .ok_or_else(|| format!("{text:?}: a multiple of 4096 is wanted"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(more: &[&str]) -> Result<Setup, String> {
        let fixed = "mydyno-disk serve --mount m --base b --overlay o --size 4096";
        let all = fixed.split(' ').chain(more.iter().copied());
        let options = Options::try_parse_from(all).map_err(|error| error.to_string())?;
        match options.task {
            Task::Serve(serve) => serve.setup(),
            Task::Classes { .. } => Err("not serve".into()),
        }
    }

    #[test]
    fn an_option_replaces_one_cap_of_the_class() {
        let caps = setup(&["--class", "azure-p15", "--iops", "500"])
            .expect("valid")
            .caps;
        assert_eq!(caps.ios, Some(Cap::bursting(500.0, 3500.0, 1800.0)));
        assert_eq!(caps.bytes, Some(Cap::bursting(125e6, 170e6, 1800.0)));
    }

    #[test]
    fn caps_of_ones_own_need_no_class() {
        let given = [
            "--iops",
            "100",
            "--burst-iops",
            "300",
            "--burst-seconds",
            "2",
        ];
        let caps = setup(&given).expect("valid").caps;
        assert_eq!(caps.ios, Some(Cap::bursting(100.0, 300.0, 2.0)));
        assert_eq!(caps.bytes, None);
    }

    #[test]
    fn no_cap_must_be_said() {
        assert!(setup(&[]).is_err());
        let free = setup(&["--uncapped"]).expect("valid");
        assert!(!free.capped && free.caps.ios.is_none());
        let waiting = setup(&["--uncapped", "--class", "aws-gp3"]).expect("valid");
        assert!(!waiting.capped && waiting.caps.ios.is_some());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wrong: [&[&str]; 6] = [
            &["--class", "azure-p5"],
            &["--burst-iops", "10"],
            &["--iops", "0"],
            &["--iops", "many"],
            &["--uncapped", "--credits", "2"],
            &["--uncapped", "--workers", "0"],
        ];
        for more in wrong {
            assert!(setup(more).is_err(), "{more:?}");
        }
    }
}
