//! The slow log: statements gathered into classes, with exact counts and sums.

mod attributes;
mod behind;
mod body;
mod class;
pub mod config;
mod ending;
#[cfg(test)]
mod ending_tests;
mod engine;
mod figures;
mod fingerprint;
mod fingerprint_pt;
mod fingerprint_pt_end;
mod fingerprint_text;
mod follow;
mod gather;
mod hash;
mod header;
pub mod histogram;
mod input;
mod json;
mod junk;
mod kept;
mod layout;
mod layouts;
mod lead;
mod legible;
mod list;
mod merge;
mod names;
mod number;
pub mod options;
mod order;
mod pages;
pub mod parallel;
#[cfg(test)]
mod parallel_tests;
mod piece;
mod place;
mod prelude;
mod reader;
pub mod result;
mod run;
mod select;
mod shape;
#[cfg(test)]
mod shape_tests;
mod siblings;
mod tally;
mod text;
mod time;
mod total;
mod value;
mod watched;
#[cfg(test)]
mod watched_tests;
mod when;
mod window;
mod zst;

pub use config::{Config, Filter};
pub use engine::Engine;
pub use result::Digest;
pub use run::run;
