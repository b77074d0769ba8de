"""A bench with a private server, or plain files, on a lab disk or in a directory."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mydyno.campaign.leftovers import remove, restored
from mydyno.campaign.lock import host_lock
from mydyno.campaign.notice import post, withdraw
from mydyno.campaign.stores import StoreKey, names, rebuilt, reformats
from mydyno.campaign.testbed.bench_setup import BenchSetup
from mydyno.campaign.testbed.calibrated_link import CalibratedLink
from mydyno.campaign.testbed.fill import target_of
from mydyno.campaign.testbed.preparing import prepare
from mydyno.campaign.testbed.server_layers import fs_layer, verify_mount
from mydyno.campaign.testbed.server_runner import ServerRunner
from mydyno.campaign.tls_check import tls_mismatch
from mydyno.dataset import Store
from mydyno.host import Host, Rebootable, ask, interruptible, shielded
from mydyno.journal import Prepared, outcomes
from mydyno.journal.records import first_values
from mydyno.journal.register import marked
from mydyno.lab import InUseError, sweep_links
from mydyno.lab import sweep as sweep_labs
from mydyno.measure import (
    Sampling,
    Watch,
    Where,
    disk_of,
    footprint,
    interface_to,
    link_speed,
    sampling,
)
from mydyno.model import (
    Action,
    Change,
    DriftError,
    HostError,
    Reset,
    Settings,
    SpecError,
    Trial,
)
from mydyno.server import sweep as sweep_servers
from mydyno.stack import Site, converge
from mydyno.stack.kernel import RELEASE, Kernel, same_release
from mydyno.stack.link import UNLIMITED, bytes_per_s
from mydyno.workloads import ReportsSession, Target, Workload

_RELEASE = f"db/kernel.{RELEASE}"


@dataclass(slots=True)
class PrivateBench:
    """Everything is made below `parts.work`, and gone when the campaign has ended.

    `runners` holds each server by its program; one of them is up at a time.
    """

    parts: BenchSetup
    runners: Mapping[str, ServerRunner]
    crossing: CalibratedLink | None = None
    timed: bool = True
    _stores: dict[StoreKey, Store] = field(default_factory=dict)
    _live: Store | None = None
    _runner: ServerRunner | None = None
    _reset: Reset = Reset.DATASET
    _hold: Callable[[], None] = field(default=lambda: None)

    @property
    def host(self) -> Host:
        """Return the host that the server runs on."""
        return self.parts.host

    def load_host(self, workload: Workload) -> Host:
        """Return the host as the present trial's load sees it."""
        crossing = self.crossing if workload.needs_server else None
        there = self._runner.instance.endpoint.tcp_host if self._runner else ""
        if crossing and there == crossing.link.state.address:
            return crossing.link.inside
        return self.parts.hosts.of(workload)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Fill the data sets, learn what stock is; at the end restore the host and remove ours.

        A signal ends the trials, and nothing that restores or removes.
        """
        p = self.parts
        with shielded(), host_lock(p.hosts.db, p.hosts.load) as self._hold:
            self._sweep()
            if self._finished():  # only what a kill after the last trial left is to be done
                self._remove()
                yield
                return
            self._say_so()
            try:
                with interruptible():
                    self._prepare()
                    yield
            except BaseException as error:
                # of a wrong spec nothing was measured: there is nothing to resume
                for late in self._taken_down(keep=self._begun(error)):
                    p.say(f"warning: while taking all down: {late}")
                raise
            if self._stores:
                p.say("taking down what was made; a busy disk may need minutes")
            if errors := self._taken_down(keep=not self._finished()):
                for other in errors[1:]:
                    p.say(f"warning: while taking all down: {other}")
                raise errors[0]

    def _say_so(self) -> None:
        """Leave a note on a host whose settings will be changed; it goes when they are restored."""
        p = self.parts
        if p.outside.layers:
            post(p.host, marked(p.files.path), p.campaign.name, p.files.path)

    def _prepare(self) -> None:
        if self.crossing:
            self.crossing.link.up()
        prepare(self.parts, self.runners, self._stores)
        if self.crossing:
            self.crossing.prepare(self.parts, self)

    def recover(self) -> None:
        """End and remove what is left of a trial, restore the host, make the data sets ready."""
        self._hold()
        self._live = None
        with shielded():
            for runner in self.runners.values():
                runner.stop(grace_s=0.0)
            self._sweep()
            self._say_so()
        for store in self._stores.values():
            store.close(keep=True)
            store.open()

    def _remove(self) -> None:
        """Remove the work folder, and where the host is far what was kept of it on this machine."""
        found = remove(self.host, self.parts.log.records)
        if found.failed:
            raise HostError("; ".join(found.failed))

    def _begun(self, error: BaseException) -> bool:
        """Return whether there is anything to resume after an error."""
        filled = any(isinstance(e, Prepared) for e in self.parts.journal.events())
        return filled and not isinstance(error, SpecError)

    def _finished(self) -> bool:
        return self.parts.campaign.next(outcomes(self.parts.journal.events())) is None

    def ready(self, trial: Trial, settings: Settings, workload: Workload, folder: Path) -> Target:
        """Restore the data, apply the treatment, start the server, and see that all took effect."""
        p = self.parts
        if self.crossing:
            settings = self.crossing.settings(p, settings, workload)
        self._booted(settings, trial)
        key, stock = (p.key(chosen, workload) for chosen in (settings, p.stock))
        store = self._stores[key]
        runner = self.runners[key.server] if key.server else None
        hot = self._hot(store, settings, trial)
        changes: list[Change] = list(hot or [])
        if hot is None:
            changes += rebuilt(key, stock)
            changes += reformats(settings, key, stock) if store.disk else []
            changes += self._restored(store, settings, trial)
        converge(p.site(store), _host_part(settings, store), p.ledger, trial.id)
        if not store.disk:  # a lab's mount was seen when it was made
            verify_mount(p.host, fs_layer(store), settings.get("db/fs.mount", ""))
        changes += self._host_changes(_host_part(settings, store))
        target = Target(work=p.made("load"), directory=store.live)
        self._runner = runner or self._runner
        if runner is not None:
            changes += runner.launch(settings, trial) if hot is None else []
            target = target_of(runner.instance, target.work, store.live)
        _keep_changes(folder, changes)
        store.before_load()
        return target

    def sampler(self, folder: Path) -> AbstractContextManager[Sampling]:
        """Sample host, data disk and, where there is one, the server while the load runs."""
        live = self._live
        disk = (live.disk or disk_of(self.host, live.live)) if live else ""
        if self._runner is None or not (pid := self._runner.instance.pid):
            return sampling(self.host, folder, Watch(Where(disk)))
        where = Where(disk, *self._interface(self._runner.instance.endpoint.tcp_host))
        admin = self._runner.instance.place.admin
        return sampling(self.host, folder, Watch(where, {"mysqld": pid}, admin))

    def verify_session(self, settings: Settings, workload: Workload, folder: Path) -> None:
        """Raise `DriftError` where the load's own session has not the TLS that was asked for."""
        asked = settings.get("db/net.tls")
        if asked is None or not isinstance(workload, ReportsSession):
            return
        with (folder / "load.out").open("rb") as lines:
            if wrong := tls_mismatch(asked, workload.session(lines)):
                raise DriftError(wrong)

    def _interface(self, address: str) -> tuple[str, float | None]:
        """Return the interface that the load's traffic goes through, and how fast its link is."""
        if not address:  # over the socket nothing goes through an interface
            return "", None
        if self.crossing and address == self.crossing.link.state.address:
            device = self.crossing.link.state.device
            rate = ask(self.host, self.crossing.layer.observe())["rate"]
            return device, None if rate == UNLIMITED else bytes_per_s(rate)
        elsewhere = bool(self.parts.hosts.address)
        name = interface_to(self.host, address, elsewhere=elsewhere)
        return name, link_speed(self.host, name)

    def collect(self, folder: Path) -> str:
        """Keep the server's files and the data's size; return its words if it died by itself."""
        died = self._runner.collect(folder, self._reset) if self._runner else ""
        if self._live and not died:
            footprint.keep(self.host, self._live.live, folder)
        return died

    def _booted(self, settings: Settings, trial: Trial) -> None:
        """Boot a machine of ours with the treatment's kernel, before anything is mounted there."""
        host, kernel = self.host, Kernel((RELEASE,))
        known = self.parts.campaign.treatments.values()
        if not isinstance(host, Rebootable) or RELEASE not in names(known, "db/kernel."):
            return
        now = ask(host, kernel.observe())[RELEASE]
        first = first_values(self.parts.log.records.entries()).get(_RELEASE, now)
        aim = settings.get(_RELEASE, first)
        if same_release(now, aim):
            return
        if self._runner is not None:
            self._runner.stop(grace_s=0.0)
        self._live = None
        site = Site("db", host, (kernel,))
        converge(site, {_RELEASE: aim}, self.parts.ledger, trial.id)
        self._hold()

    def _hot(self, store: Store, settings: Settings, trial: Trial) -> list[Change] | None:
        """Move a server that may go on running to the treatment; None where it must restart."""
        self._reset = trial.reset
        if trial.reset is not Reset.NONE or self._live is not store or self._runner is None:
            return None
        return self._runner.moved(settings, trial)

    def _restored(self, store: Store, settings: Settings, trial: Trial) -> list[Change]:
        """Stop the server and restore the data set, mounted with the treatment's options."""
        p = self.parts
        kept = trial.reset is not Reset.DATASET and self._live is store
        if self._runner is not None and self._runner.up:
            self._runner.stop()
        if kept:
            return []
        options = settings.get("db/fs.mount", "") if store.disk else ""
        store.restore(options)
        self._live = store
        layer = fs_layer(store)
        verify_mount(p.host, layer, options)
        want = {"mount": options} if options else {}
        changes = layer.plan({"mount": "defaults"}, want)
        p.ledger.planned(changes, layer, "db/fs.", trial.id)
        return [replace(change, key=f"db/fs.{change.key}") for change in changes]

    def _host_changes(self, settings: Settings) -> list[Change]:
        """Return what the treatment changes of host and disk, from the first values seen.

        The trial before may have left them as they are wanted; that is not what is told.
        """
        first = first_values(self.parts.log.records.entries())
        return [
            Change(key, first[key], value, Action(()))
            for key, value in settings.items()
            if key in first and first[key] != value
            if key != _RELEASE or not same_release(first[key], value)
        ]

    def _sweep(self) -> None:
        """End what a killed run left behind, and restore what it had changed on the host."""
        p = self.parts
        collect, failed = sweep_servers(p.host, p.log.records)
        for line in (*(f"ended: {one}" for one in collect), *(f"warning: {one}" for one in failed)):
            p.say(line)
        try:
            lines = sweep_labs(p.host)
        except InUseError as error:  # a dead disk in somebody's hands does not disturb ours
            lines = (f"warning: left over: {error}",)
        for line in (*lines, *sweep_links(p.host)):
            p.say(line)
        self._restore()

    def _restore(self) -> None:
        """Restore the host's settings; raise `HostError` where one is still changed."""
        p = self.parts
        found = restored(p.host, p.log.records, p.journal)
        for line in found.lines:
            p.say(line)
        if found.failed:
            raise HostError(
                f"{p.host.name}: {len(found.failed)} settings are still changed; mend what is "
                f"named above, then `mydyno rollback {p.files.path}`"
            )
        withdraw(p.host, marked(p.files.path))

    def _taken_down(self, *, keep: bool) -> list[Exception]:
        """Take all down, each step whatever became of the one before it; return what failed."""
        steps: list[Callable[[], object]] = []
        for runner in self.runners.values():
            steps.append(partial(runner.stop, grace_s=0.0))
            steps += [] if keep else [runner.instance.close]
        steps.append(self._restore)
        steps += [self.crossing.link.down] if self.crossing else []
        steps += [partial(store.close, keep=keep) for store in self._stores.values()]
        if not keep:
            steps.append(self._remove)
        errors: list[Exception] = []
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the others must still be taken down
                errors.append(error)
        return errors


def _host_part(settings: Settings, store: Store) -> Settings:
    """Return the settings that are applied to the host or a disk; a lab's mount is not one."""
    parts = ("db/block.", "db/kernel.", "db/link.", *(() if store.disk else ("db/fs.",)))
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
