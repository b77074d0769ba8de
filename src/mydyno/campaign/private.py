"""A bench with a private server, or plain files, on a lab disk or in a directory."""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mydyno.apply import apply, recorded, rollback
from mydyno.campaign.fill import Filling, fill, target_of, write_owned
from mydyno.campaign.lock import host_lock
from mydyno.campaign.plan import Campaign
from mydyno.campaign.rig import Launched, learn, mounted
from mydyno.campaign.rundir import RunDir
from mydyno.campaign.stores import StoreKey, key_of, needed, strip
from mydyno.dataset import Store
from mydyno.host import Host, ask
from mydyno.journal import Journal, Prepared, outcomes
from mydyno.lab import sweep as sweep_labs
from mydyno.model import Change, DriftError, Settings, SpecError, Trial
from mydyno.server import Instance
from mydyno.server import sweep as sweep_server
from mydyno.stack import Layer, Site
from mydyno.stack.block import Block
from mydyno.stack.fs import missing
from mydyno.workloads import Target, Workload


@dataclass(frozen=True, slots=True)
class Parts:
    """What a private bench is made of; `make` gives the store of a key, not yet open."""

    host: Host
    campaign: Campaign
    files: RunDir
    journal: Journal
    work: Path
    instance: Instance | None
    make: Callable[[StoreKey], Store]
    host_layers: Sequence[Layer]
    say: Callable[[str], None]


