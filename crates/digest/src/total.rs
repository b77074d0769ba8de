//! The digests of several logs as one, with what each log brought.

use super::result::Digest;

/// All that was read.
#[derive(Debug, Default)]
pub struct Total {
    pub digest: Digest,
    pub logs: Vec<Log>,
}

/// One log.
#[derive(Debug)]
pub struct Log {
    pub name: String,
    /// Bytes of log that were read, unpacked.
    pub bytes: u64,
}

impl Total {
    /// The total of these logs.
    pub fn of(digests: impl IntoIterator<Item = (String, Digest)>) -> Self {
        let mut total = Self::default();
        for (name, digest) in digests {
            total.add(name, digest);
        }
        total
    }

    /// Adds a log.
    pub fn add(&mut self, name: String, digest: Digest) {
        self.logs.push(Log {
            name,
            bytes: digest.summary.bytes,
        });
        if self.logs.len() == 1 {
            self.digest = digest;
        } else {
            self.digest.merge(digest);
        }
    }
}
