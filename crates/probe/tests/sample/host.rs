//! The host's files of old and new kernels, and what comes and goes in them.

use std::path::Path;

use mydyno_probe::file::Root;
use mydyno_probe::host::Host;
use mydyno_probe::table::{Event, Source, Table};

use crate::folder::Folder;

/// Looked up in the recorded files by other means.
const WANTED_6_18: &[(&str, &str, i64)] = &[
    ("cpu.user", "all", 81_048),
    ("cpu.idle", "1", 244_371),
    ("cpu.interrupts", "", 1_286_954),
    ("cpu.softirqs", "NET_RX", 38_733),
    ("load.5m", "", 44),
    ("psi.io.some", "", 16_115_886),
    ("psi.io.full", "", 14_798_823),
    ("memory.available", "", 23_162_580),
    ("memory.dirty", "", 0),
    ("vm.pgfault", "", 26_691_967),
    ("vm.nr_dirty_threshold", "", 1_155_396),
    ("disk.reads", "vda", 216_171),
    ("disk.busy_s", "vda", 26_980),
    ("disk.flushes", "vda", 8313),
    ("disk.flush_s", "vda", 484),
    ("net.rx_bytes", "eth0", 1_517_564_858),
    ("net.tx_packets", "eth0", 20_448),
    ("net.time_squeeze", "", 0),
    ("tcp.in_segments", "", 34_585),
    ("tcp.resets_out", "", 73),
    ("tcp.timeouts", "", 2),
    ("tcp.backlog_drops", "", 0),
];

/// A host that is read from a folder.
pub struct Read {
    host: Host,
    table: Table,
}

impl Read {
    pub fn new(path: &Path) -> Self {
        let mut read = Self {
            host: Host::new(&Root::at(path)),
            table: Table::new(),
        };
        read.again();
        read
    }

    fn recorded(name: &str) -> Self {
        let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sample/hosts");
        Self::new(&hosts.join(name))
    }

    fn again(&mut self) {
        assert_eq!(self.host.read(&mut self.table), Ok(true));
    }

    pub fn get(&self, name: &str, of: &str) -> Option<i64> {
        self.table.get(self.table.find(name, of)?)
    }

    fn events(&self) -> Vec<(Event, &str)> {
        let notes = self.table.notes().iter();
        notes.map(|note| (note.event, note.of.as_str())).collect()
    }
}

#[test]
fn linux_6_18_is_read() {
    let read = Read::recorded("linux-6.18");
    for (name, of, value) in WANTED_6_18 {
        assert_eq!(read.get(name, of), Some(*value), "{name} of {of}");
    }
    // The eight loop devices and the interfaces that were never used have no columns.
    for (name, of) in [
        ("disk.reads", "loop7"),
        ("net.rx_bytes", "ifb0"),
        ("net.speed", "eth0"),
    ] {
        assert_eq!(read.get(name, of), None, "{name} of {of}");
    }
    assert!(read.table.present() > 200);
    assert!(read.events().is_empty());
}

#[test]
fn linux_3_10_is_read() {
    let read = Read::recorded("linux-3.10");
    for (name, of, value) in [
        ("cpu.user", "all", 1000),
        ("cpu.steal", "0", 8),
        ("cpu.interrupts", "", 987_654),
        ("cpu.blocked", "", 1),
        ("cpu.run_delay", "all", 1_000_000_000),
        ("cpu.run_delay", "1", 300_000_000),
        ("load.1m", "", 150),
        ("load.15m", "", 1205),
        ("memory.total", "", 3_882_136),
        ("memory.huge_pages_total", "", 4),
        ("vm.pgpgin", "", 5000),
        ("vm.nr_dirtied", "", 1000),
        ("vm.allocstall", "", 5),
        ("vm.thp_split", "", 6),
        ("disk.reads", "sda", 100),
        ("disk.write_bytes", "sda", 8000),
        ("disk.in_flight", "sda", 2),
        ("disk.weighted_s", "dm-0", 9500),
        ("net.rx_bytes", "eth0", 1_000_000),
        ("net.tx_drops", "eth0", 9),
    ] {
        assert_eq!(read.get(name, of), Some(value), "{name} of {of}");
    }
    for (name, of) in [
        ("cpu.guest", "all"),
        ("psi.cpu.some", ""),
        ("disk.flushes", "sda"),
        ("disk.reads", "sda1"),
        ("disk.reads", "ram0"),
        ("disk.reads", "loop0"),
        ("net.rx_bytes", "lo"),
        ("memory.available", ""),
        ("tcp.retransmits", ""),
    ] {
        assert_eq!(read.get(name, of), None, "{name} of {of}");
    }
}

#[test]
fn disks_with_discards_and_flushes_are_read() {
    let folder = Folder::new();
    folder.write(
        "proc/diskstats",
        " 8 0 sdb 1 2 3 4 5 6 7 8 0 9 10 11 12 13 14\n 8 16 sdc 1 2 3 4 5 6 7 8 0 9 10 11 12 13 14 15 16\n",
    );
    let read = Read::new(folder.path());
    assert_eq!(read.get("disk.discard_s", "sdb"), Some(14));
    assert_eq!(read.get("disk.flushes", "sdb"), None);
    assert_eq!(read.get("disk.flush_s", "sdc"), Some(16));
}

