//! `mydyno-probe digest`: logs in, the digest out, at once or while the logs grow.

use std::fs;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use mydyno_command::{fail, on_signals, report, Signal, FAILED, INTERRUPTED, WRONG};

use super::input::{hint, reason, Input};
use super::legible::line;
use super::options::{Config, Following, Group, Options, Output};
use super::result::{Digest, Total};
use super::select::select;
use super::text::Page;
use super::watched::Watched;
use super::{json, text};

/// Columns of the text by default.
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
    if let Some(words) = missing(&options.files) {
        return Ok(fail(&line(&words), WRONG));
    }
    let done = if options.following.follow {
        let print = |total: &Total| print(total, &options.output, config.group);
        follow(&options.files, &options.following, &config, print)
    } else {
        read(options, &config)
    };
    match done {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Fault::Request(words)) => Ok(fail(&line(&words), WRONG)),
        Err(Fault::Log(words)) => Ok(fail(&line(&words), FAILED)),
        // Whoever read the output has seen enough.
        Err(Fault::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            Ok(ExitCode::SUCCESS)
        }
        Err(Fault::Output(error)) => Err(format!("standard output: {error}")),
    }
}

/// Which of the files is not there, if any: the request is wrong then, and no log has failed.
fn missing(files: &[PathBuf]) -> Option<String> {
    let named = files.iter().filter(|file| file.as_os_str() != "-");
    named
        .filter_map(|file| Some((file, fs::metadata(file).err()?)))
        .find(|(_, error)| error.kind() == io::ErrorKind::NotFound)
        .map(|(file, error)| format!("{}: {}", file.display(), reason(&error)))
}

/// Reads all logs, each of which must open before the first is read.
fn read(options: &Options, config: &Config) -> Result<(), Fault> {
    let inputs: Result<Vec<Input>, String> =
        options.files.iter().map(|file| Input::open(file)).collect();
    let mut total = Total::default();
    let mut faults = Vec::new();
    for input in inputs.map_err(Fault::Request)? {
        let name = input.name.clone();
        let path = input.path();
        let (digest, fault) = input.digest(options.threads(), config);
        let summary = &digest.summary;
        if summary.totals.events + summary.filtered == 0 && fault.is_none() {
            report(&line(&format!(
                "{name}: {}",
                hint(path.as_deref(), summary.bytes)
            )));
        }
        total.add(name, digest);
        faults.extend(fault);
    }
    print(&total, &options.output, config.group).map_err(Fault::Output)?;
    if faults.is_empty() {
        return Ok(());
    }
    Err(Fault::Log(faults.join("\nmydyno-probe: ")))
}

fn print(total: &Total, output: &Output, group: Option<Group>) -> io::Result<()> {
    let classes = select(
        &total.digest,
        &output.sort,
        output.reverse,
        output.limit,
        &output.id,
    );
    if !output.sort.known_in(&total.digest.classes) {
        report(&format!("--sort {}: no event has it", output.sort.name()));
    }
    let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    if output.json {
        json::write(&mut out, total, &classes, group)?;
    } else {
        text::write(&mut out, total, &classes, page(output, group))?;
    }
    out.flush()
}

/// The terminal's width unless another is asked for; a file has its statements unfolded.
fn page(output: &Output, group: Option<Group>) -> Page {
    let terminal = io::stdout().is_terminal();
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let size = || rustix::termios::tcgetwinsize(io::stdout()).ok();
    let shown = || {
        size()
            .map(|size| usize::from(size.ws_col))
            .filter(|width| *width > 0)
    };
    let asked = output.width.map(usize::from);
    let width = asked.or_else(shown).or_else(columns);
    Page {
        width: width.map_or(WIDTH, |width| width.clamp(80, 1000)),
        fold: terminal || asked.is_some(),
        group,
    }
}

/// How often a log is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Why following ended before its time.
pub enum Fault {
    /// A log cannot be opened, or is not one that can be read, and which.
    Request(String),
    /// A log could not be read, and which.
    Log(String),
    /// What was gathered could not be printed.
    Output(std::io::Error),
}

/// Follows all files to the end of following; `print` gets the total of each period.
///
/// # Errors
/// A log cannot be read, or `print` failed.
pub fn follow(
    files: &[PathBuf],
    options: &Following,
    config: &Config,
    mut print: impl FnMut(&Total) -> std::io::Result<()>,
) -> Result<(), Fault> {
    let stop = Stop::after(options.duration);
    let mut logs = open(files, options.new, config)?;
    let mut period = Instant::now();
    while !stop.wait(LOOK) {
        for (name, log) in &mut logs {
            print_notes(&log.poll().map_err(|error| fault(name, &error))?);
        }
        if options.every.is_some_and(|every| period.elapsed() >= every) {
            period += options.every.unwrap_or_default();
            let taken = logs
                .iter_mut()
                .map(|(name, log)| (name.clone(), log.take()));
            print(&Total::of(taken)).map_err(Fault::Output)?;
        }
    }
    print(&finish(logs)?).map_err(Fault::Output)
}

type Log = (String, Watched);

fn open(files: &[PathBuf], new: bool, config: &Config) -> Result<Vec<Log>, Fault> {
    let one = |path: &PathBuf| {
        let name = path.display().to_string();
        let log = Watched::open(path, new, config)
            .map_err(|error| Fault::Request(format!("{name}: {}", reason(&error))))?;
        Ok((name, log))
    };
    files.iter().map(one).collect()
}

fn finish(logs: Vec<Log>) -> Result<Total, Fault> {
    let mut ended: Vec<(String, Digest)> = Vec::new();
    for (name, log) in logs {
        let (digest, notes) = log.finish().map_err(|error| fault(&name, &error))?;
        print_notes(&notes);
        ended.push((name, digest));
    }
    Ok(Total::of(ended))
}

fn print_notes(notes: &[String]) {
    for note in notes {
        report(&line(note));
    }
}

fn fault(name: &str, error: &std::io::Error) -> Fault {
    Fault::Log(format!("{name}: {}", reason(error)))
}

/// Waits that end early when following is to end: its time is over, or SIGINT or SIGTERM came.
struct Stop {
    signal: Receiver<()>,
    end: Option<Instant>,
}

impl Stop {
    /// Begins to hold the signals; to be made before any thread.  A second signal ends at once.
    fn after(duration: Option<Duration>) -> Self {
        let (sender, signal) = channel();
        let mut first = Some(sender);
        on_signals(&[Signal::SIGTERM, Signal::SIGINT], move || {
            let Some(sender) = first.take() else {
                std::process::exit(INTERRUPTED.into());
            };
            let _ = sender.send(());
        });
        Self {
            signal,
            end: duration.and_then(|duration| Instant::now().checked_add(duration)),
        }
    }

    /// Waits so long; true when following is to end.
    fn wait(&self, time: Duration) -> bool {
        let left = self
            .end
            .map(|end| end.saturating_duration_since(Instant::now()));
        match self
            .signal
            .recv_timeout(left.map_or(time, |left| left.min(time)))
        {
            Err(RecvTimeoutError::Timeout) => left.is_some_and(|left| left <= time),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
        }
    }
}
