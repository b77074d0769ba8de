"""A bench with a private server, or plain files, on a lab disk or in a directory."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mydyno.apply import apply, recorded, rollback
from mydyno.campaign.fill import target_of
from mydyno.campaign.launching import Launcher
from mydyno.campaign.leftovers import remove
from mydyno.campaign.lock import host_lock
from mydyno.campaign.parts import Parts
from mydyno.campaign.preparing import prepare
from mydyno.campaign.rig import mounted
from mydyno.campaign.stores import StoreKey, key_of
from mydyno.dataset import Store
from mydyno.host import Host, ask
from mydyno.journal import first_values, outcomes
from mydyno.lab import sweep as sweep_labs
from mydyno.measure import Watch, Where, disk_of, sampling
from mydyno.model import Action, Change, DriftError, Reset, Settings, SpecError, Trial
from mydyno.server import sweep as sweep_server
from mydyno.stack.fs import missing
from mydyno.workloads import Target, Workload


@dataclass(slots=True)
class PrivateBench:
    """Everything is made below `parts.work`, and gone when the campaign has ended."""

    parts: Parts
    launcher: Launcher | None
    timed: bool = True
    _stores: dict[StoreKey, Store] = field(default_factory=dict)
    _live: Store | None = None
    _reset: Reset = Reset.DATASET

    @property
    def host(self) -> Host:
        """Return the host that server and load run on."""
        return self.parts.host

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Fill the data sets, learn what stock is; at the end put the host back, remove ours."""
        p = self.parts
        with host_lock():
            self._sweep()
            if self._finished():  # only what a kill after the last trial left is to be done
                remove(p.host, p.work)
                yield
                return
            finished = False
            try:
                prepare(p, self.launcher, self._stores)
                yield
                finished = self._finished()
            except SpecError:
                finished = True  # nothing was measured: there is nothing to resume
                raise
            finally:
                self._close(keep=not finished)

    def _finished(self) -> bool:
        return self.parts.campaign.next(outcomes(self.parts.journal.events())) is None

    def ready(self, trial: Trial, settings: Settings, workload: Workload, folder: Path) -> Target:
        """Restore the data, apply the treatment, start the server, and see that all took effect."""
        p = self.parts
        store = self._stores[key_of(settings, workload)]
        launcher = self.launcher if workload.needs_server else None
        hot = self._hot(store, settings, trial)
        changes: list[Change] = list(hot or [])
        if hot is None:
            changes += self._restored(store, settings, trial)
        apply(p.site(store), _host_part(settings, store), p.journal, trial.id)
        changes += self._host_changes(_host_part(settings, store))
        target = Target(work=p.made("load"), directory=store.live)
        if launcher is not None:
            changes += launcher.launch(settings, trial) if hot is None else []
            target = target_of(launcher.instance, target.work, store.live)
        _keep_changes(folder, changes)
        store.loading()
        return target

    def watched(self, folder: Path) -> AbstractContextManager[None]:
        """Sample host, data disk and, where there is one, the server while the load runs."""
        live = self._live
        disk = (live.disk or disk_of(self.host, live.live)) if live else ""
        if self.launcher is None or not (pid := self.launcher.instance.pid):
            return sampling(self.host, folder, Watch(Where(disk)))
        # over the socket nothing goes through an interface
        where = Where(disk, "lo" if self.launcher.instance.endpoint.tcp_host else "")
        admin = self.launcher.instance.place.admin
        return sampling(self.host, folder, Watch(where, {"mysqld": pid}, admin))

    def ended(self, folder: Path) -> str:
        """Keep the server's files; return its last words if it had died by itself."""
        return self.launcher.ended(folder, self._reset) if self.launcher else ""

    def _hot(self, store: Store, settings: Settings, trial: Trial) -> list[Change] | None:
        """Move a server that may go on running to the treatment; None where it must restart."""
        self._reset = trial.reset
        if trial.reset is not Reset.NONE or self._live is not store or self.launcher is None:
            return None
        return self.launcher.moved(settings, trial)

    def _restored(self, store: Store, settings: Settings, trial: Trial) -> list[Change]:
        """Stop the server and put the data set back, mounted with the treatment's options."""
        p = self.parts
        kept = trial.reset is not Reset.DATASET and self._live is store
        if self.launcher is not None and self.launcher.up:
            self.launcher.stop()
        if kept:
            return []
        options = settings.get("db/fs.mount", "") if store.disk else ""
        store.restore(options)
        self._live = store
        layer = mounted(store)
        if left := missing(ask(p.host, layer.observe())["mount"], options):
            raise DriftError(f"{layer.where}: mounted without {', '.join(left)}")
        want = {"mount": options} if options else {}
        changes = layer.plan({"mount": "defaults"}, want)
        return recorded(changes, layer, (p.journal, "db/fs.", trial.id))

    def _host_changes(self, settings: Settings) -> list[Change]:
        """Return what the treatment changes of host and disk, from the first values seen.

        The trial before may have left them as they are wanted; that is not what is told.
        """
        first = first_values(self.parts.journal.events(), owned=True)
        return [
            Change(key, first[key], value, Action(()))
            for key, value in settings.items()
            if key in first and first[key] != value
        ]

    def _sweep(self) -> None:
        """End what a killed run left behind, and put back what it had moved on the host."""
        p = self.parts
        if self.launcher is not None:
            sweep_server(p.host, self.launcher.instance.place.home)
        for line in sweep_labs(p.host):
            p.say(line)
        if moved := rollback(p.outside, p.journal):
            p.say(f"put back: {', '.join(moved)}")

    def _close(self, *, keep: bool) -> None:
        """Take all down; each step is tried whatever became of the one before it."""
        p = self.parts
        steps: list[Callable[[], object]] = []
        if self.launcher is not None:
            steps.append(partial(self.launcher.stop, grace_s=0.0))
            steps += [] if keep else [self.launcher.instance.close]
        steps.append(partial(rollback, p.outside, p.journal))
        steps += [partial(store.close, keep=keep) for store in self._stores.values()]
        if not keep:
            steps.append(partial(remove, p.host, p.work))
        errors: list[Exception] = []
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the others must still be taken down
                errors.append(error)
        if errors:
            raise errors[0]


def _host_part(settings: Settings, store: Store) -> Settings:
    """Return the settings that are applied to the host or a disk; a lab's mount is not one."""
    parts = ("db/block.", "db/kernel.") if store.disk else ("db/block.", "db/fs.", "db/kernel.")
    return {k: v for k, v in settings.items() if k.startswith(parts)}


def _keep_changes(folder: Path, changes: Sequence[Change]) -> None:
    told = [_told(change) for change in changes]
    (folder / "changes.json").write_text(json.dumps(told, indent=1), encoding="utf-8")


def _told(change: Change) -> Mapping[str, str]:
    return {
        "key": change.key,
        "before": change.before,
        "after": change.after,
        "cost": change.cost.name.lower(),
        "durability": change.durability.value,
    }
