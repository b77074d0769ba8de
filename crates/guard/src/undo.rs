//! What a revert does: each change that is still ours is taken back, the last first.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::act::LONGEST_S;
use crate::fault::Result;
use crate::lease::{Change, Held, Kind, Landed, State};
use crate::system::{self, Client, Unit, ACTIVE};

/// The states of a unit that has no process.
const DOWN: [&str; 2] = ["inactive", "failed"];
/// After a revert the server is waited for as long as this.
const ANSWERS: Duration = Duration::from_secs(60);

/// Restores each change that is still ours, the last first; returns those that are not.
///
/// One that fails does not stop the others; it is tried again when the dead man comes back.
pub fn undo(held: &Held) -> Result<Vec<String>> {
    let lease = &held.lease;
    let (client, unit) = (Client(&lease.client), Unit(&lease.unit));
    lease.stored.iter().for_each(Change::unstage);
    let is_again = held.state == State::Reverting;
    let (mut left, mut failed) = (Vec::new(), None);
    let (mut is_down, mut restarts) = (false, false);
    if !lease.unit.is_empty() {
        let known = unit.state().and_then(|state| {
            is_down = DOWN.contains(&state.as_str());
            // An operator who stopped it may be copying its files: it stays down.
            let stays = is_down && held.was_on_trial && unit.was_stopped()?;
            // about to be started again, it has no process yet, and would read the trial's file
            restarts = lease.restart && !stays && (state != ACTIVE || on_trial(held, &state)?.1);
            Ok(())
        });
        failed = known.err(); // what needs no answer is restored now, the rest when this comes again
    }
    for (change, landed) in lease.trial.iter().zip(&held.landed).rev() {
        let ends_with_the_server = change.kind == Kind::Variable && (restarts || is_down);
        if landed.is_none() || ends_with_the_server {
            continue;
        }
        match take_back(change, landed.as_ref(), &client, is_again) {
            Ok(places) => {
                for place in places {
                    if !left.contains(&place) {
                        left.push(place);
                    }
                }
            }
            Err(fault) => failed = Some(fault),
        }
    }
    if lease.trial.iter().any(|one| one.kind == Kind::File) {
        system::systemctl(&["daemon-reload"])?;
    }
    if lease.restart && !lease.unit.is_empty() {
        restart(held, restarts, failed.is_none())?;
    }
    failed.map_or(Ok(left), Err)
}

/// Restarts the server where that is wanted or it runs on trial; `all`: nothing else has failed.
fn restart(held: &Held, wanted: bool, all: bool) -> Result<()> {
    let (client, unit) = (Client(&held.lease.client), Unit(&held.lease.unit));
    let state = unit.state()?;
    // One that was started since it was looked at has read the trial's file, too.
    let (is_known, runs) = on_trial(held, &state)?;
    // Where nothing would show that it is done, it is not done each time that this comes again.
    if (wanted || runs) && (is_known || state != ACTIVE || all) {
        // It runs as it was: whether this account may log in is not what a revert waits for.
        unit.restart(&client, Duration::from_secs(LONGEST_S), ANSWERS)
            .or_else(|fault| unit.is_active().then_some(()).ok_or(fault))?;
    }
    Ok(())
}

/// Returns whether it is known if the server, whose unit is in this state, has read the trial's
/// file, and if it has; where that is unknown, if the file was there.
fn on_trial(held: &Held, state: &str) -> Result<(bool, bool)> {
    let mut trial = held.lease.trial.iter().zip(&held.landed);
    let was_there = trial.any(|(change, landed)| change.kind == Kind::File && landed.is_some());
    let known = Unit(&held.lease.unit).runs_on(&held.lease.id)?;
    let runs = known.unwrap_or(was_there && !DOWN.contains(&state));
    Ok((known.is_some(), runs))
}

/// Restores a change; returns the places whose value is not of this lease.
///
/// One that `is_again` tried may have been cut off before what moves along with it.
fn take_back(
    change: &Change,
    landed: Option<&Landed>,
    client: &Client<'_>,
    is_again: bool,
) -> Result<Vec<String>> {
    if let (Kind::Variable, Some(wanted)) = (change.kind, &change.wanted) {
        client.end_assignment(&change.place, wanted)?;
        client.settle(&change.place)?;
    }
    let present = change.present(client)?;
    let is_back = change.same(present.as_deref(), change.before.as_deref());
    if !is_back && !change.ours(present.as_deref(), landed) {
        return Ok(vec![change.place.clone()]);
    }
    let mut kept = BTreeMap::new();
    if !is_back {
        kept = change.set_since(landed);
        change.write_back(client, &kept)?;
    } else if is_again {
        change.move_along(&kept)?;
    }
    change.unstage();
    Ok(kept.into_keys().collect())
}

#[cfg(test)]
#[path = "undo_tests.rs"]
mod tests;