@dataclass(slots=True)
class PrivateBench:
    """Everything is made below `parts.work`, and gone when the campaign has ended."""

    parts: Parts
    timed: bool = True
    _stores: dict[StoreKey, Store] = field(default_factory=dict)
    _launched: Launched | None = None
    _up: bool = False

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
            finished = False
            try:
                self._prepare()
                yield
                finished = p.campaign.design.next(outcomes(p.journal.events())) is None
            except SpecError:
                finished = True  # nothing was measured: there is nothing to resume
                raise
            finally:
                self._close(keep=not finished)

    def ready(self, trial: Trial, settings: Settings, workload: Workload, folder: Path) -> Target:
        """Restore the data, apply the treatment, start the server, and see that all took effect."""
        p = self.parts
        store = self._stores[key_of(settings, workload)]
        changes = self._mounted(store, settings, trial)
        changes += apply(self._site(store), self._host_part(settings), p.journal, trial.id)
        target = Target(work=_made(p.work / "load"), directory=store.live)
        if workload.needs_server and p.instance is not None and self._launched is not None:
            changes += self._launch(p.instance, self._launched, settings, trial)
            target = target_of(p.instance, target.work, store.live)
        _keep_changes(folder, changes)
        store.loading()
        return target

    def ended(self, folder: Path) -> str:
        """Keep the server's files, end it, and return its last words if it had died by itself."""
        instance = self.parts.instance
        if not self._up or instance is None:
            return ""
        self._up = False
        died = "" if instance.pid else "the server died: " + " | ".join(instance.error_tail())
        for name, lines in (
            ("mysqld.err", instance.error_tail(200)),
            ("my.cnf", _options(instance)),
        ):
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        instance.stop(grace_s=0.0)  # what it wrote is thrown away with the data set
        return died

    def _sweep(self) -> None:
        """End what a killed run left behind, and put back what it had moved on the host."""
        p = self.parts
        if p.instance is not None:
            sweep_server(p.host, p.instance.place.home)
        for line in sweep_labs(p.host):
            p.say(line)
        if moved := rollback(Site("db", p.host, p.host_layers), p.journal):
            p.say(f"put back: {', '.join(moved)}")

    def _prepare(self) -> None:
        p = self.parts
        filling = Filling(p.host, _made(p.work / "load"), p.instance, self._learn_stock)
        known = {e.key for e in p.journal.events() if isinstance(e, Prepared)}
        for key, workload in needed(p.campaign).items():
            store = self._stores[key] = p.make(key)
            sealed = store.open()
            self._tell_lab(store)
            if not sealed or key.name not in known:
                self._fill(filling, store, key, workload, sealed=sealed)
        self._stock_of_sealed()
        if p.instance is None or self._launched is None:
            self._check_host()

    def _fill(
        self, filling: Filling, store: Store, key: StoreKey, workload: Workload, *, sealed: bool
    ) -> None:
        p = self.parts
        began_s = time.monotonic()
        p.say(f"preparing {key.data} on {key.kind}")
        if not sealed:
            fill(filling, store, key, workload)
        cost_s = time.monotonic() - began_s
        p.journal.append(Prepared(key.name, store.method, cost_s))
        p.say(f"prepared in {cost_s:.0f} s; each trial gets it back: {store.method}")

    def _learn_stock(self) -> None:
        """Read the running server's true defaults, and refuse what it does not know."""
        p = self.parts
        if p.instance is None or self._launched is not None:
            return
        self._launched = learn(p.instance)
        self._check_host()
        for settings in p.campaign.treatments.values():
            self._launched.plan(settings)

    def _check_host(self) -> None:
        """Refuse what the disks and the host do not know, before any trial."""
        p = self.parts
        for key, store in self._stores.items():
            for layer in self._site(store).layers:
                now = ask(p.host, layer.observe())
                for settings in p.campaign.treatments.values():
                    layer.plan(now, strip(settings, f"db/{layer.name}."))
            mounted(store).plan({"type": key.kind}, {"type": key.kind})

    def _stock_of_sealed(self) -> None:
        """Learn stock from a golden copy where none had to be filled: a resumed campaign."""
        p = self.parts
        key = next((k for k in self._stores if k.server), None)
        if self._launched is not None or p.instance is None or key is None:
            return
        self._stores[key].restore("")
        write_owned(p.host, p.instance)
        p.instance.start()
        try:
            self._learn_stock()
        finally:
            p.instance.stop(grace_s=0.0)

    def _mounted(self, store: Store, settings: Settings, trial: Trial) -> list[Change]:
        """Restore the data set with the treatment's mount options, and see that they took."""
        p = self.parts
        options = settings.get("db/fs.mount", "") if store.disk else ""
        store.restore(options)
        layer = mounted(store)
        want = {"mount": options} if options else {}
        if left := missing(ask(p.host, layer.observe())["mount"], options):
            raise DriftError(f"{layer.where}: mounted without {', '.join(left)}")
        before = {"mount": "defaults"}
        return recorded(layer.plan(before, want), layer, (p.journal, "db/fs.", trial.id))

    def _launch(
        self, instance: Instance, launched: Launched, settings: Settings, trial: Trial
    ) -> list[Change]:
        p = self.parts
        write_owned(p.host, instance)
        planned = launched.plan(settings)
        changes = [
            full
            for layer, change in planned
            for full in recorded([change], layer, (p.journal, f"db/{layer.name}.", trial.id))
        ]
        for action in dict.fromkeys(change.action for _, change in planned):
            p.host.run(action).check()
        instance.start()
        self._up = True
        launched.verify(p.host, settings)
        return changes

    def _site(self, store: Store) -> Site:
        disk = (Block(store.disk, ours=True),) if store.disk else ()
        return Site("db", self.parts.host, (*disk, *self.parts.host_layers))

    def _host_part(self, settings: Settings) -> Settings:
        """Return the settings that are applied to the host or to a disk, not to the server."""
        return {k: v for k, v in settings.items() if k.startswith(("db/block.", "db/kernel."))}

    def _tell_lab(self, store: Store) -> None:
        measured = getattr(store, "measured", None)
        if measured is not None:
            self.parts.say(
                f"lab disk {store.disk}: measured {measured.read_iops:,.0f} random reads/s, "
                f"{measured.read_bytes_per_s / 1e6:,.0f} MB/s"
            )
            facts = {
                "random reads": f"{measured.read_iops:,.0f} /s of 16 KiB, depth 32",
                "sequential reads": f"{measured.read_bytes_per_s / 1e6:,.0f} MB/s",
                "random writes": f"{measured.write_iops or 0:,.0f} /s of 16 KiB, depth 32",
            }
            path = self.parts.files.facts / "lab disk, measured.json"
            path.write_text(json.dumps(facts), encoding="utf-8")

    def _close(self, *, keep: bool) -> None:
        """Take all down; each step is tried whatever became of the one before it."""
        p = self.parts
        errors: list[Exception] = []
        steps: list[Callable[[], object]] = []
        if p.instance is not None:
            steps.append(p.instance.close if not keep else partial(p.instance.stop, grace_s=0.0))
        steps.append(partial(rollback, Site("db", p.host, p.host_layers), p.journal))
        steps += [partial(store.close, keep=keep) for store in self._stores.values()]
        if not keep:
            steps.append(partial(shutil.rmtree, p.work))
        for step in steps:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the others must still be taken down
                errors.append(error)
        if errors:
            raise errors[0]


def _made(folder: Path) -> Path:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _options(instance: Instance) -> list[str]:
    """Return the treatment's option file and launch files as one text; they hold no secret."""
    files = [instance.place.owned, *sorted(instance.place.launch.iterdir())]
    return [f"# {path.name}\n{path.read_text(encoding='utf-8').rstrip()}" for path in files]


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
