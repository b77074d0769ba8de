//! The control group of a process: where it is, found again when the process moves.

use std::path::PathBuf;

use crate::file::{lines, name, Look, Root, Words};
use crate::host::cgroup_cpu::{Cpu, Memory};
use crate::host::Part;
use crate::table::Table;

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
        let membership = membership.to_vec();
        self.gone(table);
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
        // A container without a namespace of its own is told a path of the host's, but sees
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
