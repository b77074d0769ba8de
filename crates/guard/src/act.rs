//! What is done with a lease.  Every act holds the lock; what is written first is what counts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::fault::{At as _, Fault, Result};
use crate::health::Health;
use crate::lease::{settled, Change, Entry, Held, Kind, Lease, Leases, State};
use crate::system::{self, arm, boot, disarm, is_armed, log, now, Client, Unit};
use crate::undo::undo;
use crate::units;

/// The dead man waits so many tenths of a second for another act, then ends it.
const PATIENCE: u32 = 30;
const SHORTEST_S: u64 = 10;
pub const LONGEST_S: u64 = 7 * 86_400;

/// One host's leases, locked.
pub struct Host {
    leases: Leases,
    _lock: File,
}

impl Host {
    /// Takes the lock; with `takeover` from a guard that does not give it back.
    pub fn new(folder: &Path, takeover: bool) -> Result<Self> {
        let leases = Leases::open(folder)?;
        let mut lock = leases.lock(PATIENCE)?;
        if lock.is_none() && takeover {
            end_other(&leases);
            lock = leases.lock(PATIENCE)?;
        }
        match lock {
            Some(lock) => Ok(Self {
                leases,
                _lock: lock,
            }),
            None => Err(Fault::refused(
                "another act on this host's leases is running; wait until it ends",
            )),
        }
    }

    /// Changes the host on trial: everything is checked, the dead man armed, and only then changed.
    pub fn begin(&self, mut lease: Lease) -> Result<()> {
        let started = Instant::now();
        check(&lease)?;
        self.close_those_of_earlier_boots()?;
        let all = self.leases.all()?;
        if let Some(open) = all.iter().find(|one| !one.is_over()) {
            return Err(Fault::refused(format!(
                "{}: is open here since it was begun by {} ({}); confirm it or roll it back first",
                open.lease.id, open.lease.who, open.lease.why
            )));
        }
        let client = lease.client.clone();
        let client = Client(&client);
        if lease.restart || lease.trial.iter().any(|one| one.kind == Kind::Variable) {
            client.ask("SELECT 1").map_err(|fault| Fault {
                text: format!(
                    "the server's account cannot log in without your session's environment, as \
                     the timer would have to; name an option file with --server: {}",
                    fault.text
                ),
                ..fault
            })?;
        }
        if lease.restart && Unit(&lease.unit).runs_on(&lease.id)?.is_none() {
            return Err(Fault::refused(format!(
                "{}: systemd knows no main process of it, or its environment cannot be read; \
                 correct Type= or PIDFile= of the unit, or leave out what needs a restart",
                lease.unit
            )));
        }
        for change in lease.trial.iter_mut().chain(lease.stored.iter_mut()) {
            let present = change.present(&client)?;
            if !change.same(present.as_deref(), change.before.as_deref()) {
                return Err(Fault::refused(format!(
                    "{}: is not as it was when the change was planned; plan it again",
                    change.place
                )));
            }
            if change.kind == Kind::File && change.made.is_empty() {
                change.made = change.missing_folders();
            }
        }
        units::install(&lease.unit)?;
        arm(&lease, 0, lease.seconds)?;
        let entry = Entry::Open {
            boot: boot()?,
            at: now(),
            order: 1 + all.iter().map(|one| one.order).max().unwrap_or(0),
            lease: Box::new(lease.clone()),
        };
        if let Err(fault) = self.leases.create(&lease.id, &entry) {
            disarm(&lease.id, 0);
            return Err(fault);
        }
        logged(&lease, "begin");
        let end = started + Duration::from_secs(lease.seconds);
        if let Err(fault) = self.change(&lease, end) {
            let end = match self.revert(&lease.id, "it could not be put in force") {
                Ok(()) => "everything was restored".to_owned(),
                Err(worse) => worse.text,
            };
            return Err(Fault {
                code: fault.code,
                text: format!("{}\n{end}", fault.text),
            });
        }
        Ok(())
    }

