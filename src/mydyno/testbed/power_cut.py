"""The power of a lab disk under a private server: cut, and what the server has afterwards."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mydyno.campaign.crash import PowerCut, Recovery
from mydyno.host import Host
from mydyno.lab.lab_store import LabStore
from mydyno.loads.ledger import MARK, TABLES
from mydyno.model import Action, HostError, SpecError
from mydyno.server.client import DATABASE
from mydyno.testbed.server_runner import ServerRunner

_TRAP_S, _POLL_S = 10.0, 0.02  # how long a write of a data page is waited for
_START_S, _SQL_S = 120.0, 120.0  # a recovery of seconds of commits; InnoDB may wait for ever
_SECTOR = 512
_EXTENT = re.compile(r"^\s*\d+:\s*\d+\.\.\s*\d+:\s*(\d+)\.\.\s*(\d+):", re.MULTILINE)
_WRITE_PAGES = "SET GLOBAL innodb_max_dirty_pages_pct = 0"  # so that there are some
_PLACES = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('innodb_data_home_dir', "
    "'innodb_doublewrite_dir', 'innodb_log_group_home_dir', 'innodb_undo_directory', "
    "'log_bin_basename')"
)
_SHOWN = 400  # characters of a complaint
_LINES = 2000
_DAMAGE = re.compile(r"\[ERROR\].*(corrupt|checksum|page id|tablespace)", re.IGNORECASE)
_BASE = "log_bin_basename"
# with one of these, the marks of commits cannot be searched in the binary log
_UNREADABLE = (
    "binlog_encryption",
    "binlog_transaction_compression",
    "encrypt_binlog",
    "log_bin_compress",
)
_REPAIRED = re.compile(r"recovered page.*doublewrite", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LabPower:
    """The power of the lab disk that holds `store`; `mount` are the treatment's mount options.

    `lies`: the disk answers flushes and ignores them.
    """

    host: Host
    store: LabStore
    runner: ServerRunner
    mount: str
    lies: bool = False

    def cache(self) -> None:
        """Let writes be durable after a flush only, from now on.

        Raises `SpecError` for files of the server on another disk, which would survive the cut.
        """
        self._refuse_elsewhere()
        self.store.device.fault("cache lies" if self.lies else "cache on")

    def cut(self, seed: int, *, inside: bool) -> PowerCut:
        """Cut the power, at once or `inside` the next write of a data page; end the server."""
        trapped = inside and self._trapped(seed)
        if not trapped:
            try:
                self.store.device.fault(f"cut drawn {seed}")
            except HostError:
                trapped = inside and self._is_off()  # by a write after the last look
                if not trapped:
                    raise
        found: dict[str, Any] | None = self.store.device.stats()["faults"]["cut"]
        self.runner.stop(grace_s=0.0)
        if found is None:
            raise HostError("the power cut could not be completed; is the disk of the lab full?")
        return PowerCut(**found, inside=trapped)

    def recover(self) -> Recovery:
        """Switch the power on, mount, start the server, and read what it has."""
        instance, began_s = self.runner.instance, time.monotonic()
        nothing = frozenset[tuple[int, int]]()
        self.store.power_on()
        try:
            self.store.mount(self.mount)
        except HostError as error:
            seconds = time.monotonic() - began_s
            return Recovery(seconds, nothing, None, f"cannot be mounted: {error}"[:_SHOWN])
        try:
            instance.start(timeout_s=_START_S)
        except HostError as error:
            seconds = time.monotonic() - began_s
            return Recovery(seconds, nothing, None, f"does not start: {error}"[:_SHOWN])
        seconds = time.monotonic() - began_s
        self.runner.up = True
        try:
            rows = self._rows()
            log = instance.error_tail(_LINES)
            repaired = sum(bool(_REPAIRED.search(line)) for line in log)
            return Recovery(seconds, rows, self._binlog(), self._damage(log), repaired)
        except HostError as error:
            return Recovery(seconds, nothing, None, f"cannot be read: {error}"[:_SHOWN])

    def _refuse_elsewhere(self) -> None:
        data = self.runner.instance.place.data
        shown = self.runner.instance.query(_PLACES)
        places = {name: data / value for name, value in shown if value not in {"", "NULL"}}
        # what is named is a folder, but of the binary log it is the begin of a file
        folders = [p.parent if name == "log_bin_basename" else p for name, p in places.items()]
        argv = ("stat", "-L", "-c", "%d", "--", str(data), *map(str, folders))
        disk, *others = self.host.run(Action(argv)).check().stdout.split()
        for (name, place), other in zip(places.items(), others, strict=True):
            if other != disk:
                raise SpecError(
                    f"{name}: {place} is not on the disk whose power is cut, so nothing would be "
                    "proven; leave it out"
                )

    def _trapped(self, seed: int) -> bool:
        """Return whether the power went in the middle of a write of a data page in time."""
        if not (ranges := self._pages()):
            return False
        self.store.device.fault(f"trap {seed} {' '.join(ranges)}")
        self.runner.instance.query(_WRITE_PAGES)
        end = time.monotonic() + _TRAP_S
        while time.monotonic() < end:
            if self._is_off():
                return True
            time.sleep(_POLL_S)
        return False

    def _is_off(self) -> bool:
        power: str = self.store.device.stats()["faults"]["power"]
        return power == "off"

    def _pages(self) -> list[str]:
        """Return where on the device the load's table is, as ranges of bytes; [] if not known."""
        instance = self.runner.instance
        file = instance.place.data / DATABASE / f"{TABLES[1]}.ibd"
        done = self.host.run(Action(("filefrag", f"-b{_SECTOR}", "-v", str(file))))
        found = _EXTENT.findall(done.stdout.decode(errors="replace"))
        if done.returncode or self.store.kind == "btrfs":  # its addresses are not the device's
            return []
        return [f"{int(a) * _SECTOR}-{(int(b) + 1) * _SECTOR}" for a, b in found]

    def _rows(self) -> frozenset[tuple[int, int]]:
        text = f"SELECT client, number FROM {DATABASE}.{TABLES[0]}"  # noqa: S608 - our own names
        found = self.runner.instance.query(text, timeout_s=_SQL_S)
        return frozenset((int(client), int(number)) for client, number in found)

    def _damage(self, log: Sequence[str]) -> str:
        """Return what is damaged in the load's tables, by the server's own check and log."""
        instance = self.runner.instance
        named = ", ".join(f"{DATABASE}.{table}" for table in TABLES)
        checked = instance.query(f"CHECK TABLE {named}", timeout_s=_SQL_S)
        wrong = [" ".join(row) for row in checked if row[2:] != ("status", "OK")]
        logged = [line for line in log if _DAMAGE.search(line)]
        return "; ".join([*wrong, *logged])[:_SHOWN]

    def _binlog(self) -> frozenset[tuple[int, int]] | None:
        """Return the commits in the binary log, None where there is none that can be searched."""
        instance = self.runner.instance
        asked = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{}')"
        rows = instance.query(asked.format("', '".join((_BASE, *_UNREADABLE))))
        seen = {row[0]: row[1] for row in rows}
        if not seen.get(_BASE) or any(seen.get(name) == "ON" for name in _UNREADABLE):
            return None
        base_path = Path(seen[_BASE])
        find = (
            "find",
            str(base_path.parent),
            "-maxdepth",
            "1",
            "-name",
            f"{base_path.name}.[0-9]*",
        )
        argv = (*find, "-exec", "grep", "-aohE", MARK, "{}", "+")
        done = self.host.run(Action(argv), timeout_s=_SQL_S)
        marks = re.findall(r"mydyno-(\d+)-(\d+);", done.stdout.decode(errors="replace"))
        return frozenset((int(client), int(number)) for client, number in marks)
