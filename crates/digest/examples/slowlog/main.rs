//! Writes a slow log of a given size from a seed, and prints its exact totals.
//!
//! `oltp` is sysbench's `oltp_read_write` on four tables: 41 classes, 417 bytes an event in
//! `MariaDB`'s format.  `wide` has IN lists of 1000 and INSERTs of 300 rows, 7 KB an event, in the
//! format of `MySQL` 8 with `log_slow_extra`.

mod clock;
mod header;
mod statement;
mod text;

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

use header::{Event, Flavour, Writer};
use text::Dice;

/// Writes a slow log made from a seed and prints its totals as one line of JSON
#[derive(Parser)]
struct Options {
    shape: Shape,
    /// Whose format: mariadb for oltp, mysql8-extra for wide, unless given
    #[arg(long)]
    flavour: Option<Flavour>,
    /// The size, with K, M or G for powers of 1024; the last event ends after it
    #[arg(long, default_value = "1G", value_parser = bytes)]
    bytes: u64,
    #[arg(long, default_value_t = 7)]
    seed: u64,
    #[arg(long)]
    out: PathBuf,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Shape {
    Oltp,
    Wide,
}

#[derive(Default)]
struct Totals {
    events: u64,
    bytes: u64,
    query_time_us: u64,
    lock_time_us: u64,
    rows_sent: u64,
    rows_examined: u64,
}

/// How much is gathered before it is written.
const CHUNK: usize = 1 << 20;
const OLTP_PER_SECOND: u64 = 20_000;
const WIDE_PER_SECOND: u64 = 500;

fn main() -> ExitCode {
    let options = Options::parse();
    match write(&options) {
        Ok(totals) => {
            println!("{}", totals.json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("slowlog: {}: {error}", options.out.display());
            ExitCode::from(3)
        }
    }
}

fn write(options: &Options) -> io::Result<Totals> {
    let mut file = File::create(&options.out)?;
    let mut dice = Dice::new(options.seed);
    let wide = options.shape == Shape::Wide;
    let usual = if wide {
        Flavour::Mysql8Extra
    } else {
        Flavour::Mariadb
    };
    let per_second = if wide {
        WIDE_PER_SECOND
    } else {
        OLTP_PER_SECOND
    };
    let mut writer = Writer::new(options.flavour.unwrap_or(usual));
    let mut totals = Totals::default();
    let mut statement = Vec::new();
    let mut out = Vec::with_capacity(2 * CHUNK);
    writer.banner(&mut out);
    while totals.bytes + (out.len() as u64) < options.bytes {
        statement.clear();
        let plan = if wide {
            statement::wide(&mut dice, &mut statement)
        } else {
            statement::oltp(&mut dice, &mut statement)
        };
        let event = Event::new(&mut dice, totals.events, per_second, plan);
        totals.add(&event);
        writer.event(&mut out, &event, &statement);
        if out.len() >= CHUNK {
            totals.bytes += out.len() as u64;
            file.write_all(&out)?;
            out.clear();
        }
    }
    totals.bytes += out.len() as u64;
    file.write_all(&out)?;
    Ok(totals)
}

impl Totals {
    fn add(&mut self, event: &Event) {
        self.events += 1;
        self.query_time_us += event.query_time_us;
        self.lock_time_us += event.lock_time_us;
        self.rows_sent += event.rows_sent;
        self.rows_examined += event.rows_examined;
    }

    fn json(&self) -> String {
        format!(
            "{{\"events\": {}, \"bytes\": {}, \"query_time_us\": {}, \"lock_time_us\": {}, \
             \"rows_sent\": {}, \"rows_examined\": {}}}",
            self.events,
            self.bytes,
            self.query_time_us,
            self.lock_time_us,
            self.rows_sent,
            self.rows_examined
        )
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let count: u64 = digits
        .parse()
        .map_err(|_| format!("{text} is not a size such as 512M"))?;
    count
        .checked_shl(shift)
        .ok_or_else(|| format!("{text} is too large"))
}