    /// Makes all changes: what a restart needs is there before it, variables come after it.
    fn change(&self, lease: &Lease, end: Instant) -> Result<()> {
        let left = || end.saturating_duration_since(Instant::now());
        let (unit, client) = (Unit(&lease.unit), Client(&lease.client));
        let before = lease.restart.then(|| Health::of(&unit, &client));
        self.make(lease, |kind| kind != Kind::Variable)?;
        if lease.restart {
            system::systemctl(&["daemon-reload"])?;
            unit.restart(&client, left(), left())?;
        }
        self.make(lease, |kind| kind == Kind::Variable)?;
        if lease.restart && unit.runs_on(&lease.id)? != Some(true) {
            return Err(Fault::failed(format!(
                "{}: does not run with the drop-in of the lease; see systemctl cat {}",
                lease.unit, lease.unit
            )));
        }
        if let Some(before) = before {
            before.wait(&unit, &client, left())?;
        }
        self.leases.add(&lease.id, &Entry::Trial { at: now() })
    }

    fn make(&self, lease: &Lease, wanted: impl Fn(Kind) -> bool) -> Result<()> {
        let client = Client(&lease.client);
        for (n, change) in lease.trial.iter().enumerate() {
            if !wanted(change.kind) {
                continue;
            }
            self.leases.add(&lease.id, &Entry::Intent { n })?;
            change.write(&client, false)?;
            let value = change.present(&client)?;
            let is_there = change.same(value.as_deref(), change.wanted.as_deref());
            self.leases.add(
                &lease.id,
                &Entry::Landed {
                    n,
                    value: value.clone(),
                    along: change.moved_along(),
                },
            )?;
            // Servers round and rename what they are given; kernels take a value or do not.
            if !is_there && change.kind == Kind::Value {
                return Err(Fault::failed(format!(
                    "{}: was set to {} and is {}; choose a value that it takes",
                    change.place,
                    change.wanted.as_deref().unwrap_or_default(),
                    value.as_deref().unwrap_or_default()
                )));
            }
        }
        Ok(())
    }

    /// Writes what a trial has shown to be good to the host's own files.
    pub fn confirm(&self, id: &str, who: &str) -> Result<()> {
        let held = self.on_trial(id)?;
        if held.verdict == "revert" {
            return Err(Fault::refused(format!(
                "{id}: production shows that it is worse ({}); roll it back, or measure again",
                held.judged
            )));
        }
        let (lease, client) = (&held.lease, Client(&held.lease.client));
        for (change, landed) in lease.trial.iter().zip(&held.landed) {
            let present = change.present(&client)?;
            if !change.ours(present.as_deref(), landed.as_ref()) {
                return Err(changed(&change.place));
            }
        }
        for change in &lease.stored {
            let present = change.present(&client)?;
            if !change.same(present.as_deref(), change.before.as_deref()) {
                return Err(changed(&change.place));
            }
        }
        // A full disk shows here, where nothing is decided yet.
        let staged = lease.stored.iter().try_for_each(|change| {
            let text = change.wanted.as_deref();
            text.map_or(Ok(()), |text| change.stage(text))
        });
        let decided = staged.and_then(|()| {
            let who = who.to_owned();
            self.leases.add(id, &Entry::Confirmed { at: now(), who })
        });
        if let Err(fault) = decided {
            lease.stored.iter().for_each(Change::unstage);
            return Err(fault);
        }
        logged(lease, "confirm");
        self.finish(&held)
    }

    /// Stores what was confirmed, also after a crash in the middle of it.
    fn finish(&self, held: &Held) -> Result<()> {
        let lease = &held.lease;
        let client = Client(&lease.client);
        let mut left = Vec::new();
        for change in &lease.stored {
            let present = change.present(&client)?;
            if change.same(present.as_deref(), change.wanted.as_deref()) {
                change.unstage();
            } else if change.same(present.as_deref(), change.before.as_deref()) {
                change.write(&client, false)?;
            } else {
                change.unstage();
                left.push(change.place.clone());
            }
        }
        // The trial's own files have done their work: what is stored is read at the next start.
        for change in lease.trial.iter().filter(|one| one.kind == Kind::File) {
            if change.before.is_none() {
                change.write(&client, true)?;
            }
        }
        let touched = |part: &str| lease.stored.iter().any(|one| one.place.contains(part));
        if touched("/udev/") {
            system::reload_rules(held.boot != boot()?);
        }
        // At boot it may be too early for an answer; the files are read later then.
        if touched("/systemd/") || lease.restart {
            let _ = system::systemctl(&["daemon-reload"]);
        }
        let kept = Entry::Kept {
            at: now(),
            left: left.clone(),
        };
        self.leases.add(&lease.id, &kept)?;
        disarm(&lease.id, held.extended);
        logged(lease, "kept");
        left_over(&left)
    }

