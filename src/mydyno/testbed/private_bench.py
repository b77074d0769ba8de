"""A bench with a private server, or with files only, on a lab disk or in a directory."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec

from mydyno.campaign.bench import TrialBench, TrialInput
from mydyno.campaign.designs import Cell
from mydyno.campaign.doses import OWN
from mydyno.campaign.spec import DeviceTable
from mydyno.host import Host, Rebootable, ask, disk_named, disks_below, interruptible, shielded
from mydyno.journal import Event, Prepared, outcomes
from mydyno.journal.records import Records, first_values
from mydyno.journal.register import marked
from mydyno.lab import Helper, InUseError, Spinner, sweep_links
from mydyno.lab import sweep as sweep_labs
from mydyno.lab.lab_store import LabStore
from mydyno.loads import ReportsSession, Target
from mydyno.model import (
    Action,
    Change,
    Cost,
    DriftError,
    HostError,
    MydynoError,
    Reset,
    Settings,
    SpecError,
)
from mydyno.sample import footprint
from mydyno.sample.sampler import (
    Sampling,
    Watch,
    Where,
    disk_of,
    interface_to,
    link_speed,
    sampling,
)
from mydyno.server import sweep as sweep_servers
from mydyno.snapshot import Store, StorePlace, settle
from mydyno.stack import Site, converge
from mydyno.stack.doses import parse_caps, resolved
from mydyno.stack.kernel import RELEASE, Kernel, same_release
from mydyno.stack.layers import Scope, cost_of, judged, of_scope
from mydyno.stack.link import UNLIMITED, bytes_per_s
from mydyno.stack.protocol import StackSettings, full_key, keys_of
from mydyno.stats.result import ChangeView
from mydyno.testbed.bench_setup import BenchSetup, fs_layer, verify_mount
from mydyno.testbed.calibrated_link import CalibratedLink
from mydyno.testbed.lock import host_lock, post, remove_leftovers
from mydyno.testbed.power_cut import LabPower
from mydyno.testbed.preflight import tls_mismatch
from mydyno.testbed.preparing import Preparation
from mydyno.testbed.server_runner import SAVED_LOG, ServerRunner, target_of
from mydyno.testbed.stores import StoreKey, rebuilt, reformats

_RELEASE = full_key("kernel", RELEASE)


@dataclass(slots=True)
class PrivateBench:
    """All files are below `setup.work`, and removed when the campaign has ended.

    `runners` holds each server by its program; one of them is up at a time.  `runner` is that of
    the last trial, `live` the data set that it left in place.  `hold` confirms the host's lock.
    `unfit` holds, by workload and treatment, why trials fail before they begin.
    """

    setup: BenchSetup
    runners: Mapping[str, ServerRunner]
    lab_link: CalibratedLink | None = None
    spinner: Spinner | None = None
    timed: bool = True
    stores: dict[StoreKey, Store] = field(default_factory=dict)
    live: Store | None = None
    runner: ServerRunner | None = None
    hold: Callable[[], None] = field(default=lambda: None)
    unfit: dict[Cell, MydynoError] = field(default_factory=dict)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Fill the data sets and read the defaults; at the end restore the host and clean up.

        A signal interrupts trials, but not restoring and cleaning up.
        """
        p = self.setup
        with shielded(), host_lock(p.hosts.db, p.hosts.load) as self.hold:
            self._sweep()
            if self._finished():  # only the cleanup after a kill is left to do
                self._remove()
                yield
                return
            self._post_notice()
            try:
                p.log.refuse()
                with interruptible():
                    self._prepare()
                    yield
            except BaseException as error:
                # after a spec error there is nothing to resume
                for late in self._clean_up(keep=self._begun(error)):
                    p.log.say(f"warning: cleaning up failed: {late}")
                raise
            if self.stores:
                p.log.say(f"cleaning up {len(self.stores)} data sets; a busy disk may need minutes")
            if errors := self._clean_up(keep=not self._finished()):
                for other in errors[1:]:
                    p.log.say(f"warning: cleaning up failed: {other}")
                raise errors[0]

    @property
    def helpers(self) -> list[Helper]:
        """Return the processes that must run during each trial."""
        wire = self.lab_link.link.wire if self.lab_link else None
        return [helper for helper in (self.spinner, wire) if helper]

    def _post_notice(self) -> None:
        """Write a notice on a host whose settings will be changed; restoring removes it."""
        p = self.setup
        if p.outside.layers:
            post(p.host, marked(p.log.files.path), p.campaign.name, p.log.files.path)

    def _prepare(self) -> None:
        if self.lab_link:
            self.lab_link.link.up()
        if self.spinner:
            self.spinner.start()
        Preparation(self.setup, self.runners, self.stores, self.unfit).prepare()
        for runner in self.runners.values():
            if runner.replica:
                runner.replica.announce()
        if self.lab_link:
            self.lab_link.prepare(self.setup, self)

    def trial(self, inputs: TrialInput) -> TrialBench:
        """Return the bench of one trial."""
        return PrivateTrial(self, inputs)

    def recover(self) -> None:
        """Clean up after an unfinished trial, restore the host, open the data sets again."""
        self.hold()
        self.live = None
        with shielded():
            for runner in self.runners.values():
                runner.stop(grace_s=0.0)
            self._sweep()
            self._post_notice()
        for store in self.stores.values():
            store.close(keep=True)
            store.open()

    def _remove(self) -> None:
        """Remove the work folder, and the local one of a remote host."""
        found = remove_leftovers(self.setup.host, self.setup.log.records)
        if found.failed:
            raise HostError("; ".join(found.failed))

    def _begun(self, error: BaseException) -> bool:
        """Return whether there is anything to resume after an error."""
        filled = any(isinstance(e, Prepared) for e in self.setup.log.journal.events())
        return filled and not isinstance(error, SpecError)

    def _finished(self) -> bool:
        return self.setup.campaign.next(outcomes(self.setup.log.journal.events())) is None

    def _sweep(self) -> None:
        """Clean up after a killed run, and restore the settings it had changed on the host."""
        p = self.setup
        collect, failed = sweep_servers(p.host, p.log.records)
        for line in (*(f"ended: {one}" for one in collect), *(f"warning: {one}" for one in failed)):
            p.log.say(line)
        try:
            lines = sweep_labs(p.host)
        except InUseError as error:  # a leftover disk that is in use does not disturb this campaign
            lines = (f"warning: leftover: {error}",)
        for line in (*lines, *sweep_links(p.host)):
            p.log.say(line)
        p.log.restore(p.host)

    def _clean_up(self, *, keep: bool) -> list[Exception]:
        """Clean up, each step even if the one before it failed; return the errors."""
        steps: list[Callable[[], object]] = []
        for runner in self.runners.values():
            steps.append(partial(runner.stop, grace_s=0.0))
            steps += [] if keep else [one.close for one in runner.instances]
        steps.append(partial(self.setup.log.restore, self.setup.host))
        steps += [self.spinner.stop] if self.spinner else []
        steps += [self.lab_link.link.down] if self.lab_link else []
        steps += [partial(store.close, keep=keep) for store in self.stores.values()]
        if not keep:
            steps.append(self._remove)
        errors: list[Exception] = []
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the other steps must still run
                errors.append(error)
        return errors


