//! The control group of a process: its CPU and its memory, found anew when the process moves.

use std::path::PathBuf;

use super::super::file::Look;
use super::super::root::Root;
use super::super::table::Table;
use super::cgroup_cpu::Cpu;
use super::cgroup_memory::Memory;
use super::cgroup_place::Places;
use super::Part;

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
