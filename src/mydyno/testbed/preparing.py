"""Preparation before the first trial: data sets, default settings, and checks of all settings."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.campaign.designs import Cell
from mydyno.campaign.spec import DeviceTable, program_of
from mydyno.host import ask, uploaded
from mydyno.host.processes import ending_with_us
from mydyno.journal import Prepared
from mydyno.lab.lab_store import LabStore
from mydyno.loads import Target, Workload
from mydyno.model import HostError, MydynoError, SpecError, UnknownEndError
from mydyno.server import Instance
from mydyno.snapshot import Store, existing
from mydyno.snapshot.device import discard
from mydyno.stack import zfs
from mydyno.testbed.bench_setup import BenchSetup, ServerLayers, fs_layer
from mydyno.testbed.preflight import refuse_host_settings
from mydyno.testbed.server_runner import (
    ServerRunner,
    page_list,
    target_of,
    write_owned,
    write_page_list,
)
from mydyno.testbed.stores import StoreKey, needed

_REPORTED = (
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_page_size",
    "log_bin",
    "sync_binlog",
)
_NAMES = {
    "randread": "random reads, measured",
    "randwrite": "random writes, measured",
    "read": "sequential reads, measured",
}


_HOURS_S = 12 * 3600.0  # for very large data sets
_STOP_FILLED_S = 900.0  # a clean shutdown writes every dirty page


@dataclass(frozen=True, slots=True)
class Preparation:
    """The data sets of a campaign before its first trial; `runners` are the servers by program.

    `unfit` holds, by workload and treatment, why a treatment cannot be measured.
    """

    setup: BenchSetup
    runners: Mapping[str, ServerRunner]
    stores: dict[StoreKey, Store]
    unfit: dict[Cell, MydynoError] = field(default_factory=dict)

    def prepare(self) -> None:
        """Open and fill the data sets into `stores`; read each server's default settings.

        A treatment whose data cannot be made, or with a setting that server, disk or host do not
        have, becomes `unfit`.  Raises that error where it is the baseline, or no other is left.
        """
        p = self.setup
        known = {e.key for e in p.log.journal.events() if isinstance(e, Prepared)}
        for key, workload in needed(p.campaign).items():
            with self._unless_unfit(key):
                store = self.stores[key] = p.make(key)
                frozen = store.open()
                _report_lab(p, store)
                if not frozen or key.name not in known:
                    self._fill(key, workload, frozen=frozen)
        for program in self.runners:
            self._defaults_of_frozen(program)
        self._check_host()
        cells = {(load, name) for load in p.campaign.workloads for name in p.campaign.compared}
        if self.unfit and cells <= self.unfit.keys():
            raise next(iter(self.unfit.values()))

    @contextmanager
    def _unless_unfit(self, key: StoreKey) -> Iterator[None]:
        """Remove a data set that cannot be made; the treatments that need it are then unfit."""
        try:
            yield
        except UnknownEndError:
            raise
        except (HostError, SpecError) as error:
            self._mark(error, self._cells_on(key))
            if key in self.stores:
                discard(self.stores.pop(key))

    def _cells_on(self, key: StoreKey) -> set[Cell]:
        """Return the treatments, each with its workload, that need a data set."""
        p = self.setup
        return {
            (workload, name)
            for workload, load in p.campaign.workloads.items()
            for name, settings in p.campaign.treatments.items()
            if p.key(settings, load) == key
        }

    def _mark(self, error: MydynoError, cells: set[Cell]) -> None:
        """Record treatments as unfit; raise the error where the baseline is among them."""
        p = self.setup
        if any(name == p.campaign.rule.baseline for _, name in cells):
            raise error
        if new := cells - self.unfit.keys():
            names = ", ".join(sorted({name for _, name in new}))
            p.log.say(f"warning: {names}: {error}; its trials fail, the others go on")
        self.unfit.update(dict.fromkeys(new, error))

    @contextmanager
    def _fits(self, name: str) -> Iterator[None]:
        """Mark a treatment as unfit under every workload where a setting is refused."""
        try:
            yield
        except SpecError as error:
            self._mark(error, {(workload, name) for workload in self.setup.campaign.workloads})

    def _fill(self, key: StoreKey, workload: Workload, *, frozen: bool) -> None:
        p, store = self.setup, self.stores[key]
        began_s, place = time.monotonic(), store.place
        where = f"{key.description} on {place.disk}" if place.disk else "a plain directory"
        several = len(self.runners) > 1 and key.server
        by = f" by {_build_name(self.runners[key.server].instance)}" if several else ""
        p.log.say(f"preparing {key.data}{by} on {where}")
        if not frozen:
            if key.server:
                self._fill_by_server(key, workload)
            else:
                target = Target(work=p.made("load"), directory=place.live)
                self._run_tool(store, workload, target)
            store.freeze()
        cost_s = time.monotonic() - began_s
        p.log.journal.append(Prepared(key.name, place.method, cost_s))
        p.log.say(f"prepared in {cost_s:.0f} s; restored before each trial by: {place.method}")

    def _fill_by_server(self, key: StoreKey, workload: Workload) -> None:
        instance, spec = self.runners[key.server].instance, self.setup.campaign.spec
        work = self.setup.made("load")
        write_owned(
            instance.host, instance, "".join(f"{name} = {value}\n" for name, value in key.shape)
        )
        if spec.stack.data:
            source = existing.find(instance.host, spec.stack.data)
            existing.copy(instance.host, source, instance.place.data, instance.identity.owner)
            instance.adopt()
        else:
            instance.initialise()
        instance.start()
        try:
            self._check(key.server)
            self._run_tool(self.stores[key], workload, target_of(instance, work, work))
            pages = page_list(instance) if spec.protocol.preload else b""
        finally:
            instance.stop(grace_s=_STOP_FILLED_S)
        if pages:
            write_page_list(instance, pages)

    def _run_tool(self, store: Store, workload: Workload, target: Target) -> None:
        """Run the load tool's preparation; raise `HostError` with a failed command's message."""
        host, device = self.setup.hosts.of(workload), self.setup.campaign.spec.stack.device
        capped = isinstance(device, DeviceTable) and device.fill_capped is True
        lab = store if capped and isinstance(store, LabStore) else None
        if lab:
            lab.before_load()
        try:
            for action in workload.prepare(target):
                there = uploaded(host, action, target.work, target.password_file)
                host.run(ending_with_us(there), timeout_s=_HOURS_S).check()
        finally:
            if lab:
                lab.device.cap(on=False)

    def _check(self, program: str) -> None:
        """Read the defaults of the running server, and find settings that it does not have."""
        self._check_host()
        p, runner = self.setup, self.runners[program]
        if runner.layers is not None:
            return
        layers = runner.read_defaults()
        stack = p.campaign.spec.stack
        own = program == program_of(p.stock, stack)
        which = "" if own else f" {_build_name(runner.instance)}"
        _save_server_facts(p, runner.instance, layers, which)
        for name, settings in p.campaign.treatments.items():
            if program_of(settings, stack) == program:
                with self._fits(name):
                    layers.plan(settings)

    def _check_host(self) -> None:
        """Find settings that the disks, the mounts and the host do not have."""
        p = self.setup
        for key, store in self.stores.items():
            on_it = {name for _, name in self._cells_on(key)}
            for layer in (*p.site(store).layers, fs_layer(store)):
                now = {"type": key.kind} if layer.name == "fs" else ask(p.host, layer.observe())
                for name in (n for n in p.campaign.treatments if n in on_it):
                    settings = p.campaign.treatments[name]
                    # a pool knows its properties, and there is none yet
                    if layer.name != "fs" or settings.of("fs").get("type") != zfs.KIND:
                        with self._fits(name):
                            refuse_host_settings(p.host, layer, now, {name: settings})

    def _defaults_of_frozen(self, program: str) -> None:
        """Read the defaults from a snapshot where no data set had to be filled (a resumed run)."""
        key = next((k for k in self.stores if k.server == program), None)
        runner = self.runners[program]
        if runner.layers is not None or key is None:
            return
        self.stores[key].restore("")
        write_owned(self.setup.host, runner.instance)
        runner.instance.start()
        try:
            self._check(program)
        finally:
            runner.instance.stop(grace_s=0.0)


def _build_name(instance: Instance) -> str:
    build = instance.build
    return " ".join((build.flavour, ".".join(map(str, build.version))))


def _save_server_facts(p: BenchSetup, instance: Instance, layers: ServerLayers, which: str) -> None:
    """Write the version of a server and its most important defaults to the facts."""
    stock = layers.stock["mysqld"]
    facts = {"version": instance.version(), "program": str(instance.build.mysqld)}
    facts |= {f"{name} (stock)": stock[name] for name in _REPORTED if name in stock}
    facts["allocator (stock)"] = layers.stock["alloc"].get("library", "glibc")
    facts["TLS library"] = instance.build.tls or "unknown"
    _write(p.log.files.facts / f"server{which}.json", facts)


def _report_lab(p: BenchSetup, store: Store) -> None:
    """Report and save the calibration of a capped lab disk."""
    if not isinstance(store, LabStore) or store.measured is None:
        return
    found, disk = store.measured, store.place.disk
    sequential = f"{found.sequential.bytes_per_s / 1e6:,.0f} MB/s"
    p.log.say(f"lab disk {disk}: measured {found.reads.rate:,.0f} random reads/s, {sequential}")
    for measured in found.all:
        if not measured.within_tolerance:
            p.log.say(
                f"warning: lab disk {disk}, on a slow or busy machine: {measured.description}"
            )
    facts = {
        "class": store.spec.description,
        "burst credits at the start of each trial": str(store.spec.credits),
        **{_NAMES[measured.rw]: measured.description for measured in found.all},
        "filesystem": " ".join(filter(None, (store.kind, store.options))),
    }
    _write(p.log.files.facts / f"lab disk{_apart(p, store)}.json", facts)


def _apart(p: BenchSetup, store: LabStore) -> str:
    """Return a suffix that identifies a disk in a campaign with several stripes."""
    stripes = {key.stripe for key in needed(p.campaign)}
    return f", {store.spec.stripe.disks} in {store.spec.stripe.chunk >> 10}K" * (len(stripes) > 1)


def _write(path: Path, facts: dict[str, str]) -> None:
    path.write_text(json.dumps(facts, indent=1), encoding="utf-8")
