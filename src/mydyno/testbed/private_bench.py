"""A bench with a private server, or with files only, on a lab disk or in a directory."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mydyno.host import Host, Rebootable, ask, interruptible, shielded
from mydyno.journal import Prepared, outcomes
from mydyno.journal.records import first_values
from mydyno.journal.register import marked
from mydyno.lab import InUseError, sweep_links
from mydyno.lab import sweep as sweep_labs
from mydyno.loads import ReportsSession, Target, Workload
from mydyno.model import (
    Action,
    Change,
    Cost,
    DriftError,
    HostError,
    Reset,
    Settings,
    SpecError,
    Trial,
)
from mydyno.sample import (
    Sampling,
    Watch,
    Where,
    disk_of,
    footprint,
    interface_to,
    link_speed,
    sampling,
)
from mydyno.server import sweep as sweep_servers
from mydyno.snapshot import Store
from mydyno.stack import Site, converge
from mydyno.stack.kernel import RELEASE, Kernel, same_release
from mydyno.stack.layers import Scope, cost_of, judged, of_scope
from mydyno.stack.link import UNLIMITED, bytes_per_s
from mydyno.stack.protocol import StackSettings, full_key, keys_of
from mydyno.testbed.bench_setup import BenchSetup, fs_layer, verify_mount
from mydyno.testbed.calibrated_link import CalibratedLink
from mydyno.testbed.lock import host_lock, post, remove_leftovers, restored, withdraw
from mydyno.testbed.preflight import tls_mismatch
from mydyno.testbed.preparing import prepare
from mydyno.testbed.server_runner import ServerRunner, target_of
from mydyno.testbed.stores import StoreKey, rebuilt, reformats

_RELEASE = full_key("kernel", RELEASE)


@dataclass(slots=True)
class PrivateBench:
    """All files are below `setup.work`, and removed when the campaign has ended.

    `runners` holds each server by its program; one of them is up at a time.
    """

    setup: BenchSetup
    runners: Mapping[str, ServerRunner]
    lab_link: CalibratedLink | None = None
    timed: bool = True
    _stores: dict[StoreKey, Store] = field(default_factory=dict)
    _live: Store | None = None
    _runner: ServerRunner | None = None
    _reset: Reset = Reset.DATASET
    _hold: Callable[[], None] = field(default=lambda: None)

    @property
    def host(self) -> Host:
        """Return the host that the server runs on."""
        return self.setup.host

    def load_host(self, workload: Workload) -> Host:
        """Return the host of the current trial's load, inside its network namespace if any."""
        lab_link = self.lab_link if workload.needs_server else None
        there = self._runner.instance.endpoint.tcp_host if self._runner else ""
        if lab_link and there == lab_link.link.state.address:
            return lab_link.link.inside
        return self.setup.hosts.of(workload)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Fill the data sets and read the defaults; at the end restore the host and clean up.

        A signal interrupts trials, but not restoring and cleaning up.
        """
        p = self.setup
        with shielded(), host_lock(p.hosts.db, p.hosts.load) as self._hold:
            self._sweep()
            if self._finished():  # only the cleanup after a kill is left to do
                self._remove()
                yield
                return
            self._post_notice()
            try:
                with interruptible():
                    self._prepare()
                    yield
            except BaseException as error:
                # after a spec error there is nothing to resume
                for late in self._clean_up(keep=self._begun(error)):
                    p.say(f"warning: cleaning up failed: {late}")
                raise
            if self._stores:
                p.say(f"cleaning up {len(self._stores)} data sets; a busy disk may need minutes")
            if errors := self._clean_up(keep=not self._finished()):
                for other in errors[1:]:
                    p.say(f"warning: cleaning up failed: {other}")
                raise errors[0]

    def _post_notice(self) -> None:
        """Write a notice on a host whose settings will be changed; restoring removes it."""
        p = self.setup
        if p.outside.layers:
            post(p.host, marked(p.files.path), p.campaign.name, p.files.path)

    def _prepare(self) -> None:
        if self.lab_link:
            self.lab_link.link.up()
        prepare(self.setup, self.runners, self._stores)
        if self.lab_link:
            self.lab_link.prepare(self.setup, self)

    def recover(self) -> None:
        """Clean up after an unfinished trial, restore the host, open the data sets again."""
        self._hold()
        self._live = None
        with shielded():
            for runner in self.runners.values():
                runner.stop(grace_s=0.0)
            self._sweep()
            self._post_notice()
        for store in self._stores.values():
            store.close(keep=True)
            store.open()

    def _remove(self) -> None:
        """Remove the work folder, and the local one of a remote host."""
        found = remove_leftovers(self.host, self.setup.log.records)
        if found.failed:
            raise HostError("; ".join(found.failed))

    def _begun(self, error: BaseException) -> bool:
        """Return whether there is anything to resume after an error."""
        filled = any(isinstance(e, Prepared) for e in self.setup.journal.events())
        return filled and not isinstance(error, SpecError)

    def _finished(self) -> bool:
        return self.setup.campaign.next(outcomes(self.setup.journal.events())) is None

    def ready(
        self, trial: Trial, settings: StackSettings, workload: Workload, folder: Path
    ) -> Target:
        """Restore the data, apply the treatment, start the server, verify all settings."""
        p = self.setup
        if self.lab_link:
            settings = self.lab_link.settings(p, settings, workload)
        self._boot_kernel(settings, trial)
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
        if not store.disk:  # a lab's mount was verified when it was made
            verify_mount(p.host, fs_layer(store), settings.of("fs").get("mount", ""))
        changes += self._host_changes(_host_part(settings, store))
        target = Target(work=p.made("load"), directory=store.live)
        self._runner = runner or self._runner
        if runner is not None:
            changes += runner.launch(settings, trial) if hot is None else []
            target = target_of(runner.instance, target.work, store.live)
        layers = runner.layers if runner else None
        _save_changes(folder, judged(changes, settings, layers.defaults if layers else {}))
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

    def verify_session(self, settings: StackSettings, workload: Workload, folder: Path) -> None:
        """Raise `DriftError` where the load's session does not have the wanted TLS."""
        wanted = settings.of("net").get("tls")
        if wanted is None or not isinstance(workload, ReportsSession):
            return
        with (folder / "load.out").open("rb") as lines:
            if wrong := tls_mismatch(wanted, workload.session(lines)):
                raise DriftError(wrong)

    def _interface(self, address: str) -> tuple[str, float | None]:
        """Return the interface that the load's traffic uses, and its speed in bytes/s."""
        if not address:  # a socket uses no interface
            return "", None
        if self.lab_link and address == self.lab_link.link.state.address:
            device = self.lab_link.link.state.device
            rate = ask(self.host, self.lab_link.layer.observe())["rate"]
            return device, None if rate == UNLIMITED else bytes_per_s(rate)
        elsewhere = bool(self.setup.hosts.address)
        name = interface_to(self.host, address, elsewhere=elsewhere)
        return name, link_speed(self.host, name)

    def collect(self, folder: Path) -> str:
        """Save the server's files and the data's size; return why the server died, or ``""``."""
        died = self._runner.collect(folder, self._reset) if self._runner else ""
        if self._live and not died:
            footprint.save(self.host, self._live.live, folder)
        return died

    def _boot_kernel(self, settings: StackSettings, trial: Trial) -> None:
        """Boot a VM lab with the treatment's kernel, before anything is mounted there."""
        host, kernel = self.host, Kernel((RELEASE,))
        known = self.setup.campaign.treatments.values()
        if not isinstance(host, Rebootable) or RELEASE not in keys_of(known, "kernel"):
            return
        now = ask(host, kernel.observe())[RELEASE]
        first = first_values(self.setup.log.records.entries()).get(_RELEASE, now)
        aim = settings.of("kernel").get(RELEASE, first)
        if same_release(now, aim):
            return
        if self._runner is not None:
            self._runner.stop(grace_s=0.0)
        self._live = None
        site = Site("db", host, (kernel,))
        converge(site, {_RELEASE: aim}, self.setup.ledger, trial.id)
        self._hold()

    def _hot(self, store: Store, settings: StackSettings, trial: Trial) -> list[Change] | None:
        """Apply the treatment to the running server; return None where it must restart."""
        self._reset = trial.reset
        if trial.reset is not Reset.NONE or self._live is not store or self._runner is None:
            return None
        return self._runner.reconfigure(settings, trial)

    def _restored(self, store: Store, settings: StackSettings, trial: Trial) -> list[Change]:
        """Stop the server and restore the data set, mounted with the treatment's options."""
        p = self.setup
        stays = trial.reset is not Reset.DATASET and self._live is store
        if self._runner is not None and self._runner.up:
            self._runner.stop()
        if stays:
            return []
        options = settings.of("fs").get("mount", "") if store.disk else ""
        layer = fs_layer(store)
        changes = layer.plan({"mount": "defaults"}, {"mount": options} if options else {})
        made = p.ledger.planned(changes, layer, "db", trial.id)
        store.restore(options)  # mounts it: a remount could not set every option
        self._live = store
        verify_mount(p.host, fs_layer(store), options)
        return made

    def _host_changes(self, settings: Settings) -> list[Change]:
        """Return the treatment's changes of host and disk, relative to their first values.

        The trial before may have set some of them already; they are included.
        """
        first = first_values(self.setup.log.records.entries())
        return [
            Change(key, first[key], value, Action(()))
            for key, value in settings.items()
            if key in first and first[key] != value
            if key != _RELEASE or not same_release(first[key], value)
        ]

    def _sweep(self) -> None:
        """Clean up after a killed run, and restore the settings it had changed on the host."""
        p = self.setup
        collect, failed = sweep_servers(p.host, p.log.records)
        for line in (*(f"ended: {one}" for one in collect), *(f"warning: {one}" for one in failed)):
            p.say(line)
        try:
            lines = sweep_labs(p.host)
        except InUseError as error:  # a leftover disk that is in use does not disturb this campaign
            lines = (f"warning: leftover: {error}",)
        for line in (*lines, *sweep_links(p.host)):
            p.say(line)
        self._restore()

    def _restore(self) -> None:
        """Restore the host's settings; raise `HostError` where one is not restored."""
        p = self.setup
        found = restored(p.host, p.log.records, p.journal)
        for line in found.lines:
            p.say(line)
        if found.failed:
            raise HostError(
                f"{p.host.name}: {len(found.failed)} settings are not restored; correct what is "
                f"named above, then run `mydyno rollback {p.files.path}`"
            )
        withdraw(p.host, marked(p.files.path))

    def _clean_up(self, *, keep: bool) -> list[Exception]:
        """Clean up, each step even if the one before it failed; return the errors."""
        steps: list[Callable[[], object]] = []
        for runner in self.runners.values():
            steps.append(partial(runner.stop, grace_s=0.0))
            steps += [] if keep else [runner.instance.close]
        steps.append(self._restore)
        steps += [self.lab_link.link.down] if self.lab_link else []
        steps += [partial(store.close, keep=keep) for store in self._stores.values()]
        if not keep:
            steps.append(self._remove)
        errors: list[Exception] = []
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the other steps must still run
                errors.append(error)
        return errors


def _host_part(settings: StackSettings, store: Store) -> Settings:
    """Return the settings that are applied to the host or a disk, not made with the data set."""
    outside = {k: v for k, v in settings.items() if of_scope(k, Scope.HOST, Scope.DISK, Scope.LAB)}
    made = {k for k in outside if store.disk and of_scope(k, Scope.DISK)}
    return {k: v for k, v in outside.items() if k not in made or cost_of(k) is Cost.ONLINE}


def _save_changes(folder: Path, changes: Sequence[Change]) -> None:
    rows = [_as_json(change) for change in changes]
    (folder / "changes.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")


def _as_json(change: Change) -> Mapping[str, str]:
    return {
        "key": change.key,
        "before": change.before,
        "after": change.after,
        "cost": change.cost.name.lower(),
        "durability": change.durability.value,
    }
