//! What a thread does, from the system call in which it is and the file that the call is about.

use std::path::Path;

/// What a system call waits for, in the words of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// On a file, which the first argument names.
    Read,
    Write,
    Sync,
    /// The completion of asynchronous I/O.
    Aio,
    /// Input of a socket or several.
    Poll,
    /// A lock or a condition of the program.
    Futex,
    /// The end of a time.
    Sleep,
    /// Mapping memory and giving it back, which all threads of a process take one lock for.
    Memory,
    /// Any other call.
    Other,
}

impl Kind {
    /// The word in the column's name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Aio => "aio",
            Self::Poll => "poll",
            Self::Futex => "futex",
            Self::Sleep => "sleep",
            Self::Memory => "memory",
            Self::Other => "other",
        }
    }

    /// Whether the call's first argument is the number of a file.
    #[must_use]
    pub fn has_file(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Sync)
    }

    /// The kind of a call by its number on this processor.
    #[must_use]
    pub fn of(number: i64) -> Self {
        let known = |numbers: &[libc::c_long]| numbers.contains(&number);
        for (kind, numbers) in [
            (Self::Futex, &[libc::SYS_futex, FUTEX_WAITV][..]),
            (Self::Read, READ),
            (Self::Write, WRITE),
            (Self::Sync, SYNC),
            (Self::Aio, AIO),
            (Self::Poll, POLL),
            (
                Self::Sleep,
                &[libc::SYS_nanosleep, libc::SYS_clock_nanosleep],
            ),
            (Self::Memory, MEMORY),
        ] {
            if known(numbers) {
                return kind;
            }
        }
        Self::Other
    }
}

/// As all processors number it.
const FUTEX_WAITV: libc::c_long = 449;
const READ: &[libc::c_long] = &[
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_preadv,
    libc::SYS_preadv2,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
];
const WRITE: &[libc::c_long] = &[
    libc::SYS_pwrite64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
];
const SYNC: &[libc::c_long] = &[
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
];
const AIO: &[libc::c_long] = &[
    libc::SYS_io_getevents,
    libc::SYS_io_submit,
    libc::SYS_io_uring_enter,
];
const MEMORY: &[libc::c_long] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mprotect,
];
#[cfg(target_arch = "x86_64")]
const POLL: &[libc::c_long] = &[
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_pwait,
    libc::SYS_accept,
    libc::SYS_accept4,
];
#[cfg(not(target_arch = "x86_64"))]
const POLL: &[libc::c_long] = &[
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// What the file of a server or a load is, by where its number leads.
#[must_use]
pub fn file_of(link: &Path) -> &'static str {
    let text = link.to_string_lossy();
    if text.starts_with("socket:") {
        return "socket";
    }
    if text.starts_with("pipe:") || text.starts_with("anon_inode:") || text.starts_with("/dev/") {
        return "other";
    }
    let deleted = text.strip_suffix(" (deleted)");
    let path = Path::new(deleted.unwrap_or(&text));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbered = is_number(&ending);
    match ending.as_ref() {
        _ if name.starts_with("ib_logfile") || name.starts_with("#ib_redo") => "redo",
        "dblwr" => "doublewrite",
        _ if name.starts_with("ibtmp") || name.starts_with("#sql") || name.starts_with("temp_") => {
            "temporary"
        }
        "ibt" => "temporary",
        _ if name.starts_with("undo") => "undo",
        "ibu" => "undo",
        _ if numbered && name.contains("relay") => "relay",
        _ if numbered || ending == "index" => "binlog",
        "ibd" | "MYD" | "MYI" | "MAD" | "MAI" | "sst" => "data",
        _ if name.starts_with("ibdata") || name == "mysql.ibd" => "data",
        "log" if is_number(&stem) => "redo", // of MyRocks
        "log" | "err" | "LOG" => "log",
        _ if deleted.is_some() => "temporary",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_recognised_by_their_names() {
        for (link, file) in [
            ("socket:[123]", "socket"),
            ("pipe:[7]", "other"),
            ("/dev/null", "other"),
            ("/d/ib_logfile0", "redo"),
            ("/d/#innodb_redo/#ib_redo12", "redo"),
            ("/d/#ib_16384_0.dblwr", "doublewrite"),
            ("/d/undo_001", "undo"),
            ("/d/undo002", "undo"),
            ("/d/binlog.000003", "binlog"),
            ("/d/mysql-bin.index", "binlog"),
            ("/d/host-relay-bin.000002", "relay"),
            ("/d/sbtest/sbtest1.ibd", "data"),
            ("/d/mysql.ibd", "data"),
            ("/d/ibdata1", "data"),
            ("/d/mysql/db.MAI", "data"),
            ("/d/ibtmp1", "temporary"),
            ("/d/#innodb_temp/temp_3.ibt", "temporary"),
            ("/tmp/#sql-temptable-1-2-3.MAD", "temporary"),
            ("/tmp/ibAbCdEf (deleted)", "temporary"),
            ("/d/#rocksdb/000012.log", "redo"),
            ("/d/#rocksdb/000013.sst", "data"),
            ("/d/host-slow.log", "log"),
            ("/d/ib_buffer_pool", "other"),
        ] {
            assert_eq!(file_of(Path::new(link)), file, "{link}");
        }
    }

    #[test]
    fn calls_are_recognised_by_their_numbers() {
        for (number, kind) in [
            (libc::SYS_pread64, Kind::Read),
            (libc::SYS_fdatasync, Kind::Sync),
            (libc::SYS_sendto, Kind::Write),
            (libc::SYS_io_getevents, Kind::Aio),
            (libc::SYS_ppoll, Kind::Poll),
            (libc::SYS_futex, Kind::Futex),
            (libc::SYS_clock_nanosleep, Kind::Sleep),
            (libc::SYS_munmap, Kind::Memory),
            (libc::SYS_getpid, Kind::Other),
        ] {
            assert_eq!(Kind::of(number), kind);
        }
    }
}
