//! The control group of a process: where it is; its CPU and memory used, allowed and withheld.

use std::path::{Path, PathBuf};

use crate::file::{lines, name, number, Look, OpenFile, Root, Words};
use crate::host::Part;
use crate::table::{Column, Table};

/// The group of one process.
pub struct Group {
    root: Root,
    member: PathBuf,
    of: String,
    membership: Vec<u8>,
    cpu: Option<Cpu>,
    memory: Option<Memory>,
}

impl Group {
    /// The group of process `pid`, which may be `self`; its columns are those of `of`.
    #[must_use]
    pub fn new(root: &Root, pid: &str, of: &str) -> Self {
        Self {
            root: root.clone(),
            member: root.path("proc").join(pid).join("cgroup"),
            of: of.to_owned(),
            membership: Vec::new(),
            cpu: None,
            memory: None,
        }
    }

    /// Sets the columns.
    pub fn sample(&mut self, look: &mut Look, table: &mut Table) {
        if look.seldom || self.membership.is_empty() {
            self.find(look, table);
        }
        let seldom = look.seldom;
        if let Some(cpu) = &mut self.cpu {
            cpu.read(seldom, look, table);
        }
        if let Some(memory) = &mut self.memory {
            memory.read(seldom, look, table);
        }
    }

    /// Takes the columns away.
    pub fn gone(&mut self, table: &mut Table) {
        if let Some(cpu) = self.cpu.take() {
            cpu.gone(table);
        }
        if let Some(memory) = self.memory.take() {
            memory.gone(table);
        }
        self.membership.clear();
    }

    fn find(&mut self, look: &mut Look, table: &mut Table) {
        let Some(membership) = look.open_and_read(&self.member) else {
            return self.gone(table);
        };
        if membership == self.membership {
            return;
        }
        if !self.membership.is_empty() {
            // Another group's counters begin elsewhere: one reading without values keeps the
            // difference from being taken for use.
            return self.gone(table);
        }
        let membership = membership.to_vec();
        let places = Places::new(&self.root, &membership, look);
        self.cpu = Cpu::open(&places, &self.of, look, table);
        self.memory = Memory::open(&places, &self.of, look, table);
        self.membership = membership;
    }
}

impl Part for Group {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        self.sample(look, table);
    }
}

/// A controller's directories, from the process's own group up to the root: limits bind on
/// every level.
#[derive(Debug, PartialEq, Eq)]
pub struct Place {
    /// Whether its files are those of version 2.
    pub two: bool,
    pub levels: Vec<PathBuf>,
}

/// The mounts and the groups of one process.
pub struct Places<'a> {
    root: &'a Root,
    membership: &'a [u8],
    mounts: Vec<u8>,
}

impl<'a> Places<'a> {
    /// From /proc/PID/cgroup.
    pub fn new(root: &'a Root, membership: &'a [u8], look: &mut Look) -> Self {
        let file = std::fs::File::open(root.path("proc/self/mounts"));
        let mounts = file.and_then(|file| look.read(&file).map(<[u8]>::to_vec));
        Self {
            root,
            membership,
            mounts: mounts.unwrap_or_default(),
        }
    }

    /// Where the controller is; version 1 where both are mounted, since a controller is in one
    /// of them only, and then in that one.
    #[must_use]
    pub fn of(&self, controller: &str) -> Option<Place> {
        let one = self.place(false, |listed| listed == controller);
        one.or_else(|| self.place(true, str::is_empty))
    }

    fn place(&self, two: bool, is_it: impl Fn(&str) -> bool) -> Option<Place> {
        let path = self.path(&is_it)?;
        let mount = self.mount(two, &is_it)?;
        let own = mount.join(path.trim_start_matches('/'));
        // A container without a namespace of its own gets a path of the host's, but sees
        // its own group as the mount.
        let own = if own.is_dir() { own } else { mount.clone() };
        let levels = own
            .ancestors()
            .take_while(|level| level.starts_with(&mount))
            .map(PathBuf::from)
            .collect();
        Some(Place { two, levels })
    }

    /// The path in the line whose controllers fit: `4:memory:/a/b`, or `0::/a/b` of version 2.
    fn path(&self, is_it: impl Fn(&str) -> bool) -> Option<String> {
        lines(self.membership).find_map(|line| {
            let line = name(line);
            let (listed, path) = line.split_once(':')?.1.split_once(':')?;
            let outside = path.starts_with("/..");
            (!outside && listed.split(',').any(&is_it)).then(|| path.to_owned())
        })
    }

