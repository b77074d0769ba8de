//! The loop: one tick for each deadline, none of them caught up.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use mydyno_command::{fail, FAILED, WRONG};
use serde_json::json;

use crate::file::Root;
use crate::frame::{head, Recorder, Tick};
use crate::host::Host;
use crate::life::{self, Life, Reason};
use crate::options::Options;
use crate::process::Processes;
use crate::reading::Reading;
use crate::schedule::{monotonic_ns, wall_ns, Schedule};
use crate::server::{Connections, Server};
use crate::states::States;
use crate::table::{Event, Source, Table};

/// A jump of the wall clock that is worth a note; slewing is far below.
const STEP_NS: i64 = 50_000_000;

/// Samples until it is to end; 0 when that was in order, 2 when the request was wrong, 3 when the
/// server that was asked for did not answer once.
///
/// # Errors
/// The file could not be made or written.
pub fn run(options: &Options) -> Result<ExitCode, String> {
    let out = options.out.display();
    let (life, sources) = match prepare(options) {
        Ok(prepared) => prepared,
        Err(words) => return Ok(fail(&words, WRONG)),
    };
    let recorder = match Recorder::create(&options.out) {
        Ok(recorder) => recorder,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let message = format!("{out}: is there already; name a new file");
            return Ok(fail(&message, WRONG));
        }
        Err(error) => return Err(format!("{out}: {error}")),
    };
    life::raise();
    let mut sampler = Sampler::new(options, sources, recorder, life);
    sampler.run().map_err(|error| format!("{out}: {error}"))?;
    let incomplete = sampler.reading.is_incomplete();
    Ok(ExitCode::from(if incomplete { FAILED } else { 0 }))
}

/// What the request asks for, before there is a file.
fn prepare(options: &Options) -> Result<(Life, Vec<Box<dyn Source>>), String> {
    options.check()?;
    let root = Root::default();
    if !root.path("proc/stat").exists() {
        return Err("/proc is not mounted here: there is nothing to sample".to_owned());
    }
    // Before there is any other thread, so that all of them hold the signals.
    let life = Life::new(&root, options.owner)?;
    let mut sources: Vec<Box<dyn Source>> = vec![Box::new(Host::new(&root))];
    let processes = Processes::new(&root, &options.process, &options.process_file);
    let found = processes.found();
    if !processes.is_empty() {
        sources.push(Box::new(processes));
    }
    let connections = options.states.map(|_| Connections::default());
    if let Some(server) = Server::start(&options.server, connections.clone())? {
        sources.push(Box::new(server));
    }
    if let Some((interval, connections)) = options.states.zip(connections) {
        sources.push(Box::new(States::new(&root, interval, found, connections)));
    }
    Ok((life, sources))
}

/// The state of the loop.
struct Sampler {
    table: Table,
    reading: Reading,
    recorder: Recorder,
    life: Life,
    mono_ns: i64,
    wall_ns: i64,
    schedule: Schedule,
    drift_ns: i64,
    /// When a source wants to look again, where one does.
    look_ns: Option<i64>,
}

impl Sampler {
    fn new(
        options: &Options,
        sources: Vec<Box<dyn Source>>,
        recorder: Recorder,
        life: Life,
    ) -> Self {
        let mut table = Table::new();
        Self {
            reading: Reading::new(&Root::default(), sources, &mut table),
            table,
            recorder,
            life,
            mono_ns: monotonic_ns(),
            wall_ns: wall_ns(),
            schedule: Schedule::new(options.interval, options.duration),
            drift_ns: 0,
            look_ns: None,
        }
    }

    fn run(&mut self) -> io::Result<()> {
        let interval_ns = self.schedule.interval_ns;
        self.recorder
            .head(&head(self.mono_ns, self.wall_ns, interval_ns))?;
        let reason = self.ticks()?;
        let schedule = &self.schedule;
        self.recorder.end(&json!({
            "seq": schedule.ticked, "reason": reason.word(),
            "ticks": schedule.ticks, "missed": schedule.missed,
        }))
    }

    /// Ticks until there is a reason to end.
    fn ticks(&mut self) -> io::Result<Reason> {
        loop {
            self.tick()?;
            let Some(deadline_ns) = self.schedule.done(self.now_ns()) else {
                return Ok(Reason::Duration);
            };
            if let Some(reason) = self.wait_until(deadline_ns) {
                return Ok(reason);
            }
            if !self.schedule.skip(self.now_ns()) {
                return Ok(Reason::Duration);
            }
        }
    }

    /// Waits for the deadline, and looks meanwhile; or less long, and returns why.
    fn wait_until(&mut self, deadline_ns: i64) -> Option<Reason> {
        loop {
            let look_ns = self.look_ns.filter(|look_ns| *look_ns < deadline_ns);
            let until_ns = self.mono_ns + look_ns.unwrap_or(deadline_ns);
            if let Some(reason) = self.life.wait_until(until_ns) {
                return Some(reason);
            }
            look_ns?;
            self.look();
        }
    }

    fn look(&mut self) {
        let now_ns = self.now_ns();
        self.look_ns = self.reading.look().map(|next_ns| now_ns + next_ns);
    }

    fn tick(&mut self) -> io::Result<()> {
        let begin_ns = self.now_ns();
        self.look_at_the_wall(wall_ns() - self.wall_ns - begin_ns);
        let late_ns = begin_ns - self.schedule.deadline_ns();
        let missed = self.schedule.missed;
        self.reading
            .read(self.mono_ns, late_ns, missed, &mut self.table);
        let tick = Tick {
            seq: self.schedule.due,
            begin_ns,
            took_ns: self.now_ns() - begin_ns,
            drift_ns: self.drift_ns,
        };
        if self.look_ns.is_none() {
            self.look();
        }
        self.recorder.tick(&tick, &mut self.table)
    }

    fn look_at_the_wall(&mut self, drift_ns: i64) {
        let step_ns = drift_ns - self.drift_ns;
        if step_ns.abs() > STEP_NS {
            let step = Duration::from_nanos(step_ns.unsigned_abs());
            let way = if step_ns > 0 { "forward" } else { "back" };
            let text = format!("the wall clock stepped {way} by {step:.3?}");
            self.table.note("host", Event::Clock, "", &text);
        }
        self.drift_ns = drift_ns;
    }

    fn now_ns(&self) -> i64 {
        monotonic_ns() - self.mono_ns
    }
}
