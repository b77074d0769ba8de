//! Control groups of both versions.

use mydyno_probe::file::{Look, Root};
use mydyno_probe::host::cgroup::Group;
use mydyno_probe::table::Table;

use crate::folder::Folder;
use crate::host::Read;

/// What both versions of control groups are to give.
fn group(read: &Read) -> [Option<i64>; 8] {
    let columns = [
        "cpu",
        "throttled",
        "throttled_periods",
        "cpu_limit",
        "memory",
        "memory_limit",
        "limit_hits",
        "oom",
    ];
    columns.map(|name| read.get(&format!("cgroup.{name}"), "self"))
}

#[test]
fn a_group_of_version_2_is_held_back_by_those_above_it() {
    let folder = Folder::new();
    folder.write(
        "proc/self/mounts",
        "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    );
    folder.write("proc/self/cgroup", "0::/a.slice/b.service\n");
    let files = |place: &str, pairs: [(&str, &str); 5]| {
        for (file, text) in pairs {
            folder.write(&format!("sys/fs/cgroup/{place}/{file}"), text);
        }
    };
    files(
        "a.slice",
        [
            (
                "cpu.stat",
                "usage_usec 900\nnr_periods 9\nnr_throttled 4\nthrottled_usec 70\n",
            ),
            ("cpu.max", "150000 100000\n"),
            ("memory.current", "5000\n"),
            ("memory.max", "8192\n"),
            ("memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n"),
        ],
    );
    files(
        "a.slice/b.service",
        [
            (
                "cpu.stat",
                "usage_usec 800\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
            ),
            ("cpu.max", "max 100000\n"),
            ("memory.current", "4000\n"),
            ("memory.max", "max\n"),
            ("memory.events", "low 0\nhigh 0\nmax 2\noom 1\noom_kill 1\n"),
        ],
    );
    let read = Read::new(folder.path());
    let wanted = [800, 70, 4, 1_500_000, 4000, 8192, 2, 1];
    assert_eq!(group(&read), wanted.map(Some));
}

#[test]
fn a_group_of_version_2_without_controllers_has_used_cpu_and_is_held_back_from_above() {
    let folder = Folder::new();
    folder.write(
        "proc/self/mounts",
        "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    );
    folder.write("proc/self/cgroup", "0::/a.slice/b.service\n");
    for (file, text) in [
        ("a.slice/cgroup.type", "domain\n"),
        (
            "a.slice/cpu.stat",
            "usage_usec 900\nnr_periods 9\nnr_throttled 4\nthrottled_usec 70\n",
        ),
        ("a.slice/cpu.max", "150000 100000\n"),
        ("a.slice/b.service/cgroup.type", "domain\n"),
        (
            "a.slice/b.service/cpu.stat",
            "usage_usec 800\nuser_usec 500\nsystem_usec 300\n",
        ),
    ] {
        folder.write(&format!("sys/fs/cgroup/{file}"), text);
    }
    let read = Read::new(folder.path());
    let mut wanted = [None; 8];
    wanted[..4].copy_from_slice(&[800, 70, 4, 1_500_000].map(Some));
    assert_eq!(group(&read), wanted);
}

#[test]
fn the_root_of_version_2_has_no_cpu_of_its_own() {
    let folder = Folder::new();
    folder.write(
        "proc/self/mounts",
        "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
    );
    folder.write("proc/self/cgroup", "0::/\n");
    folder.write("sys/fs/cgroup/cpu.stat", "usage_usec 900\n");
    assert_eq!(group(&Read::new(folder.path())), [None; 8]);
}

#[test]
fn a_group_of_version_1_is_read_and_followed() {
    let folder = Folder::new();
    folder.write(
        "proc/self/mounts",
        "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
         cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n\
         cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
    );
    folder.write(
        "proc/self/cgroup",
        "9:memory:/box\n4:cpu,cpuacct:/box\n0::/\n",
    );
    for (file, text) in [
        (
            "cpu,cpuacct/box/cpu.stat",
            "nr_periods 3\nnr_throttled 2\nthrottled_time 5000\n",
        ),
        ("cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n"),
        ("cpu,cpuacct/box/cpu.cfs_period_us", "100000\n"),
        ("cpu,cpuacct/box/cpuacct.usage", "123456789\n"),
        ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
        ("cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ("memory/box/memory.usage_in_bytes", "4096\n"),
        ("memory/box/memory.limit_in_bytes", "9223372036854771712\n"),
        ("memory/box/memory.failcnt", "6\n"),
        (
            "memory/box/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
        ),
    ] {
        folder.write(&format!("sys/fs/cgroup/{file}"), text);
    }
    let read = Read::new(folder.path());
    let mut wanted = [123_456_789, 5000, 2, 500_000, 4096, 0, 6, 5].map(Some);
    wanted[5] = None;
    assert_eq!(group(&read), wanted);
}

#[test]
fn a_move_to_another_group_leaves_one_reading_without_values() {
    // The other group has used more; the difference would be shown as the use of a moment.
    let folder = Folder::new();
    folder.write(
        "proc/self/mounts",
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
         cgroup /sys/fs/cgroup/cpuacct cgroup rw,cpuacct 0 0\n",
    );
    folder.write("sys/fs/cgroup/cpuacct/cpuacct.usage", "1000\n");
    folder.write("sys/fs/cgroup/cpuacct/box/cpuacct.usage", "5000\n");
    folder.write("proc/self/cgroup", "2:cpuacct:/\n1:cpu:/\n");
    let (mut look, mut table) = (Look::default(), Table::new());
    let mut group = Group::new(&Root::at(folder.path()), "self", "self");
    let mut used = |group: &mut Group| {
        group.sample(&mut look, &mut table);
        table.get(table.find("cgroup.cpu", "self").unwrap())
    };
    assert_eq!(used(&mut group), Some(1000));
    folder.write("proc/self/cgroup", "2:cpuacct:/box\n1:cpu:/box\n");
    assert_eq!(used(&mut group), None);
    assert_eq!(used(&mut group), Some(5000));
}

#[test]
fn a_limit_that_comes_or_goes_above_leaves_one_reading_without_what_was_withheld() {
    // Groups above have withheld from others before; the difference would be of a moment.
    let folder = Folder::new();
    for (file, text) in [
        (
            "proc/self/mounts",
            "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
        ),
        ("proc/self/cgroup", "0::/a.slice/b.service\n"),
        ("sys/fs/cgroup/a.slice/cgroup.type", "domain\n"),
        (
            "sys/fs/cgroup/a.slice/cpu.stat",
            "usage_usec 900\nnr_throttled 4\nthrottled_usec 70\n",
        ),
        ("sys/fs/cgroup/a.slice/b.service/cgroup.type", "domain\n"),
        (
            "sys/fs/cgroup/a.slice/b.service/cpu.stat",
            "usage_usec 800\n",
        ),
    ] {
        folder.write(file, text);
    }
    let (mut look, mut table) = (Look::default(), Table::new());
    let mut group = Group::new(&Root::at(folder.path()), "self", "self");
    let mut withheld = |limit: &str| {
        folder.write("sys/fs/cgroup/a.slice/cpu.max", limit);
        group.sample(&mut look, &mut table);
        let columns = ["cgroup.cpu", "cgroup.throttled", "cgroup.throttled_periods"];
        columns.map(|name| table.get(table.find(name, "self").unwrap()))
    };
    let none = "max 100000\n";
    assert_eq!(withheld(none), [Some(800), Some(0), Some(0)]);
    assert_eq!(withheld("150000 100000\n"), [Some(800), None, None]);
    assert_eq!(withheld("200000 100000\n"), [Some(800), Some(70), Some(4)]);
    assert_eq!(withheld(none), [Some(800), None, None]);
    assert_eq!(withheld(none), [Some(800), Some(0), Some(0)]);
}
