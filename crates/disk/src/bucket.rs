//! A rate limit with burst credits, as pure arithmetic on given times.

/// A rate in units per second, a higher one, and the units that may be spent above the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cap {
    pub base: f64,
    pub burst: f64,
    pub credits: f64,
}

impl Cap {
    /// A rate that never bursts.
    pub fn flat(rate: f64) -> Self {
        Self {
            base: rate,
            burst: rate,
            credits: 0.0,
        }
    }

    /// A rate that can be `burst` for `seconds` when the bucket is full.
    pub fn bursting(base: f64, burst: f64, seconds: f64) -> Self {
        Self {
            base,
            burst,
            credits: (burst - base) * seconds,
        }
    }
}

/// When the next units may pass, and what is left of the credits.
///
/// `next_s` is the absolute time until which the units admitted so far fill the rate; pacing by
/// it, and not by a sleep per request, keeps the long-run rate exact.
#[derive(Debug)]
pub struct Bucket {
    cap: Cap,
    next_s: f64,
    credits: f64,
}

impl Bucket {
    /// A bucket whose credits are at `level` (0 to 1) of their maximum.
    pub fn new(cap: Cap, level: f64, now_s: f64) -> Self {
        Self {
            cap,
            next_s: now_s,
            credits: cap.credits * level,
        }
    }

    /// Admits `units` asked for at `now_s`; returns the time at which they may be answered.
    ///
    /// A disk that was idle for `slack_s` or longer takes that much of its rate at once.
    pub fn admit(&mut self, units: f64, now_s: f64, slack_s: f64) -> f64 {
        let due_s = self.next_s.max(now_s - slack_s);
        self.earn(due_s - self.next_s);
        self.next_s = due_s + self.spend(units);
        due_s
    }

    /// Sets the credits to `level` (0 to 1) of their maximum.
    pub fn set_level(&mut self, level: f64, now_s: f64) {
        self.next_s = self.next_s.max(now_s);
        self.credits = self.cap.credits * level;
    }

    /// The credits left at `now_s`.
    pub fn credits(&self, now_s: f64) -> f64 {
        let idle_s = (now_s - self.next_s).max(0.0);
        (self.credits + self.cap.base * idle_s).min(self.cap.credits)
    }

    /// The rates and the size of the bucket.
    pub fn cap(&self) -> Cap {
        self.cap
    }

    /// Forgets what is queued and what was idle, and goes on from `now_s`.
    pub fn restart(&mut self, now_s: f64) {
        self.next_s = now_s;
    }

    /// Time in which nothing was asked for refills the credits at the base rate.
    fn earn(&mut self, idle_s: f64) {
        self.credits = (self.credits + self.cap.base * idle_s).min(self.cap.credits);
    }

    /// Returns how long `units` fill the disk: as many as there are credits for at the burst
    /// rate, the others at the base rate.
    fn spend(&mut self, units: f64) -> f64 {
        let Cap { base, burst, .. } = self.cap;
        // At the burst rate `units` last `units / burst` seconds, in which `base` refills.
        let price = units * (1.0 - base / burst);
        if price <= 0.0 {
            return units / base;
        }
        let share = (self.credits / price).min(1.0);
        self.credits = (self.credits - price).max(0.0);
        units * (share / burst + (1.0 - share) / base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLACK_S: f64 = 0.004;

    const P15: Cap = Cap {
        base: 1100.0,
        burst: 3500.0,
        credits: 2400.0 * 1800.0,
    };

    /// Asks for one unit at a time, always waiting for the answer 32 requests back.
    fn saturate(bucket: &mut Bucket, from_s: f64, count: usize) -> f64 {
        let mut answered = vec![from_s; 32];
        for i in 0..count {
            let now_s = answered[i % 32];
            answered[i % 32] = bucket.admit(1.0, now_s, SLACK_S).max(now_s);
        }
        answered.iter().copied().fold(from_s, f64::max) - from_s
    }

    fn close(got: f64, want: f64, ratio: f64) {
        assert!((got / want - 1.0).abs() < ratio, "got {got}, want {want}");
    }

    #[test]
    fn an_empty_bucket_holds_the_base_rate() {
        let mut bucket = Bucket::new(P15, 0.0, 0.0);
        close(saturate(&mut bucket, 0.0, 11_000), 10.0, 0.001);
    }

    #[test]
    fn a_full_bucket_holds_the_burst_rate() {
        let mut bucket = Bucket::new(P15, 1.0, 0.0);
        close(saturate(&mut bucket, 0.0, 35_000), 10.0, 0.001);
        close(P15.credits - bucket.credits(10.0), 24_000.0, 0.001);
    }

    #[test]
    fn the_burst_lasts_as_long_as_its_credits_and_no_longer() {
        let cap = Cap::bursting(1000.0, 3000.0, 2.0);
        let mut bucket = Bucket::new(cap, 1.0, 0.0);
        // 2 s at 3000/s, then 3 s at 1000/s.
        close(saturate(&mut bucket, 0.0, 9000), 5.0, 0.001);
        assert!(bucket.credits(5.0) < 1.0);
    }

    #[test]
    fn an_idle_disk_earns_the_base_rate_up_to_its_maximum() {
        let cap = Cap::bursting(1000.0, 3000.0, 2.0);
        let bucket = Bucket::new(cap, 0.0, 0.0);
        close(bucket.credits(1.5), 1500.0, 0.001);
        close(bucket.credits(60.0), cap.credits, 0.001);
    }

    #[test]
    fn a_long_rest_buys_no_longer_burst_than_a_full_bucket() {
        let cap = Cap::bursting(1000.0, 3000.0, 2.0);
        let mut bucket = Bucket::new(cap, 1.0, 0.0);
        // after an hour of rest: 2 s at 3000/s, then 3 s at 1000/s, as of a bucket just filled
        close(saturate(&mut bucket, 3600.0, 9000), 5.0, 0.001);
    }

    #[test]
    fn half_the_base_rate_earns_the_other_half() {
        let mut bucket = Bucket::new(P15, 0.0, 0.0);
        for i in 0..550_u32 {
            bucket.admit(1.0, f64::from(i) / 550.0, SLACK_S);
        }
        close(bucket.credits(1.0), 550.0, 0.02);
    }

    #[test]
    fn a_lone_request_does_not_wait() {
        let mut bucket = Bucket::new(Cap::flat(120.0), 0.0, 0.0);
        assert!(bucket.admit(1.0, 5.0, SLACK_S) <= 5.0);
    }

    #[test]
    fn an_idle_disk_saves_no_more_than_the_slack() {
        let mut bucket = Bucket::new(Cap::flat(1000.0), 0.0, 0.0);
        let passed = (0..100)
            .filter(|_| bucket.admit(1.0, 60.0, SLACK_S) <= 60.0)
            .count();
        assert!((4..=5).contains(&passed), "{passed}");
    }

    #[test]
    fn a_request_larger_than_the_credits_is_paid_at_both_rates() {
        let cap = Cap::bursting(100.0, 200.0, 1.0);
        let mut bucket = Bucket::new(cap, 1.0, 0.0);
        bucket.admit(400.0, 0.0, SLACK_S);
        // 200 units at 200/s use up the 100 credits, the other 200 take 2 s.
        close(bucket.admit(1.0, 0.0, SLACK_S), 3.0, 0.001);
    }

    #[test]
    fn a_set_level_is_not_raised_by_the_idle_time_before_it() {
        let mut bucket = Bucket::new(P15, 1.0, 0.0);
        bucket.set_level(0.0, 100.0);
        assert!(bucket.credits(100.0) < 1e-9);
    }
}
