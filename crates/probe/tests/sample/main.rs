//! The sampler: its file, its sources on recorded and real hosts, and its life.

mod decode;
mod file;
mod folder;
mod group;
mod host;
mod process;
mod run;
mod states;
