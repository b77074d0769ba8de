//! Where /proc and /sys are, and the constants of this kernel.

use std::path::{Path, PathBuf};

/// The root of what is read: `/`, but for a recorded host.
#[derive(Clone, Debug)]
pub struct Root(PathBuf);

impl Default for Root {
    fn default() -> Self {
        Self::at("/")
    }
}

impl Root {
    /// A root with `proc` and `sys` in it.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// A path, absolute or not, below this root.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }
}

/// Clock ticks in a second of /proc's CPU times.
#[must_use]
pub fn clock_ticks() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Bytes of a page.
#[must_use]
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// The scale of a value counted in clock ticks, in seconds.
#[must_use]
pub fn tick_seconds() -> f64 {
    f64::from(u32::try_from(clock_ticks()).unwrap_or(100)).recip()
}

/// The scale of a value counted in pages, in bytes.
#[must_use]
pub fn page_bytes() -> f64 {
    f64::from(u32::try_from(page_size()).unwrap_or(4096))
}
