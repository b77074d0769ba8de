//! The slow log: statements gathered into classes, with exact counts and sums.

mod attributes;
mod behind;
mod class;
mod ending;
mod engine;
mod figures;
mod fingerprint;
mod fingerprint_pt;
mod fingerprint_text;
mod gather;
mod header;
pub mod histogram;
mod input;
mod json;
mod layout;
mod legible;
mod names;
mod number;
pub mod options;
pub mod parallel;
mod paste;
mod piece;
mod reader;
pub mod result;
mod run;
mod select;
mod shape;
mod siblings;
mod text;
mod time;
mod watched;
#[cfg(test)]
mod watched_tests;

pub use engine::Engine;
pub use options::{Config, Filter};
pub use result::Digest;
pub use run::run;
