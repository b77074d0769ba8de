//! Seeded chance, and numbers as text, without an allocation for each.

/// Numbers from a seed (`SplitMix64`, G. Steele and others, 2014).
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is small.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((self.roll() >> 32) * limit) >> 32
    }
}

/// Appends `value` in decimal.
pub fn number(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0_u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = digit(rest);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends the last `N` digits of `value`, with zeros in front.
pub fn padded<const N: usize>(out: &mut Vec<u8>, value: u64) {
    let mut digits = [b'0'; N];
    let mut rest = value;
    for place in digits.iter_mut().rev() {
        *place = digit(rest);
        rest /= 10;
    }
    out.extend_from_slice(&digits);
}

/// Appends microseconds as seconds with six decimals.
pub fn seconds(out: &mut Vec<u8>, us: u64) {
    number(out, us / 1_000_000);
    out.push(b'.');
    padded::<6>(out, us);
}

/// Appends `groups` of eleven digits with dashes between, as sysbench fills its columns.
pub fn groups(dice: &mut Dice, out: &mut Vec<u8>, groups: u32) {
    for group in 0..groups {
        if group > 0 {
            out.push(b'-');
        }
        padded::<11>(out, dice.roll() >> 20);
    }
}

/// Appends text and numbers in turn: `{}` in `pattern` stands for the next of `values`.
pub fn fill(out: &mut Vec<u8>, pattern: &str, values: &[u64]) {
    let mut values = values.iter();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once("{}") {
        out.extend_from_slice(before.as_bytes());
        number(out, *values.next().expect("a value for each {}"));
        rest = after;
    }
    out.extend_from_slice(rest.as_bytes());
}

fn digit(value: u64) -> u8 {
    b'0' + u8::try_from(value % 10).expect("a digit")
}