    /// Reverts at the end of a lease; one without a record was killed before it changed anything.
    pub fn expire(&self, id: &str, why: &str) -> Result<()> {
        if !self.leases.has(id) {
            return Ok(());
        }
        self.revert(id, why)
    }

    /// Restores what a lease has changed; what was confirmed before is stored instead.
    pub fn revert(&self, id: &str, why: &str) -> Result<()> {
        let held = self.leases.one(id)?;
        match held.state {
            State::Kept | State::Reverted => return Ok(()),
            State::Confirmed => return self.finish(&held),
            State::Open | State::Trial | State::Reverting => {}
        }
        let lease = &held.lease;
        // A full disk does not stop it: the last entry has how it ended.
        let _ = self.leases.add(
            id,
            &Entry::Reverting {
                at: now(),
                why: why.to_owned(),
            },
        );
        logged(lease, &format!("revert ({why})"));
        let left = undo(&held)?;
        self.leases.add(
            id,
            &Entry::Reverted {
                at: now(),
                left: left.clone(),
            },
        )?;
        disarm(id, held.extended);
        logged(lease, "reverted");
        left_over(&left)
    }

    /// Ends what an earlier boot has left: a trial went with it, what was confirmed is stored.
    pub fn close_those_of_earlier_boots(&self) -> Result<()> {
        let present = boot()?;
        for held in self.leases.all()? {
            if held.is_over() || held.boot == present {
                continue;
            }
            let id = &held.lease.id;
            if held.state == State::Confirmed {
                self.finish(&held)?;
                continue;
            }
            held.lease.stored.iter().for_each(Change::unstage);
            let why = "the host was started again".to_owned();
            let _ = self.leases.add(id, &Entry::Reverting { at: now(), why });
            let left = Vec::new();
            self.leases.add(id, &Entry::Reverted { at: now(), left })?;
            logged(&held.lease, "reverted (the host was started again)");
        }
        Ok(())
    }

    /// At a boot: ends what an earlier one has left, and arms the dead man where it was stopped.
    ///
    /// A soft reboot stops every timer and leaves the kernel, /run and this boot's id as they are.
    pub fn boot(&self) -> Result<()> {
        self.close_those_of_earlier_boots()?;
        for held in self.leases.all()? {
            if !held.is_over() && !is_armed(&held.lease.id, held.extended) {
                let left = held.until.saturating_sub(now()).max(SHORTEST_S);
                arm(&held.lease, held.extended, left.min(LONGEST_S))?;
            }
        }
        Ok(())
    }

    /// Moves the end of a trial.
    pub fn extend(&self, id: &str, seconds: u64) -> Result<()> {
        let held = self.on_trial(id)?;
        length(seconds)?;
        arm(&held.lease, held.extended + 1, seconds)?;
        let at = now() + seconds;
        if let Err(fault) = self.leases.add(id, &Entry::Until { at }) {
            disarm(id, held.extended + 1); // its name is free again
            return Err(fault);
        }
        disarm(id, held.extended);
        Ok(())
    }

    /// Notes what production shows.
    pub fn judge(&self, id: &str, verdict: &str, text: &str) -> Result<()> {
        self.on_trial(id)?;
        let (verdict, text) = (verdict.to_owned(), text.to_owned());
        self.leases.add(id, &Entry::Judged { verdict, text })
    }

    fn on_trial(&self, id: &str) -> Result<Held> {
        let held = self.leases.one(id)?;
        if held.state == State::Trial && held.boot == boot()? {
            return Ok(held);
        }
        Err(Fault::refused(format!(
            "{id}: is not on trial any more; see mydyno status"
        )))
    }

    /// Returns all leases.
    pub fn all(&self) -> Result<Vec<Held>> {
        self.leases.all()
    }

    /// Returns each place of a kept lease that is not as it was stored.
    pub fn drift(&self) -> Result<Vec<String>> {
        let stack = on_stack(self.leases.all()?);
        let mut last: BTreeMap<&str, &Change> = BTreeMap::new();
        for held in &stack {
            let trial = held.lease.trial.iter();
            let values = trial.filter(|one| one.kind == Kind::Value);
            for change in held.lease.stored.iter().chain(values) {
                last.insert(&change.place, change); // a later lease has the last word
            }
        }
        let mut found = Vec::new();
        for (place, change) in last {
            let present = change.present(&Client(&[])).unwrap_or_default();
            if !change.same(present.as_deref(), change.wanted.as_deref()) {
                found.push(place.to_owned());
            }
        }
        Ok(found)
    }

