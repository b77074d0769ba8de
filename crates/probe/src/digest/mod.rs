//! The slow log: statements gathered into classes, with exact counts and sums.
