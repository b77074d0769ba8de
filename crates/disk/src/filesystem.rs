//! The two files of the mount: `disk`, the block image, and `ctl`, its state and orders.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::disk::Disk;

const DISK: INodeNo = INodeNo(2);
const CTL: INodeNo = INodeNo(3);
const NAMES: [(&str, INodeNo); 2] = [("disk", DISK), ("ctl", CTL)];

/// The kernel cuts requests at this size; more would only hold larger buffers.
const MAX_WRITE: u32 = 1 << 20;
/// Requests in flight; a loop device asks for 128 at once, and each may be cut in two.
const MAX_BACKGROUND: u16 = 1024;
/// How long the kernel may cache the attributes of a file.
const TTL: Duration = Duration::from_secs(1);

/// The filesystem that `mydyno-disk` mounts.
pub struct Files {
    disk: Arc<Disk>,
    born: SystemTime,
    /// What each open `ctl` reads: a state that does not change between two reads of one reader.
    views: Mutex<HashMap<u64, String>>,
    handles: AtomicU64,
}

impl Files {
    /// The files of one disk.
    pub fn new(disk: Arc<Disk>) -> Self {
        Self {
            disk,
            born: SystemTime::now(),
            views: Mutex::default(),
            handles: AtomicU64::new(1),
        }
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o700, 0),
            DISK => (FileType::RegularFile, 0o600, self.disk.store.size()),
            CTL => (FileType::RegularFile, 0o600, 0),
            _ => return None,
        };
        Some(FileAttr {
            ino,
            size,
            blocks: size / 512,
            atime: self.born,
            mtime: self.born,
            ctime: self.born,
            crtime: self.born,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    fn reply_attributes(&self, ino: INodeNo, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attr) => reply.attr(&TTL, &attr),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn views(&self) -> std::sync::MutexGuard<'_, HashMap<u64, String>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At most `size` bytes: an answer that is longer is an error to the kernel.
    fn read_view(&self, handle: FileHandle, offset: u64, size: u32) -> Vec<u8> {
        let views = self.views();
        let view = views.get(&handle.0).map_or("", String::as_str);
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let left = view.as_bytes().get(from..).unwrap_or_default();
        left[..left.len().min(size)].to_vec()
    }
}

impl Filesystem for Files {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without this flag the kernel sends the loop device's direct I/O one by one.
        config
            .add_capabilities(InitFlags::FUSE_ASYNC_DIO)
            .map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        // Each of the following is refused only with the nearest value, which is then in force.
        let _ = config.set_max_write(MAX_WRITE);
        let _ = config.set_max_readahead(MAX_WRITE);
        let _ = config.set_max_background(MAX_BACKGROUND);
        let _ = config.set_congestion_threshold(MAX_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = NAMES
            .iter()
            .find(|(known, _)| parent == INodeNo::ROOT && name == *known)
            .and_then(|(_, ino)| self.attributes(*ino));
        match found {
            Some(attr) => reply.entry(&TTL, &attr, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.reply_attributes(ino, reply);
    }

    /// Changes nothing: a shell truncates `ctl` before it writes to it.
    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        _size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if ino == CTL {
            self.reply_attributes(ino, reply);
        } else {
            reply.error(Errno::EPERM);
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        if ino == CTL {
            self.views().insert(handle, self.disk.state());
        }
        // Parallel writes: the kernel would else let one writer of the file in at a time.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(handle), flags);
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.views().remove(&fh.0);
        reply.ok();
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if ino == CTL {
            return reply.data(&self.read_view(fh, offset, size));
        }
        // The bytes are fetched at once, from memory mostly; only the answer waits.
        let due = self.disk.admit_read(offset, size);
        let done = self.disk.faults.read(&self.disk.store, offset, size);
        self.disk.timer.at(due, move || match done {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(errno(&error)),
        });
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let size = u32::try_from(data.len()).unwrap_or(u32::MAX);
        if ino == CTL {
            return match self.disk.order(&String::from_utf8_lossy(data)) {
                Ok(()) => reply.written(size),
                Err(error) => reply.error(errno(&error)),
            };
        }
        let due = self.disk.admit_write(offset, size);
        let done = self.disk.faults.write(&self.disk.store, offset, data);
        self.disk.timer.at(due, move || match done {
            Ok(()) => reply.written(size),
            Err(error) => reply.error(errno(&error)),
        });
    }

    /// Answers after the flush latency and writes nothing out: what the lab promises is the
    /// time a flush takes, and what a cut of its power leaves.  The bytes live as long as the host
    /// does, whatever is killed on it.
    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        let due = self.disk.admit_flush();
        let mark = self.disk.faults.begin_flush();
        let disk = Arc::clone(&self.disk);
        self.disk.timer.at(due, move || {
            match mark.and_then(|mark| disk.faults.end_flush(mark)) {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(&error)),
            }
        });
    }

    fn fallocate(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _offset: u64,
        _length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EOPNOTSUPP);
    }

    fn readdir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let skip = usize::try_from(offset).unwrap_or(usize::MAX);
        for (position, (name, ino)) in (1..).zip(NAMES).skip(skip) {
            if reply.add(ino, position, FileType::RegularFile, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// The number of an error; one of our own words is "invalid argument".
fn errno(error: &io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::InvalidInput => Errno::EINVAL,
        io::ErrorKind::StorageFull => Errno::ENOSPC,
        _ => error.raw_os_error().map_or(Errno::EIO, Errno::from_i32),
    }
}