#[test]
fn disks_come_and_go() {
    let folder = Folder::new();
    let sda = " 8 0 sda 1 0 8 1 1 0 8 1 0 2 2\n";
    let sdb = " 8 16 sdb 7 0 8 1 1 0 8 1 0 2 2\n";
    let idle = " 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n";
    folder.write("proc/diskstats", &format!("{idle}{sda}"));
    let mut read = Read::new(folder.path());
    folder.write("proc/diskstats", &format!("{idle}{sdb}{sda}"));
    read.again();
    assert_eq!(read.events(), [(Event::Appeared, "sdb")]);
    folder.write("proc/diskstats", sdb);
    read.again();
    assert_eq!(read.events()[1..], [(Event::Gone, "sda")]);
    assert_eq!(read.get("disk.reads", "sda"), None);
    assert_eq!(read.get("disk.reads", "sdb"), Some(7));
    // A device that was there all the time and is now used has columns, but did not appear.
    folder.write(
        "proc/diskstats",
        &format!("{idle}{sdb}").replace("loop0 0", "loop0 5"),
    );
    read.again();
    read.again();
    assert_eq!(read.get("disk.reads", "loop0"), Some(5));
}

#[test]
fn interfaces_have_a_speed_only_where_it_is_known() {
    let folder = Folder::new();
    let line = |name: &str| format!("{name}: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
    let names = ["eth0", "eth1", "eth2", "lo"];
    let lines: String = names.map(line).concat();
    folder.write("proc/self/net/dev", &format!("a\nb\n{lines}"));
    for (name, speed) in names.iter().zip(["10000\n", "-1\n", "4294967295\n"]) {
        folder.write(&format!("sys/class/net/{name}/speed"), speed);
    }
    let read = Read::new(folder.path());
    let speeds = names.map(|name| read.get("net.speed", name));
    assert_eq!(speeds, [Some(10_000), None, None, None]);
}

#[test]
fn a_cpu_that_is_switched_off_is_gone() {
    let folder = Folder::new();
    folder.write(
        "proc/stat",
        "cpu  3 0 0 0\ncpu0 1 0 0 0\ncpu1 2 0 0 0\nctxt 5\n",
    );
    let mut read = Read::new(folder.path());
    folder.write("proc/stat", "cpu  3 0 0 0\ncpu0 1 0 0 0\nctxt 6\n");
    read.again();
    assert_eq!(read.get("cpu.user", "1"), None);
    assert_eq!(read.get("cpu.context_switches", ""), Some(6));
    assert_eq!(read.events(), [(Event::Gone, "1")]);
}

#[test]
fn arrays_report_missing_disks_and_progress() {
    let folder = Folder::new();
    folder.write(
        "proc/mdstat",
        "Personalities : [raid1] [raid0]\n\
         md3 : active raid1 sdb2[2] sda2[0]\n\
         \x20     195310144 blocks [2/1] [U_]\n\
         \x20     [=>...................]  recovery =  8.5% (16775552/195310144) finish=17.0min speed=259783K/sec\n\
         \n\
         md0 : active raid0 sdc1[0] sdd1[1]\n\
         \x20     314159265 blocks 64k chunks\n\
         \n\
         md7 : active (auto-read-only) raid1 sde[0] sdf[1]\n\
         \x20     4190208 blocks super 1.2 [2/2] [UU]\n\
         \tresync=PENDING\n\
         \n\
         unused devices: <none>\n",
    );
    let read = Read::new(folder.path());
    let array = |of| {
        ["md.disks", "md.missing", "md.sync_done", "md.sync_speed"].map(|name| read.get(name, of))
    };
    assert_eq!(array("md3"), [Some(2), Some(1), Some(85), Some(259_783)]);
    assert_eq!(array("md0"), [None; 4]);
    assert_eq!(array("md7"), [Some(2), Some(0), None, None]);
}

#[test]
fn zfs_and_btrfs_and_loops_are_read_where_they_are() {
    let folder = Folder::new();
    folder.write(
        "proc/spl/kstat/zfs/arcstats",
        "6 1 0x01 91 4368 52 97\nname type data\nhits 4 8772\nc_max 4 8000\nsize 4 7000\np 4 1\n",
    );
    folder.write(
        "proc/spl/kstat/zfs/zil",
        "7 1 0x01 14 672 52 97\nname type data\nzil_commit_count 4 10\nzil_itx_copied_bytes 4 512\n",
    );
    folder.write(
        "sys/fs/btrfs/f9b1/commit_stats",
        "commits 3\nlast_commit_ms 4\nmax_commit_ms 9\ntotal_commit_ms 15\n",
    );
    folder.write("sys/block/loop2/loop/dio", "1\n");
    let mut read = Read::new(folder.path());
    for (name, of, value) in [
        ("zfs.arc.hits", "", 8772),
        ("zfs.arc.size", "", 7000),
        ("zfs.zil.commit_count", "", 10),
        ("zfs.zil.itx_copied_bytes", "", 512),
        ("btrfs.commits", "f9b1", 3),
        ("btrfs.commit_s", "f9b1", 15),
        ("loop.direct_io", "loop2", 1),
    ] {
        assert_eq!(read.get(name, of), Some(value), "{name}");
    }
    assert_eq!(read.get("zfs.arc.p", ""), None);
    folder.remove("sys/fs/btrfs/f9b1/commit_stats");
    read.again();
}

#[test]
fn a_host_without_anything_is_read_too() {
    let folder = Folder::new();
    let read = Read::new(folder.path());
    assert_eq!(read.table.present(), 0);
}
