//! The two jobs of mydyno-probe: sampling a host and its server, and digesting slow logs.

pub mod digest;
pub mod sample;
