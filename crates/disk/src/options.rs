//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::caps::CapOptions;
use crate::command::parse_level;
use crate::disk::{Latency, Setup};
use crate::spin::Spin;
use crate::store::Files;
use crate::stripe::Stripe;
use crate::throttle::Limits;
use crate::wire::Wire;

/// Lab disks with the caps and bursts of cloud disks, served as one striped device.
#[derive(Debug, Parser)]
#[command(version)]
pub struct Options {
    #[command(subcommand)]
    pub task: Task,
}

#[derive(Debug, Subcommand)]
pub enum Task {
    /// Serve one device until it is unmounted or terminated.
    Serve(Box<Serve>),
    /// Take slices of CPUs as ordered, so that the rest runs at a known share of its speed.
    Spin(Spin),
    /// Connect two network interfaces by a wire of a given delay.
    Wire(Wire),
    /// List the disk and VM classes.
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
    /// The file that holds a disk, made if it is not there; once for each disk of the stripe.
    #[arg(long, required = true)]
    pub base: Vec<PathBuf>,
    /// Where what is written after `freeze` is stored, for each disk; the file has no name while it
    /// is used.
    #[arg(long, required = true)]
    pub overlay: Vec<PathBuf>,
    /// The size of the device in bytes, a multiple of 4096; all disks share it.
    #[arg(long, value_parser = parse_size)]
    pub size: u64,
    /// The bytes on one disk before the next one's, a multiple of 4096.
    #[arg(long, default_value_t = 512 * 1024, value_parser = parse_size)]
    pub chunk: u64,
    /// The bases are frozen already: begin with empty overlays.
    #[arg(long)]
    pub frozen: bool,
    /// All buckets at the start: empty, full, or a share between 0 and 1.
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
    /// How the device's bytes lie on its disks.
    pub fn stripe(&self) -> Stripe {
        Stripe::new(self.base.len(), self.chunk)
    }

    /// The files of each disk.
    pub fn files(&self) -> Vec<Files> {
        let pairs = self.base.iter().zip(&self.overlay);
        pairs
            .map(|(base, overlay)| Files {
                base: base.clone(),
                overlay: overlay.clone(),
            })
            .collect()
    }

    /// What the device is to be, or which option is wrong.
    pub fn setup(&self) -> Result<Setup, String> {
        if self.base.len() != self.overlay.len() {
            return Err("--base and --overlay: as many of the one as of the other".into());
        }
        let each = self.stripe().disk_size(self.size);
        if each == 0 {
            return Err("--size: less than one --chunk on each disk".into());
        }
        let limits = Limits {
            on: !self.uncapped,
            credits: self.credits,
            ..self.caps.resolve(each)?
        };
        let none = limits.disk.ios.is_none() && limits.disk.bytes.is_none() && limits.vm.is_none();
        if none && !self.uncapped {
            return Err(
                "no cap given: name a --class, --iops, --mbps, a --vm, or --uncapped".into(),
            );
        }
        Ok(Setup {
            class: self.caps.class.clone(),
            limits,
            latency: Latency {
                read: Duration::from_micros(self.latency.read_us),
                write: Duration::from_micros(self.latency.write_us),
                flush: Duration::from_micros(self.latency.flush_us),
            },
        })
    }
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
    use crate::bucket::Cap;

    fn setup(more: &[&str]) -> Result<Setup, String> {
        let fixed = "mydyno-disk serve --mount m --base b --overlay o --size 4096";
        let all = fixed.split(' ').chain(more.iter().copied());
        let options = Options::try_parse_from(all).map_err(|error| error.to_string())?;
        match options.task {
            Task::Serve(serve) => serve.setup(),
            Task::Classes { .. } | Task::Spin(_) | Task::Wire(_) => Err("not serve".into()),
        }
    }

    #[test]
    fn an_option_replaces_one_cap_of_the_class() {
        let given = ["--class", "azure-p15", "--iops", "500"];
        let caps = setup(&given).expect("valid").limits.disk;
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
        let caps = setup(&given).expect("valid").limits.disk;
        assert_eq!(caps.ios, Some(Cap::bursting(100.0, 300.0, 2.0)));
        assert_eq!(caps.bytes, None);
    }

    #[test]
    fn caps_are_optional() {
        assert!(setup(&[]).is_err());
        let free = setup(&["--uncapped"]).expect("valid");
        assert!(!free.limits.on && free.limits.disk.ios.is_none());
        let waiting = setup(&["--uncapped", "--class", "aws-gp3"]).expect("valid");
        assert!(!waiting.limits.on && waiting.limits.disk.ios.is_some());
    }

    #[test]
    fn each_base_is_a_disk_and_gp2_takes_the_size_of_one() {
        let files = "mydyno-disk serve --mount m --base a --base b --overlay c --overlay d";
        let more = [
            "--size",
            "429496729600",
            "--class",
            "aws-gp2",
            "--vm",
            "azure-d2s-v3",
        ];
        let all = files.split(' ').chain(more);
        let Task::Serve(serve) = Options::try_parse_from(all).expect("valid").task else {
            panic!("serve");
        };
        assert_eq!(serve.stripe(), Stripe::new(2, 512 * 1024));
        assert_eq!(serve.files()[1].overlay, PathBuf::from("d"));
        let limits = serve.setup().expect("valid").limits;
        assert_eq!(limits.disk.ios.map(|cap| cap.base), Some(600.0));
        assert_eq!(limits.vm.map(|vm| vm.name), Some("azure-d2s-v3".into()));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let wrong: [&[&str]; 11] = [
            &["--class", "azure-p5"],
            &["--vm", "azure-p15"],
            &["--class", "azure-d8s-v3"],
            &["--uncapped", "--chunk", "5000"],
            &["--uncapped", "--base", "b2"],
            &["--uncapped", "--base", "b2", "--overlay", "o2"],
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
