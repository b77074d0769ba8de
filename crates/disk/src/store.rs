//! The bytes of the disk: a base file, and above it an overlay that can be thrown away.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::thread;

use crate::overlay::Overlay;

/// Where writes go.
enum Stage {
    /// Before the freeze: straight to the base.
    Direct,
    /// After it: the base is never written again.
    Frozen(Overlay),
}

/// The disk's bytes; any number of threads may read and write at once.
pub struct Store {
    size: u64,
    base: File,
    overlay_path: PathBuf,
    stage: RwLock<Stage>,
}

impl Store {
    /// Opens the base, making it `size` bytes long if it is shorter; `frozen` begins with an
    /// empty overlay above it.
    pub fn open(base: &Path, overlay: &Path, size: u64, frozen: bool) -> io::Result<Self> {
        let base = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(base)?;
        if base.metadata()?.len() < size {
            base.set_len(size)?;
        }
        let stage = if frozen {
            Stage::Frozen(Overlay::open(overlay, size)?)
        } else {
            Stage::Direct
        };
        Ok(Self {
            size,
            base,
            overlay_path: overlay.to_owned(),
            stage: RwLock::new(stage),
        })
    }

    /// The size of the disk in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Reads up to `len` bytes at `at`, fewer at the end of the disk.
    pub fn read(&self, at: u64, len: u32) -> io::Result<Vec<u8>> {
        let end = (at + u64::from(len)).min(self.size);
        let mut data = vec![0; usize::try_from(end.saturating_sub(at)).unwrap_or(0)];
        match &*self.stage.read().unwrap_or_else(PoisonError::into_inner) {
            Stage::Direct => self.base.read_exact_at(&mut data, at)?,
            Stage::Frozen(overlay) => overlay.read(&self.base, at, &mut data)?,
        }
        Ok(data)
    }

    /// Writes all of `data` at `at`.
    pub fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        if at + data.len() as u64 > self.size {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match &*self.stage.read().unwrap_or_else(PoisonError::into_inner) {
            Stage::Direct => self.base.write_all_at(data, at),
            Stage::Frozen(overlay) => overlay.write(&self.base, at, data),
        }
    }

    /// Makes the bytes written so far the base of all that follows; returns false if that was
    /// done before.
    pub fn freeze(&self) -> io::Result<bool> {
        let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*stage, Stage::Frozen(_)) {
            return Ok(false);
        }
        *stage = Stage::Frozen(Overlay::open(&self.overlay_path, self.size)?);
        Ok(true)
    }

    /// Goes back to the base; returns false if there is no overlay yet.
    pub fn drop_overlay(&self) -> io::Result<bool> {
        let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*stage, Stage::Direct) {
            return Ok(false);
        }
        let fresh = Stage::Frozen(Overlay::open(&self.overlay_path, self.size)?);
        let old = std::mem::replace(&mut *stage, fresh);
        // Giving gigabytes back to the filesystem takes it a while; nobody needs to wait for it.
        thread::spawn(move || drop(old));
        Ok(true)
    }

    /// How many chunks differ from the base; `None` before the freeze.
    pub fn overlay_chunks(&self) -> Option<u64> {
        match &*self.stage.read().unwrap_or_else(PoisonError::into_inner) {
            Stage::Direct => None,
            Stage::Frozen(overlay) => Some(overlay.chunks()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::REGION;
    use std::fs;

    const SIZE: u64 = 2 * REGION;

    /// A folder of this test's own, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("mydyno-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a temporary folder");
            Self(path)
        }

        fn store(&self, frozen: bool) -> Store {
            let overlay = self.0.join("overlay");
            Store::open(&self.0.join("base"), &overlay, SIZE, frozen).expect("a store")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn pattern(seed: u64, len: usize) -> Vec<u8> {
        let byte = |i: usize| (i as u64 * 31 + seed * 7 + 1).to_le_bytes()[0];
        (0..len).map(byte).collect()
    }

    #[test]
    fn a_dropped_overlay_gives_the_base_again() {
        let folder = Folder::new("drop");
        let store = folder.store(false);
        let whole = u32::try_from(SIZE).expect("small");
        store.write(1000, &pattern(1, 9000)).expect("direct");
        let golden = store.read(0, whole).expect("read");
        assert!(store.freeze().expect("freeze"));
        for at in [0, 511, 4096, REGION - 100, SIZE - 3000] {
            store.write(at, &pattern(at, 3000)).expect("overlay");
        }
        assert_ne!(store.read(0, whole).expect("read"), golden);
        assert!(store.drop_overlay().expect("drop"));
        assert_eq!(store.read(0, whole).expect("read"), golden);
        assert_eq!(store.overlay_chunks(), Some(0));
    }

    #[test]
    fn partial_writes_keep_the_base_around_them() {
        let folder = Folder::new("partial");
        let store = folder.store(false);
        let mut want = pattern(3, 20_000);
        store.write(0, &want).expect("direct");
        store.freeze().expect("freeze");
        for (at, len) in [
            (512, 512),
            (4000, 200),
            (8192, 4096),
            (12_000, 7000),
            (600, 10),
        ] {
            let data = pattern(at as u64, len);
            store.write(at as u64, &data).expect("overlay");
            want[at..at + len].copy_from_slice(&data);
        }
        assert_eq!(store.read(0, 20_000).expect("read"), want);
    }

    #[test]
    fn writers_of_one_chunk_do_not_undo_each_other() {
        let folder = Folder::new("race");
        let store = folder.store(true);
        let sectors = 256_u64;
        thread::scope(|scope| {
            for first in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for sector in (first..sectors).step_by(4) {
                        store
                            .write(sector * 512, &pattern(sector, 512))
                            .expect("write");
                    }
                });
            }
        });
        for sector in 0..sectors {
            let got = store.read(sector * 512, 512).expect("read");
            assert_eq!(got, pattern(sector, 512), "sector {sector}");
        }
    }

    #[test]
    fn the_end_of_the_disk_is_held() {
        let folder = Folder::new("end");
        let store = folder.store(false);
        assert_eq!(store.read(SIZE - 100, 4096).expect("read").len(), 100);
        assert_eq!(store.read(SIZE + 1, 4096).expect("read").len(), 0);
        assert!(store.write(SIZE - 100, &[1; 101]).is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_no_file_is_left() {
        let folder = Folder::new("stages");
        let store = folder.store(false);
        assert!(!store.drop_overlay().expect("nothing to drop"));
        assert!(store.freeze().expect("first"));
        assert!(!store.freeze().expect("second"));
        assert!(!folder.0.join("overlay").exists());
    }
}
