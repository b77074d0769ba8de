//! The sampler: host, processes and server, tick by tick, into one framed file.
