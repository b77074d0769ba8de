//! `mydyno-probe digest`: logs in, the digest out.

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use mydyno_command::{fail, report, FAILED, WRONG};

use super::config::Config;
use super::follow::{follow, Fault};
use super::input::Input;
use super::legible::line;
use super::options::{Options, Output};
use super::select::select;
use super::total::Total;
use super::{json, text};

/// Columns of the text where nothing says otherwise.
const WIDTH: usize = 100;

/// Digests; 0 when all was read, 2 when the request was wrong, 3 when a log could not be read (what
/// could be read is printed).
///
/// # Errors
/// The digest could not be printed.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    let config = match options.config() {
        Ok(config) => config,
        Err(words) => return Ok(fail(&line(&words), WRONG)),
    };
    let done = if options.following.follow {
        let print = |total: &Total| print(total, &options.output);
        follow(&options.files, &options.following, &config, print)
    } else {
        read(options, &config)
    };
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Fault::Log(words)) => Ok(fail(&line(&words), FAILED)),
        // Whoever read the output has seen enough.
        Err(Fault::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Err(Fault::Output(error)) => Err(format!("standard output: {error}")),
    }
}

/// Reads all logs, each of which must open before the first is read.
fn read(options: &Options, config: &Config) -> Result<(), Fault> {
    let inputs: Result<Vec<Input>, String> =
        options.files.iter().map(|file| Input::open(file)).collect();
    let mut total = Total::default();
    let mut faults = Vec::new();
    for input in inputs.map_err(Fault::Log)? {
        let name = input.name.clone();
        let (digest, fault) = input.digest(options.threads(), config);
        total.add(name, digest);
        faults.extend(fault);
    }
    print(&total, &options.output).map_err(Fault::Output)?;
    if faults.is_empty() {
        return Ok(());
    }
    Err(Fault::Log(faults.join("\nmydyno-probe: ")))
}

fn print(total: &Total, output: &Output) -> io::Result<()> {
    let classes = select(&total.digest, &output.sort, output.reverse, output.limit);
    if !output.sort.known_in(&total.digest.classes) {
        report(&format!("--sort {}: no event has it", output.sort.name()));
    }
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    if output.json {
        json::write(&mut out, total, &classes)?;
    } else {
        text::write(&mut out, total, &classes, width(output))?;
    }
    out.flush()
}

fn width(output: &Output) -> usize {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let width = output.width.map(usize::from).or_else(columns);
    width.map_or(WIDTH, |width| width.clamp(80, 1000))
}
