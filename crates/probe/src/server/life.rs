//! Whether the server that answers over a new connection is the one that answered before.

/// The server's start may seem to move so far without a restart: uptime is in whole seconds.
const SLACK_NS: i64 = 2_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// What tells one life of a server from another, as of one reading.
#[derive(Clone, Copy, Debug)]
pub struct Sign {
    pub connection: u32,
    pub uptime_s: i64,
    pub monotonic_ns: i64,
    pub wall_ns: i64,
}

impl Sign {
    /// Whether the server restarted since `before`, which was read over another connection.
    ///
    /// Connections are numbered anew after a start.  Else its start must have moved on both
    /// clocks: uptime follows the wall clock, and a step of that is no restart.
    #[must_use]
    pub fn is_after_restart(&self, before: &Self) -> bool {
        let moved = |now_ns: i64, then_ns: i64| {
            let uptime_ns = self
                .uptime_s
                .saturating_sub(before.uptime_s)
                .saturating_mul(SECOND);
            now_ns - then_ns > uptime_ns.saturating_add(SLACK_NS)
        };
        self.connection <= before.connection
            || moved(self.monotonic_ns, before.monotonic_ns) && moved(self.wall_ns, before.wall_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(connection: u32, uptime_s: i64, monotonic_s: i64, wall_s: i64) -> Sign {
        Sign {
            connection,
            uptime_s,
            monotonic_ns: monotonic_s * SECOND,
            wall_ns: wall_s * SECOND,
        }
    }

    #[test]
    fn a_restart_is_told_from_a_lost_connection_and_a_step_of_the_clock() {
        let before = sign(40, 1000, 5000, 90_000);
        for (restarted, after) in [
            (false, sign(41, 1030, 5030, 90_030)),
            (false, sign(41, 901, 5001, 89_901)),
            (false, sign(41, 4601, 5001, 93_601)),
            (true, sign(3, 1, 5020, 90_020)),
            (true, sign(40, 1, 5020, 90_020)),
            (true, sign(90, 1, 5020, 90_020)),
            (true, sign(90, 2000, 9000, 94_000)), // up longer than it was, yet another
        ] {
            assert_eq!(after.is_after_restart(&before), restarted, "{after:?}");
        }
    }
}