    fn mount(&self, two: bool, is_it: impl Fn(&str) -> bool) -> Option<PathBuf> {
        lines(&self.mounts).find_map(|line| {
            let mut words = Words(line).skip(1).map(name);
            let (at, kind, options) = (words.next()?, words.next()?, words.next()?);
            let fits = if two {
                kind == "cgroup2"
            } else {
                kind == "cgroup" && options.split(',').any(&is_it)
            };
            fits.then(|| self.root.path(at))
        })
    }
}

/// Sets a column, or takes it away where there is no value.
pub fn put(table: &mut Table, id: usize, value: Option<i64>) {
    match value {
        Some(value) => table.set(id, value),
        None => table.gone(id),
    }
}

/// One directory of the way up.
struct Level {
    stat: OpenFile,
    /// `cpu.max`, or the quota and the period.
    limit: Vec<PathBuf>,
    /// In millionths of a core; nothing is withheld where there is none.
    limit_now: Option<i64>,
}

struct Ids {
    used: usize,
    throttled: usize,
    periods: usize,
    limit: usize,
}

/// The controllers `cpu` and `cpuacct`.
pub struct Cpu {
    levels: Vec<Level>,
    /// `cpuacct.usage` of version 1.
    usage: Option<OpenFile>,
    ids: Ids,
}

/// The facts of a `cpu.stat`.
#[derive(Default)]
struct Stat {
    used: Option<i64>,
    throttled: i64,
    periods: i64,
}

const OF_A_GROUP: [&str; 2] = ["cpu.max", "cgroup.type"];

impl Cpu {
    /// Opens the group's files; none where the group has no CPU of its own to be counted.
    pub fn open(places: &Places, of: &str, look: &mut Look, table: &mut Table) -> Option<Self> {
        let place = places.of("cpu")?;
        // The root of version 2 has neither: its CPU is the host's.  Every other group counts
        // what it used, with the controller or without.
        let own = place.levels.first()?;
        if place.two && !OF_A_GROUP.iter().any(|file| own.join(file).exists()) {
            return None;
        }
        let usage = places.of("cpuacct").filter(|usage| !usage.two);
        let usage = usage.map(|usage| OpenFile::new(usage.levels[0].join("cpuacct.usage")));
        let scale = if place.two { 1e-6 } else { 1e-9 };
        let ids = Ids {
            used: table.define(Column::counter("cgroup.cpu", "s", scale).of(of)),
            throttled: table.define(Column::counter("cgroup.throttled", "s", scale).of(of)),
            periods: table.define(Column::counter("cgroup.throttled_periods", "count", 1.0).of(of)),
            limit: table.define(Column::gauge("cgroup.cpu_limit", "cores", 1e-6).of(of)),
        };
        let mut cpu = Self {
            levels: levels(&place),
            usage,
            ids,
        };
        cpu.limit(look, table);
        Some(cpu)
    }

    /// Sets the columns.
    pub fn read(&mut self, seldom: bool, look: &mut Look, table: &mut Table) {
        let moved = seldom && self.limit(look, table);
        let mut all = Stat::default();
        for (height, level) in self.levels.iter_mut().enumerate() {
            if height > 0 && level.limit_now.is_none() {
                continue;
            }
            let stat = level.stat.read(look).map(Stat::parse).unwrap_or_default();
            all.throttled += stat.throttled;
            all.periods += stat.periods;
            all.used = all.used.or(stat.used.filter(|_| height == 0));
        }
        if let Some(usage) = &mut self.usage {
            all.used = usage.read(look).and_then(|text| Words(text).number());
        }
        put(table, self.ids.used, all.used);
        // What others had withheld before is not of this time, as in another group.
        put(table, self.ids.throttled, (!moved).then_some(all.throttled));
        put(table, self.ids.periods, (!moved).then_some(all.periods));
    }

    /// Takes the columns away.
    pub fn gone(&self, table: &mut Table) {
        let ids = &self.ids;
        for id in [ids.used, ids.throttled, ids.periods, ids.limit] {
            table.gone(id);
        }
    }

    /// The least of what the levels allow; returns whether other levels above have a limit now.
    fn limit(&mut self, look: &mut Look, table: &mut Table) -> bool {
        let mut moved = false;
        for (height, level) in self.levels.iter_mut().enumerate() {
            let now = level.read_limit(look);
            moved |= height > 0 && now.is_some() != level.limit_now.is_some();
            level.limit_now = now;
        }
        let least = self.levels.iter().filter_map(|level| level.limit_now).min();
        put(table, self.ids.limit, least);
        moved
    }
}

impl Level {
    fn read_limit(&self, look: &mut Look) -> Option<i64> {
        let mut numbers = Vec::new();
        for path in &self.limit {
            // `max`, which is no number, and -1 are no limit.
            numbers.extend(Words(look.open_and_read(path)?).map(number));
        }
        match numbers[..] {
            [Some(quota), Some(period)] if quota > 0 && period > 0 => {
                Some(quota.saturating_mul(1_000_000) / period)
            }
            _ => None,
        }
    }
}

