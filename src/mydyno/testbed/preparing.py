"""Preparation before the first trial: data sets, default settings, and checks of all settings."""

import json
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from mydyno.campaign.spec import program_of
from mydyno.host import ask
from mydyno.journal import Prepared
from mydyno.lab.lab_store import LabStore
from mydyno.loads import Workload
from mydyno.server import Instance
from mydyno.snapshot import Store
from mydyno.stack import zfs
from mydyno.testbed.bench_setup import BenchSetup, ServerLayers, fs_layer
from mydyno.testbed.preflight import refuse_host_settings
from mydyno.testbed.server_runner import Filling, ServerRunner, fill, write_owned
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


def prepare(
    p: BenchSetup, runners: Mapping[str, ServerRunner], stores: dict[StoreKey, Store]
) -> None:
    """Open and fill the campaign's data sets into `stores`; read each server's default settings.

    Raises `SpecError`, before any trial, for a setting that server, disk or host do not have.
    """
    checked = partial(_check, p, runners, stores)
    instances = {program: runner.instance for program, runner in runners.items()}
    spec = p.campaign.spec
    filling = Filling(
        p.hosts, p.made("load"), instances, checked, spec.protocol.preload, spec.stack.data
    )
    known = {e.key for e in p.journal.events() if isinstance(e, Prepared)}
    for key, workload in needed(p.campaign).items():
        store = stores[key] = p.make(key)
        frozen = store.open()
        _report_lab(p, store)
        if not frozen or key.name not in known:
            _fill(p, filling, store, key, workload, frozen=frozen)
    for program in runners:
        _defaults_of_frozen(p, runners, stores, program)
    _check_host(p, stores)


def _fill(
    p: BenchSetup,
    filling: Filling,
    store: Store,
    key: StoreKey,
    workload: Workload,
    *,
    frozen: bool,
) -> None:
    began_s = time.monotonic()
    where = f"{key.description} on {store.disk}" if store.disk else "a plain directory"
    several = len(filling.instances) > 1 and key.server
    by = f" by {_build_name(filling.instances[key.server])}" if several else ""
    p.say(f"preparing {key.data}{by} on {where}")
    if not frozen:
        fill(filling, store, key, workload)
    cost_s = time.monotonic() - began_s
    p.journal.append(Prepared(key.name, store.method, cost_s))
    p.say(f"prepared in {cost_s:.0f} s; restored before each trial by: {store.method}")


def _check(
    p: BenchSetup, runners: Mapping[str, ServerRunner], stores: dict[StoreKey, Store], program: str
) -> None:
    """Read the defaults of the running server, and refuse settings that it does not have."""
    _check_host(p, stores)
    runner = runners[program]
    if runner.layers is not None:
        return
    layers = runner.read_defaults()
    stack = p.campaign.spec.stack
    own = program == program_of(p.stock, stack)
    _save_server_facts(
        p, runner.instance, layers, "" if own else f" {_build_name(runner.instance)}"
    )
    for settings in p.campaign.treatments.values():
        if program_of(settings, stack) == program:
            layers.plan(settings)


def _build_name(instance: Instance) -> str:
    build = instance.build
    return " ".join((build.flavour, ".".join(map(str, build.version))))


def _check_host(p: BenchSetup, stores: dict[StoreKey, Store]) -> None:
    """Refuse settings that the disks, the mounts and the host do not have."""
    for key, store in stores.items():
        for layer in (*p.site(store).layers, fs_layer(store)):
            now = {"type": key.kind} if layer.name == "fs" else ask(p.host, layer.observe())
            treatments = {
                name: settings
                for name, settings in p.campaign.treatments.items()
                # a pool knows its properties, and there is none yet
                if layer.name != "fs" or settings.of("fs").get("type") != zfs.KIND
            }
            refuse_host_settings(p.host, layer, now, treatments)


def _defaults_of_frozen(
    p: BenchSetup, runners: Mapping[str, ServerRunner], stores: dict[StoreKey, Store], program: str
) -> None:
    """Read the defaults from a snapshot where no data set had to be filled (resumed campaign)."""
    key = next((k for k in stores if k.server == program), None)
    runner = runners[program]
    if runner.layers is not None or key is None:
        return
    stores[key].restore("")
    write_owned(p.host, runner.instance)
    runner.instance.start()
    try:
        _check(p, runners, stores, program)
    finally:
        runner.instance.stop(grace_s=0.0)


def _save_server_facts(p: BenchSetup, instance: Instance, layers: ServerLayers, which: str) -> None:
    """Write the version of a server and its most important defaults to the facts."""
    stock = layers.stock["mysqld"]
    facts = {"version": instance.version(), "program": str(instance.build.mysqld)}
    facts |= {f"{name} (stock)": stock[name] for name in _REPORTED if name in stock}
    facts["allocator (stock)"] = layers.stock["alloc"].get("library", "glibc")
    _write(p.files.facts / f"server{which}.json", facts)


def _report_lab(p: BenchSetup, store: Store) -> None:
    """Report and save the calibration of a capped lab disk."""
    if not isinstance(store, LabStore) or store.measured is None:
        return
    found = store.measured
    sequential = f"{found.read_bytes_per_s / 1e6:,.0f} MB/s"
    p.say(f"lab disk {store.disk}: measured {found.read_iops:,.0f} random reads/s, {sequential}")
    for measured in found.all:
        if not measured.within_tolerance:
            p.say(
                f"warning: lab disk {store.disk}, on a slow or busy machine: {measured.description}"
            )
    facts = {
        "class": store.spec.description,
        "burst credits at the start of each trial": str(store.spec.credits),
        **{_NAMES[measured.rw]: measured.description for measured in found.all},
        "filesystem": " ".join(filter(None, (store.kind, store.options))),
    }
    _write(p.files.facts / f"lab disk{_apart(p, store)}.json", facts)


def _apart(p: BenchSetup, store: LabStore) -> str:
    """Return a suffix that identifies a disk in a campaign with several stripes."""
    stripes = {key.stripe for key in needed(p.campaign)}
    return f", {store.spec.stripe.disks} in {store.spec.stripe.chunk >> 10}K" * (len(stripes) > 1)


def _write(path: Path, facts: dict[str, str]) -> None:
    path.write_text(json.dumps(facts, indent=1), encoding="utf-8")
