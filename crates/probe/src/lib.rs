//! The sampler: host, processes and server, tick by tick, into one framed file.

pub mod file;
pub mod frame;
pub mod host;
mod life;
pub mod options;
pub mod process;
pub mod reading;
mod run;
pub mod schedule;
pub mod server;
pub mod states;
pub mod table;

pub use run::run;