@dataclass(slots=True)
class PrivateTrial:
    """A private bench during one trial: its data set restored, its treatment applied."""

    bench: PrivateBench
    inputs: TrialInput

    @property
    def load_host(self) -> Host:
        """Return the host of the load, inside its network namespace if any."""
        b, workload = self.bench, self.inputs.workload
        lab_link = b.lab_link if workload.info.needs_server else None
        there = b.runner.instance.endpoint.tcp_host if b.runner else ""
        if lab_link and there == lab_link.link.state.address:
            return lab_link.link.inside
        return b.setup.hosts.of(workload)

    def ready(self) -> Target:
        """Restore the data, apply the treatment, start the server, verify all settings."""
        b, p, inputs = self.bench, self.bench.setup, self.inputs
        trial, workload, settings = inputs.trial, inputs.workload, inputs.settings
        if unfit := b.unfit.get((trial.workload, trial.treatment)):
            raise HostError(str(unfit))
        if b.lab_link:
            settings = b.lab_link.settings(p, settings, workload)
        if settings.of("disk"):
            settings = resolved(settings, _own_latencies(p.log.journal.events()))
        for helper in b.helpers:
            helper.check()
        self._boot_kernel(settings)
        key, stock = (p.key(chosen, workload) for chosen in (settings, p.stock))
        store = b.stores[key]
        runner = b.runners[key.server] if key.server else None
        hot = self._hot(store, settings)
        changes: list[Change] = list(hot or [])
        if hot is None:
            changes += rebuilt(key, stock)
            changes += reformats(settings, key, stock) if store.place.disk else []
            changes += self.restored(store, settings)
        place, outside = store.place, _host_part(settings, store)
        converge(p.site(store), outside, p.log.ledger, trial.id)
        if not place.disk:  # a lab's mount was verified when it was made
            verify_mount(p.host, fs_layer(store), settings.of("fs").get("mount", ""))
        changes += host_changes(outside, p.log.records)
        target = Target(work=p.made("load"), directory=place.live)
        b.runner = runner or b.runner
        if runner is not None:
            changes += self._launched(runner, settings) if hot is None else []
            target = target_of(runner.instance, target.work, place.live)
        defaults = runner.layers.defaults if runner and runner.layers else {}
        save_changes(self.inputs.folder, judged(changes, settings, defaults, p.stock))
        settle(p.host, store)
        return target

    def _launched(self, runner: ServerRunner, settings: StackSettings) -> list[Change]:
        """Start the server with the treatment; an error names the log that `collect` saves.

        Each change has cost a restart, as the plan states, also where it could be made online.
        """
        try:
            made = runner.launch(settings, self.inputs.trial)
            return [replace(one, cost=max(one.cost, Cost.RESTART)) for one in made]
        except HostError as error:
            saved = str(self.inputs.folder / SAVED_LOG)
            text = str(error).replace(str(runner.instance.place.log), saved)
            raise type(error)(text) from error

    def power(self) -> LabPower:
        """Return the power of the data's lab disk; raise `SpecError` where there is none."""
        b = self.bench
        if not isinstance(b.live, LabStore) or b.runner is None or b.setup.hosts.address:
            raise SpecError(
                'stack.device: a crash test needs a lab disk, { lab = "loop" }, and the load '
                "on its host"
            )
        mount = self.inputs.settings.of("fs").get("mount", "")
        device = b.setup.campaign.spec.stack.device
        lies = isinstance(device, DeviceTable) and device.ignores_flushes is True
        return LabPower(b.setup.host, b.live, b.runner, mount, lies)

    def sampler(self) -> AbstractContextManager[Sampling]:
        """Sample host, data disk and, where there is one, the server while the load runs."""
        b, host, folder = self.bench, self.bench.setup.host, self.inputs.folder
        place = b.live.place if b.live else None
        where = _where(host, place) if place else Where()
        if b.runner is None or not (pid := b.runner.instance.pid):
            return sampling(host, folder, Watch(where))
        interface, speed = self._interface(b.runner.instance.endpoint.tcp_host)
        where = replace(where, interface=interface, link_bytes_per_s=speed)
        watched = {"mysqld": pid, **{helper.role: helper.pid for helper in b.helpers}}
        watched |= {"lab": place.daemon} if place and place.daemon else {}
        watched |= {"replica": b.runner.replica.instance.pid} if b.runner.replica else {}
        watch = Watch(where, watched, b.runner.instance.place.admin)
        return self._with_replica(sampling(host, folder, watch))

    @contextmanager
    def _with_replica(self, sampler: AbstractContextManager[Sampling]) -> Iterator[Sampling]:
        """Save, as the load ends, how far its replica was behind."""
        with sampler as sampled:
            yield sampled
            if (runner := self.bench.runner) and runner.replica:
                runner.replica.save(self.inputs.folder)

    def verify_session(self) -> None:
        """Raise `DriftError` where the load's session does not have the wanted TLS."""
        wanted, workload = self.inputs.settings.of("net").get("tls"), self.inputs.workload
        if wanted is None or not isinstance(workload, ReportsSession):
            return
        with (self.inputs.folder / "load.out").open("rb") as lines:
            if wrong := tls_mismatch(wanted, workload.session(lines)):
                raise DriftError(wrong)

    def _interface(self, address: str) -> tuple[str, float | None]:
        """Return the interface that the load's traffic uses, and its speed in bytes/s."""
        host, lab_link = self.bench.setup.host, self.bench.lab_link
        if not address:  # a socket uses no interface
            return "", None
        if lab_link and address == lab_link.link.state.address:
            rate = ask(host, lab_link.layer.observe())["rate"]
            return lab_link.link.state.device, None if rate == UNLIMITED else bytes_per_s(rate)
        elsewhere = bool(self.bench.setup.hosts.address)
        name = interface_to(host, address, elsewhere=elsewhere)
        return name, link_speed(host, name)

    def collect(self) -> str:
        """Save the server's files and the data's size; return why the server died, or ``""``."""
        b, folder = self.bench, self.inputs.folder
        died = b.runner.collect(folder, self.inputs.trial.reset) if b.runner else ""
        if b.live and not died:
            footprint.save(b.setup.host, b.live.place.live, folder, self._filled_s())
        return died

    def _filled_s(self) -> float:
        """Return how long it took to fill the data set, 0 where that is not known."""
        names = {key.name for key, store in self.bench.stores.items() if store is self.bench.live}
        events = self.bench.setup.log.journal.events()
        costs = [e.cost_s for e in events if isinstance(e, Prepared) and e.key in names]
        return max(costs, default=0.0)  # a resumed campaign has found it filled

    def _boot_kernel(self, settings: StackSettings) -> None:
        """Boot a VM lab with the treatment's kernel, before anything is mounted there."""
        b, p, kernel = self.bench, self.bench.setup, Kernel((RELEASE,))
        known = p.campaign.treatments.values()
        if not isinstance(p.host, Rebootable) or RELEASE not in keys_of(known, "kernel"):
            return
        now = ask(p.host, kernel.observe())[RELEASE]
        first = first_values(p.log.records.entries()).get(_RELEASE, now)
        aim = settings.of("kernel").get(RELEASE, first)
        if same_release(now, aim):
            return
        if b.runner is not None:
            b.runner.stop(grace_s=0.0)
        b.live = None
        site = Site("db", p.host, (kernel,))
        converge(site, {_RELEASE: aim}, p.log.ledger, self.inputs.trial.id)
        b.hold()

    def _hot(self, store: Store, settings: StackSettings) -> list[Change] | None:
        """Apply the treatment to the running server; return None where it must restart."""
        b, trial = self.bench, self.inputs.trial
        if trial.reset is not Reset.NONE or b.live is not store or b.runner is None:
            return None
        return b.runner.reconfigure(settings, trial)

    def restored(self, store: Store, settings: StackSettings) -> list[Change]:
        """Stop the server and restore the data set, mounted with the treatment's options."""
        b, p, trial = self.bench, self.bench.setup, self.inputs.trial
        stays = trial.reset is not Reset.DATASET and b.live is store
        if b.runner is not None and b.runner.up:
            b.runner.stop()
        if stays:
            return []
        options = settings.of("fs").get("mount", "") if store.place.disk else ""
        layer = fs_layer(store)
        changes = layer.plan({"mount": "defaults"}, {"mount": options} if options else {})
        made = p.log.ledger.planned(changes, layer, "db", trial.id)
        store.restore(options)  # mounts it: a remount could not set every option
        b.live = store
        verify_mount(p.host, fs_layer(store), options)
        return made


