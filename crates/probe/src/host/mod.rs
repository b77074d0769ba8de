//! The source `host`: everything of /proc and /sys that is not of one process.

pub mod cgroup;
mod cpu;
mod disk;
mod keyed;
mod net;
mod storage;

use std::time::{Duration, Instant};

use crate::file::Look;
use crate::file::Root;
use crate::table::{Source, Table};

/// How often what changes seldom is looked at: link speeds, limits, files that may come later.
pub const SELDOM: Duration = Duration::from_secs(10);

/// One file, or a few that belong together.
trait Part {
    /// Sets its columns, or takes them away where it can no longer be read.
    fn read(&mut self, look: &mut Look, table: &mut Table);
}

/// All parts of the host.
pub struct Host {
    parts: Vec<Box<dyn Part>>,
    look: Look,
    looked: Instant,
}

impl Host {
    /// Opens what is there.
    #[must_use]
    pub fn new(root: &Root) -> Self {
        Self {
            parts: vec![
                Box::new(cpu::Cpus::new(root)),
                Box::new(cpu::soft_irqs(root)),
                Box::new(cpu::RunDelay::new(root)),
                Box::new(keyed::Load::new(root)),
                Box::new(keyed::pressure(root, "cpu")),
                Box::new(keyed::pressure(root, "io")),
                Box::new(keyed::pressure(root, "memory")),
                Box::new(keyed::memory(root)),
                Box::new(keyed::vmstat(root)),
                Box::new(disk::Disks::new(root)),
                Box::new(net::Interfaces::new(root)),
                Box::new(net::Softnet::new(root)),
                Box::new(net::Tcp::new(root, "proc/self/net/snmp")),
                Box::new(net::Tcp::new(root, "proc/self/net/netstat")),
                Box::new(storage::Md::new(root)),
                Box::new(storage::Loops::new(root)),
                Box::new(storage::zfs(root, "arcstats", "arc")),
                Box::new(storage::zfs(root, "zil", "zil")),
                Box::new(storage::Btrfs::new(root)),
                Box::new(cgroup::Group::new(root, "self", "self")),
            ],
            look: Look::default(),
            looked: Instant::now(),
        }
    }
}

impl Source for Host {
    fn name(&self) -> &'static str {
        "host"
    }

    fn read(&mut self, table: &mut Table) -> Result<bool, String> {
        for part in &mut self.parts {
            part.read(&mut self.look, table);
        }
        self.look.seldom = self.looked.elapsed() >= SELDOM;
        if self.look.seldom {
            self.looked = Instant::now();
        }
        Ok(true)
    }
}
