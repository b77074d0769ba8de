//! `mydyno-probe digest`, run as a program.

mod follow;
mod output;
mod packed;
mod program;
mod wrong;
