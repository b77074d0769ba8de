//! The sampler: host, processes and server, tick by tick, into one framed file.

pub mod clock;
pub mod file;
pub mod frame;
mod head;
pub mod host;
mod life;
pub mod options;
mod own;
mod priority;
pub mod process;
pub mod reading;
pub mod recorder;
pub mod root;
pub mod rows;
mod run;
pub mod schedule;
pub mod server;
pub mod table;
pub mod text;

pub use run::run;
