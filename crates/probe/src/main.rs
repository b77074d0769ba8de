//! The command line of mydyno-probe.

fn main() {}
