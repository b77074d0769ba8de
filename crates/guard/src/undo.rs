//! What a revert does: each change that is still ours is taken back, the last first.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::act::LONGEST_S;
use crate::fault::Result;
use crate::lease::{Change, Held, Kind, Landed, State};
use crate::system::{self, Client, Unit, ACTIVE};

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
            is_down = matches!(state.as_str(), "inactive" | "failed");
            // An operator who stopped it may be copying its files: it stays down.
            let stays = is_down && held.was_on_trial && unit.was_stopped()?;
            // about to be started again, it has no process yet, and would read the trial's file
            restarts = lease.restart && !stays && (state != ACTIVE || unit.runs_on(&lease.id)?);
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
    // One that was started since it was looked at has read the trial's file, too.
    if restarts || (lease.restart && !lease.unit.is_empty() && unit.runs_on(&lease.id)?) {
        // It runs as it was: whether this account may log in is not what a revert waits for.
        unit.restart(&client, Duration::from_secs(LONGEST_S), ANSWERS)
            .or_else(|fault| unit.is_active().then_some(()).ok_or(fault))?;
    }
    failed.map_or(Ok(left), Err)
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
