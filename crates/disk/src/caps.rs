//! The caps on the command line: a class for the disks, one for the VM, and caps of one's own.

use clap::Args;

use crate::bucket::Cap;
use crate::classes;
use crate::pacer::Caps;
use crate::throttle::Limits;

/// Up to which size an I/O counts as one where no class sets it (Azure, SSD of AWS EBS).
const IO_UNIT: u32 = 256 * 1024;

#[derive(Debug, Args)]
pub struct CapOptions {
    /// The class of each disk; the other caps replace its own, one by one.
    #[arg(long)]
    pub class: Option<String>,
    /// The class of the VM, whose caps hold over all disks.
    #[arg(long)]
    vm: Option<String>,
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

impl CapOptions {
    /// The limits of disks of `size` bytes each and of their VM, to be switched on.
    pub fn resolve(&self, size: u64) -> Result<Limits, String> {
        let unknown = |option: &str, name: &str| {
            format!("{option} {name}: not known; `mydyno-disk classes` lists them")
        };
        let class = match &self.class {
            None => None,
            Some(name) => Some(classes::disk(name, size).ok_or(unknown("--class", name))?),
        };
        let vm = match &self.vm {
            None => None,
            Some(name) => Some(classes::vm(name).ok_or(unknown("--vm", name))?),
        };
        let of = |pick: fn(&Caps) -> Option<Cap>| class.as_ref().and_then(|c| pick(&c.caps));
        let mega = |mb: Option<f64>| mb.map(|mb| mb * 1e6);
        let ios = self.cap(of(|c| c.ios), self.iops, self.burst_iops, "iops")?;
        let bytes = self.cap(
            of(|c| c.bytes),
            mega(self.mbps),
            mega(self.burst_mbps),
            "mbps",
        )?;
        Ok(Limits {
            disk: Caps { ios, bytes },
            io_unit: class.map_or(IO_UNIT, |class| class.io_unit),
            vm,
            on: true,
            credits: 0.0,
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
