//! How a device's bytes lie on its disks: RAID level 0, chunk by chunk and disk after disk.

use std::ops::Range;

/// A part of a request that lies on one disk without a gap, within one chunk.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub disk: usize,
    /// Where it begins on that disk.
    pub at: u64,
    /// Which bytes of the request it is.
    pub bytes: Range<usize>,
}

/// `disks` equal disks in chunks of `chunk` bytes; one disk alone is not cut at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stripe {
    disks: usize,
    chunk: u64,
}

impl Stripe {
    /// A stripe of at least one disk and a chunk that is not 0.
    pub fn new(disks: usize, chunk: u64) -> Self {
        Self {
            disks: disks.max(1),
            chunk: chunk.max(1),
        }
    }

    /// How many disks there are.
    pub fn disks(&self) -> usize {
        self.disks
    }

    /// The bytes that follow one another on a disk before the next disk's come.
    pub fn chunk(&self) -> u64 {
        self.chunk
    }

    /// The size of each disk of a device of `size` bytes, complete chunks only, as md does.
    pub fn disk_size(&self, size: u64) -> u64 {
        if self.disks == 1 {
            return size;
        }
        size / self.disks as u64 / self.chunk * self.chunk
    }

    /// Cuts a request of `len` bytes at `at` into pieces, in order.
    pub fn pieces(&self, at: u64, len: usize) -> impl Iterator<Item = Piece> {
        let stripe = *self;
        let mut done = 0;
        std::iter::from_fn(move || {
            let piece = stripe.piece(at + done as u64, done, len - done);
            done += piece.bytes.len();
            (!piece.bytes.is_empty()).then_some(piece)
        })
    }

    /// How many bytes of a request each disk carries.
    ///
    /// What a request has on one disk lies there without a gap, so it is one I/O to it: the block
    /// layer merges the chunks of one request before md's members see them.
    pub fn shares(&self, at: u64, len: usize) -> Vec<usize> {
        let mut shares = vec![0; self.disks];
        for piece in self.pieces(at, len) {
            shares[piece.disk] += piece.bytes.len();
        }
        shares
    }

    /// The piece that begins at `at`, of which `len` bytes are wanted and `done` were before it.
    fn piece(self, at: u64, done: usize, len: usize) -> Piece {
        if self.disks == 1 {
            let bytes = done..done + len;
            return Piece { disk: 0, at, bytes };
        }
        let (number, inside) = (at / self.chunk, at % self.chunk);
        let (row, disk) = (number / self.disks as u64, number % self.disks as u64);
        let left = usize::try_from(self.chunk - inside).unwrap_or(usize::MAX);
        Piece {
            // smaller than the number of disks, so it fits
            disk: usize::try_from(disk).unwrap_or(0),
            at: row * self.chunk + inside,
            bytes: done..done + len.min(left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn pieces(stripe: Stripe, at: u64, len: usize) -> Vec<(usize, u64, usize)> {
        stripe
            .pieces(at, len)
            .map(|piece| (piece.disk, piece.at, piece.bytes.len()))
            .collect()
    }

    #[test]
    fn one_disk_is_not_cut() {
        assert_eq!(
            pieces(Stripe::new(1, 4096), 1000, 1 << 20),
            [(0, 1000, 1 << 20)]
        );
        assert_eq!(Stripe::new(1, 4096).disk_size(5000), 5000);
    }

    #[test]
    fn chunks_go_round_the_disks() {
        let stripe = Stripe::new(3, 64 * KIB);
        for (number, want) in [
            (0, (0, 0)),
            (1, (1, 0)),
            (2, (2, 0)),
            (3, (0, 1)),
            (7, (1, 2)),
        ] {
            let got = pieces(stripe, number * 64 * KIB + 8192, 4096);
            assert_eq!(
                got,
                [(want.0, want.1 * 64 * KIB + 8192, 4096)],
                "chunk {number}"
            );
        }
    }

    #[test]
    fn a_request_over_a_border_is_cut_there() {
        let got = pieces(Stripe::new(2, 4096), 4096 - 512, 4096 + 1024);
        assert_eq!(got, [(0, 3584, 512), (1, 0, 4096), (0, 4096, 512)]);
    }

    #[test]
    fn the_pieces_on_one_disk_have_no_gap_between_them() {
        let stripe = Stripe::new(4, 12 * KIB);
        for at in [0, 512, 12 * KIB - 1, 50 * KIB, 47 * KIB + 7] {
            let mut ends = [None; 4];
            for piece in stripe.pieces(at, 300_000) {
                let end = piece.at + piece.bytes.len() as u64;
                let before = ends[piece.disk].replace(end);
                assert!(before.is_none_or(|before| before == piece.at), "at {at}");
            }
        }
    }

    #[test]
    fn each_byte_of_a_device_has_one_place_of_its_own() {
        let stripe = Stripe::new(3, 4096);
        let mut seen = vec![vec![false; 5 * 4096]; 3];
        for piece in stripe.pieces(0, 3 * 5 * 4096) {
            for at in piece.at..piece.at + piece.bytes.len() as u64 {
                let at = usize::try_from(at).expect("small");
                assert!(!std::mem::replace(&mut seen[piece.disk][at], true));
            }
        }
        assert!(seen.iter().flatten().all(|held| *held));
    }

    #[test]
    fn shares_are_what_each_disk_carries() {
        let stripe = Stripe::new(4, 64 * KIB);
        assert_eq!(stripe.shares(0, 1 << 20), [256 * 1024; 4]);
        assert_eq!(stripe.shares(64 * KIB, 16 * 1024), [0, 16 * 1024, 0, 0]);
        assert_eq!(stripe.shares(0, 0), [0; 4]);
    }

    #[test]
    fn a_disk_holds_complete_chunks() {
        let stripe = Stripe::new(3, 512 * KIB);
        let disk = stripe.disk_size(8 << 30);
        assert_eq!(disk % (512 * KIB), 0);
        assert!(disk * 3 <= 8 << 30 && (8 << 30) - disk * 3 < 3 * 512 * KIB);
    }
}
