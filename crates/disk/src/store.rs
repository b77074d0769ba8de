//! The bytes of the device: a base file for each disk, and above it an overlay to throw away.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::thread;

use crate::overlay::Overlay;
use crate::stripe::Stripe;

/// The files of one disk.
#[derive(Debug, Clone)]
pub struct Files {
    pub base: PathBuf,
    pub overlay: PathBuf,
}

/// Where writes go.
enum Stage {
    /// Before the freeze: straight to the bases.
    Direct,
    /// After it: the bases are never written again.
    Frozen(Vec<Overlay>),
}

/// The device's bytes; any number of threads may read and write at once.
pub struct Store {
    stripe: Stripe,
    size: u64,
    bases: Vec<File>,
    overlays: Vec<PathBuf>,
    stage: RwLock<Stage>,
}

impl Store {
    /// Opens the base of each disk, making it as long as its part of `size` if it is shorter;
    /// `frozen` begins with an empty overlay above each.
    pub fn open(files: &[Files], stripe: Stripe, size: u64, frozen: bool) -> io::Result<Self> {
        let length = stripe.disk_size(size);
        let open = |files: &Files| open_base(&files.base, length);
        let mut store = Self {
            stripe,
            size: length * stripe.disks() as u64,
            bases: files.iter().map(open).collect::<io::Result<_>>()?,
            overlays: files.iter().map(|files| files.overlay.clone()).collect(),
            stage: RwLock::new(Stage::Direct),
        };
        if frozen {
            store.stage = RwLock::new(Stage::Frozen(store.fresh()?));
        }
        Ok(store)
    }

    /// The size of the device in bytes, a multiple of the chunk size.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How the bytes lie on the disks.
    pub fn stripe(&self) -> Stripe {
        self.stripe
    }

    /// Reads up to `len` bytes at `at`, fewer at the end of the device.
    pub fn read(&self, at: u64, len: u32) -> io::Result<Vec<u8>> {
        let end = (at + u64::from(len)).min(self.size);
        let mut data = vec![0; usize::try_from(end.saturating_sub(at)).unwrap_or(0)];
        let stage = self.stage.read().unwrap_or_else(PoisonError::into_inner);
        for piece in self.stripe.pieces(at, data.len()) {
            let (base, part) = (&self.bases[piece.disk], &mut data[piece.bytes]);
            match &*stage {
                Stage::Direct => base.read_exact_at(part, piece.at)?,
                Stage::Frozen(overlays) => overlays[piece.disk].read(base, piece.at, part)?,
            }
        }
        Ok(data)
    }

    /// Writes all of `data` at `at`.
    pub fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        if at + data.len() as u64 > self.size {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let stage = self.stage.read().unwrap_or_else(PoisonError::into_inner);
        for piece in self.stripe.pieces(at, data.len()) {
            let (base, part) = (&self.bases[piece.disk], &data[piece.bytes]);
            match &*stage {
                Stage::Direct => base.write_all_at(part, piece.at)?,
                Stage::Frozen(overlays) => overlays[piece.disk].write(base, piece.at, part)?,
            }
        }
        Ok(())
    }

    /// Makes the bytes written so far the base of all that follows; returns false if that was
    /// done before.
    pub fn freeze(&self) -> io::Result<bool> {
        let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*stage, Stage::Frozen(_)) {
            return Ok(false);
        }
        *stage = Stage::Frozen(self.fresh()?);
        Ok(true)
    }

    /// Goes back to the bases; returns false if there is no overlay yet.
    pub fn drop_overlay(&self) -> io::Result<bool> {
        let mut stage = self.stage.write().unwrap_or_else(PoisonError::into_inner);
        if matches!(*stage, Stage::Direct) {
            return Ok(false);
        }
        let fresh = Stage::Frozen(self.fresh()?);
        let old = std::mem::replace(&mut *stage, fresh);
        // Giving gigabytes back to the filesystem takes it a while; nobody needs to wait for it.
        thread::spawn(move || drop(old));
        Ok(true)
    }

    /// How many pages differ from the bases; `None` before the freeze.
    pub fn overlay_pages(&self) -> Option<u64> {
        match &*self.stage.read().unwrap_or_else(PoisonError::into_inner) {
            Stage::Direct => None,
            Stage::Frozen(overlays) => Some(overlays.iter().map(Overlay::pages).sum()),
        }
    }

    /// An empty overlay for each disk.
    fn fresh(&self) -> io::Result<Vec<Overlay>> {
        let length = self.size / self.stripe.disks() as u64;
        let open = |path: &PathBuf| Overlay::open(path, length);
        self.overlays.iter().map(open).collect()
    }
}

fn open_base(path: &Path, length: u64) -> io::Result<File> {
    let base = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    if base.metadata()?.len() < length {
        base.set_len(length)?;
    }
    Ok(base)
}