    /// Removes all of ours: leases, units and this program.
    pub fn forget(&self) -> Result<()> {
        let all = self.leases.all()?;
        if let Some(open) = all.iter().find(|one| !one.is_over()) {
            return Err(Fault::refused(format!(
                "{}: is open; roll it back first",
                open.lease.id
            )));
        }
        if let Some(kept) = on_stack(all).last() {
            return Err(Fault::refused(format!(
                "{}: is kept; roll it back first, or its files have no owner",
                kept.lease.id
            )));
        }
        // Those of acts that were killed: without this program they would fail forever.
        let _ = system::systemctl(&["stop", "mydyno-deadman-*.timer"]);
        units::remove()?;
        self.leases.remove()?;
        let own = std::env::current_exe().at("mydyno-guard")?;
        fs::remove_file(&own).at(own.display())?;
        let _ = own.parent().map(fs::remove_dir); // programs of others may be there
        settled(&own)
    }
}

/// Returns the kept leases that no other has undone.
fn on_stack(all: Vec<Held>) -> Vec<Held> {
    let mut kept = all;
    kept.retain(|one| one.state == State::Kept);
    let undone: Vec<String> = kept.iter().map(|one| one.lease.undoes.clone()).collect();
    kept.retain(|one| one.lease.undoes.is_empty() && !undone.contains(&one.lease.id));
    kept
}

fn check(lease: &Lease) -> Result<()> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if lease.id.is_empty() || lease.id.len() > 40 || !lease.id.chars().all(plain) {
        return Err(Fault::wrong(format!(
            "{:?}: not an id of a lease",
            lease.id
        )));
    }
    length(lease.seconds)?;
    let all = || lease.trial.iter().chain(&lease.stored);
    if let Some(problem) = all().find_map(Change::problem) {
        return Err(Fault::refused(problem));
    }
    if lease.stored.iter().any(|one| one.kind != Kind::File) {
        return Err(Fault::wrong("stored: only files can be stored"));
    }
    let etc = |one: &&Change| one.kind == Kind::File && one.place.starts_with("/etc");
    if let Some(one) = lease.trial.iter().find(etc) {
        return Err(Fault::refused(format!(
            "{}: nothing of a trial is below /etc",
            one.place
        )));
    }
    Ok(())
}

fn length(seconds: u64) -> Result<()> {
    if (SHORTEST_S..=LONGEST_S).contains(&seconds) {
        return Ok(());
    }
    Err(Fault::wrong(format!(
        "{seconds} s: a trial takes from {SHORTEST_S} s to 7 days"
    )))
}

fn changed(place: &str) -> Fault {
    Fault::refused(format!(
        "{place}: somebody has changed it during the trial; roll back, or restore it by hand"
    ))
}

fn left_over(left: &[String]) -> Result<()> {
    if left.is_empty() {
        return Ok(());
    }
    Err(Fault::failed(format!(
        "left as it is, since it is gone or somebody else has changed it: {}",
        left.join(", ")
    )))
}

/// Leaves who, when and why in the system's log.
fn logged(lease: &Lease, what: &str) {
    log(&format!(
        "{what}: lease {} by {}: {}",
        lease.id, lease.who, lease.why
    ));
}

/// Ends the guard that has the lock: it is this program, or nothing is done.
fn end_other(leases: &Leases) {
    let Some(pid) = leases.holder() else { return };
    let own = std::env::current_exe().ok();
    let its = fs::read_link(format!("/proc/{pid}/exe")).ok();
    if own.is_some() && own == its {
        // with the command that it waits for, which would act after this
        let path = format!("/proc/{pid}/task/{pid}/children");
        let children = fs::read_to_string(path).unwrap_or_default();
        let all = children
            .split_whitespace()
            .filter_map(|word| word.parse().ok());
        for one in std::iter::once(pid).chain(all) {
            if let Some(one) = i32::try_from(one)
                .ok()
                .and_then(rustix::process::Pid::from_raw)
            {
                let _ = rustix::process::kill_process(one, rustix::process::Signal::KILL);
            }
        }
    }
}

#[cfg(test)]
#[path = "act_tests.rs"]
mod tests;