impl Stat {
    fn parse(text: &[u8]) -> Self {
        let mut stat = Self::default();
        for line in lines(text) {
            let mut words = Words(line);
            let (key, value) = (words.next(), words.number());
            match key {
                Some(b"usage_usec") => stat.used = value,
                Some(b"throttled_usec" | b"throttled_time") => stat.throttled = value.unwrap_or(0),
                Some(b"nr_throttled") => stat.periods = value.unwrap_or(0),
                _ => {}
            }
        }
        stat
    }
}

fn levels(place: &Place) -> Vec<Level> {
    let limits: &[&str] = if place.two {
        &["cpu.max"]
    } else {
        &["cpu.cfs_quota_us", "cpu.cfs_period_us"]
    };
    let level = |path: &Path| Level {
        stat: OpenFile::new(path.join("cpu.stat")),
        limit: limits.iter().map(|file| path.join(file)).collect(),
        limit_now: None,
    };
    place.levels.iter().map(|path| level(path)).collect()
}

/// What version 1 reports where there is no limit is about this.
const NO_LIMIT: i64 = 1 << 60;

/// The files of use, of hits of the limit where they have their own, of events, and of the limit.
type Names = (
    &'static str,
    Option<&'static str>,
    &'static str,
    &'static str,
);
const ONE: Names = (
    "memory.usage_in_bytes",
    Some("memory.failcnt"),
    "memory.oom_control",
    "memory.limit_in_bytes",
);
const TWO: Names = ("memory.current", None, "memory.events", "memory.max");

struct MemoryIds {
    used: usize,
    limit: usize,
    limit_hits: usize,
    oom: usize,
}

/// The controller `memory`.
pub struct Memory {
    used: OpenFile,
    /// Version 1 counts the hits in a file of their own.
    hits: Option<OpenFile>,
    events: OpenFile,
    limits: Vec<PathBuf>,
    ids: MemoryIds,
}

impl Memory {
    /// Opens the group's files; none where the group has no memory of its own to be counted.
    pub fn open(places: &Places, of: &str, look: &mut Look, table: &mut Table) -> Option<Self> {
        let place = places.of("memory")?;
        let own = place.levels.first()?;
        let (used, hits, events, limit) = if place.two { TWO } else { ONE };
        if !own.join(used).exists() {
            return None;
        }
        let ids = MemoryIds {
            used: table.define(Column::gauge("cgroup.memory", "B", 1.0).of(of)),
            limit: table.define(Column::gauge("cgroup.memory_limit", "B", 1.0).of(of)),
            limit_hits: table.define(Column::counter("cgroup.limit_hits", "count", 1.0).of(of)),
            oom: table.define(Column::counter("cgroup.oom", "count", 1.0).of(of)),
        };
        let memory = Self {
            used: OpenFile::new(own.join(used)),
            hits: hits.map(|file| OpenFile::new(own.join(file))),
            events: OpenFile::new(own.join(events)),
            limits: place.levels.iter().map(|level| level.join(limit)).collect(),
            ids,
        };
        memory.limit(look, table);
        Some(memory)
    }

    /// Sets the columns.
    pub fn read(&mut self, seldom: bool, look: &mut Look, table: &mut Table) {
        if seldom {
            self.limit(look, table);
        }
        let used = self.used.read(look).and_then(|text| Words(text).number());
        put(table, self.ids.used, used);
        let (mut hits, mut oom) = (None, None);
        for line in self.events.read(look).into_iter().flat_map(lines) {
            let mut words = Words(line);
            match words.next() {
                Some(b"max") => hits = words.number(),
                Some(b"oom_kill") => oom = words.number(),
                _ => {}
            }
        }
        if let Some(file) = &mut self.hits {
            hits = file.read(look).and_then(|text| Words(text).number());
        }
        put(table, self.ids.limit_hits, hits);
        put(table, self.ids.oom, oom);
    }

    /// Takes the columns away.
    pub fn gone(&self, table: &mut Table) {
        let ids = &self.ids;
        for id in [ids.used, ids.limit, ids.limit_hits, ids.oom] {
            table.gone(id);
        }
    }

    /// The least of what the levels allow.
    fn limit(&self, look: &mut Look, table: &mut Table) {
        let read = |path: &PathBuf| Words(look.open_and_read(path)?).number();
        let limits = self.limits.iter().filter_map(read);
        put(
            table,
            self.ids.limit,
            limits.filter(|limit| *limit < NO_LIMIT).min(),
        );
    }
}
