//! Logs followed while they grow, printed for each period or at the end.

use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use mydyno_command::{on_signals, report, Signal, INTERRUPTED};

use super::config::Config;
use super::input::reason;
use super::legible::line;
use super::options::Following;
use super::result::Digest;
use super::total::Total;
use super::watched::Watched;

/// How often a log is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Why following ended before its time.
pub enum Fault {
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
            tell(&log.poll().map_err(|error| fault(name, &error))?);
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
        let log = Watched::open(path, new, config).map_err(|error| fault(&name, &error))?;
        Ok((name, log))
    };
    files.iter().map(one).collect()
}

fn finish(logs: Vec<Log>) -> Result<Total, Fault> {
    let mut ended: Vec<(String, Digest)> = Vec::new();
    for (name, log) in logs {
        let (digest, notes) = log.finish().map_err(|error| fault(&name, &error))?;
        tell(&notes);
        ended.push((name, digest));
    }
    Ok(Total::of(ended))
}

fn tell(notes: &[String]) {
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
