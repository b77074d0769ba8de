//! Files of one key a line: memory, the memory management, load averages, pressure stall times.

use std::path::PathBuf;

use crate::file::{decimal, lines, number, page_bytes, Look, OpenFile, Root, Words};
use crate::host::Part;
use crate::table::{Column, Keys, Table};

/// The columns of such a file.
pub struct Keyed {
    file: OpenFile,
    keys: Keys,
    headings: usize,
    value: fn(Words) -> Option<i64>,
}

impl Keyed {
    /// Columns for those keys that `choose` has one for; `value` reads what is behind a key.
    pub fn new(
        path: PathBuf,
        choose: impl Fn(&str) -> Option<Column> + 'static,
        value: fn(Words) -> Option<i64>,
    ) -> Self {
        Self {
            file: OpenFile::new(path),
            keys: Keys::new(choose),
            headings: 0,
            value,
        }
    }

    /// The same, behind so many lines of headings.
    pub fn below(self, headings: usize) -> Self {
        Self { headings, ..self }
    }
}

impl Part for Keyed {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.keys.gone(table);
        };
        self.keys.begin();
        for line in lines(text).skip(self.headings) {
            let mut words = Words(line);
            let key = words.next().unwrap_or_default();
            // Most rows of some files have no column, and are not worth reading the number of.
            if let Some(id) = self.keys.column(key, table) {
                if let Some(value) = (self.value)(words) {
                    table.set(id, value);
                }
            }
        }
    }
}

/// /proc/meminfo.
pub fn memory(root: &Root) -> Keyed {
    Keyed::new(root.path("proc/meminfo"), memory_column, |mut words| {
        words.number()
    })
}

/// The column of a line of /proc/meminfo; none for what never changes or has no meaning.
fn memory_column(key: &str) -> Option<Column> {
    let key = key.trim_end_matches(':');
    if let Some(pages) = key.strip_prefix("HugePages_") {
        let name = format!("memory.huge_pages_{}", pages.to_lowercase());
        return Some(Column::gauge(name, "count", 1.0));
    }
    let name = match key {
        "Hugepagesize" | "VmallocTotal" | "VmallocChunk" | "NFS_Unstable" | "Bounce"
        | "WritebackTmp" | "HardwareCorrupted" => return None,
        _ if key.starts_with("DirectMap") => return None,
        "MemTotal" => "total".to_owned(),
        "MemFree" => "free".to_owned(),
        "MemAvailable" => "available".to_owned(),
        "AnonPages" => "anon".to_owned(),
        "Hugetlb" => "huge".to_owned(),
        "SReclaimable" => "slab_reclaimable".to_owned(),
        "SUnreclaim" => "slab_unreclaimable".to_owned(),
        "KReclaimable" => "kernel_reclaimable".to_owned(),
        "Committed_AS" => "committed".to_owned(),
        _ => snake(key),
    };
    Some(Column::gauge(format!("memory.{name}"), "B", 1024.0))
}

/// `SwapTotal` as `swap_total`, `Active(anon)` as `active_anon`.
fn snake(key: &str) -> String {
    let mut name = String::new();
    let mut small = false;
    for c in key.chars().filter(|c| *c != ')') {
        if (c.is_ascii_uppercase() && small) || c == '(' {
            name.push('_');
        }
        small = c.is_ascii_lowercase();
        if c != '(' {
            name.push(c.to_ascii_lowercase());
        }
    }
    name
}

/// /proc/vmstat.
pub fn vmstat(root: &Root) -> Keyed {
    Keyed::new(root.path("proc/vmstat"), vm_column, |mut words| {
        words.number()
    })
}

/// The column of a line of /proc/vmstat.
fn vm_column(key: &str) -> Option<Column> {
    let name = format!("vm.{key}");
    match key {
        "pgpgin" | "pgpgout" => Some(Column::counter(name, "B", 1024.0)),
        "nr_dirtied" | "nr_written" => Some(Column::counter(name, "B", page_bytes())),
        "nr_dirty_threshold" | "nr_dirty_background_threshold" => {
            Some(Column::gauge(name, "B", page_bytes()))
        }
        // The others are states, of which memory's uses are in /proc/meminfo already.
        _ if key.starts_with("nr_") || key.starts_with("workingset_nodes") => None,
        _ => Some(Column::counter(name, "count", 1.0)),
    }
}

/// /proc/loadavg.
pub struct Load {
    file: OpenFile,
    ids: Option<[usize; 3]>,
}

impl Load {
    pub fn new(root: &Root) -> Self {
        Self {
            file: OpenFile::new(root.path("proc/loadavg")),
            ids: None,
        }
    }
}

impl Part for Load {
    fn read(&mut self, look: &mut Look, table: &mut Table) {
        let Some(text) = self.file.read(look) else {
            return self.ids.iter().flatten().for_each(|id| table.gone(*id));
        };
        let ids = *self.ids.get_or_insert_with(|| {
            ["load.1m", "load.5m", "load.15m"]
                .map(|name| table.define(Column::gauge(name, "", 0.01)))
        });
        for (id, word) in ids.into_iter().zip(Words(text)) {
            if let Some(load) = decimal(word, 2) {
                table.set(id, load);
            }
        }
    }
}

/// /proc/pressure/X: the time in which some, or all, waited for it.
pub fn pressure(root: &Root, what: &'static str) -> Keyed {
    let column = move |key: &str| Some(Column::counter(format!("psi.{what}.{key}"), "s", 1e-6));
    let path = root.path("proc/pressure").join(what);
    Keyed::new(path, column, |mut words| {
        let total = words.find_map(|word| word.strip_prefix(b"total="));
        total.and_then(number)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_memory_are_plain() {
        let name = |key| memory_column(key).map(|column| column.name);
        for (key, wanted) in [
            ("MemAvailable:", "memory.available"),
            ("SwapTotal:", "memory.swap_total"),
            ("Active(anon):", "memory.active_anon"),
            ("AnonHugePages:", "memory.anon_huge_pages"),
            ("HugePages_Rsvd:", "memory.huge_pages_rsvd"),
            ("Dirty:", "memory.dirty"),
        ] {
            assert_eq!(name(key).as_deref(), Some(wanted));
        }
        assert_eq!(name("DirectMap4k:"), None);
    }
}