def _host_part(settings: StackSettings, store: Store) -> Settings:
    """Return the settings that are applied to the host or a disk, not made with the data set."""
    outside = {k: v for k, v in settings.items() if of_scope(k, Scope.HOST, Scope.DISK, Scope.LAB)}
    made = {k for k in outside if store.place.disk and of_scope(k, Scope.DISK, Scope.LAB)}
    return {k: v for k, v in outside.items() if k not in made or cost_of(k) is Cost.ONLINE}


def _own_latencies(events: Iterable[Event]) -> dict[str, float]:
    """Return the seconds that requests take without a dose, as a diagnosis' first trial found."""
    first = next(iter(outcomes(events)), None)
    metrics = first.metrics if first else ()
    return {m.name.removeprefix(OWN): m.value for m in metrics if m.name.startswith(OWN)}


def _where(host: Host, place: StorePlace) -> Where:
    """Return the disk of a data set; a lab's has caps, and is no volume."""
    if place.control:
        caps = host.run(Action(("cat", str(place.control)))).check().stdout
        return Where(place.disk, caps=parse_caps(caps))
    named = disk_named(host, f"/dev/{place.disk}") if place.disk else disk_of(host, place.live)
    return Where(named, below=disks_below(host, named))


def host_changes(settings: Settings, records: Records) -> list[Change]:
    """Return the treatment's changes of host and disk, relative to their first values.

    The trial before may have set some of them already; they are included.
    """
    first = first_values(records.entries())
    return [
        Change(key, first[key], value, Action(()))
        for key, value in settings.items()
        if key in first and first[key] != value
        if key != _RELEASE or not same_release(first[key], value)
    ]


def save_changes(folder: Path, changes: Sequence[Change]) -> None:
    """Write what a treatment changed into a trial's folder."""
    rows = [
        ChangeView(c.key, c.before, c.after, c.cost.name.lower(), c.durability.value)
        for c in changes
    ]
    raw = msgspec.json.format(msgspec.json.encode(rows), indent=1)
    (folder / "changes.json").write_bytes(raw)
