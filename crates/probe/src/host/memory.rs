//! Memory by use, and the counters of the memory management.

use super::super::root::{page_bytes, Root};
use super::super::table::Column;
use super::keyed::Keyed;

/// /proc/meminfo.
pub fn memory(root: &Root) -> Keyed {
    Keyed::new(root.path("proc/meminfo"), memory_column, |mut words| {
        words.number()
    })
}

/// The column of a line of /proc/meminfo; none for what never changes or says nothing.
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
