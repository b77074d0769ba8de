"""Applying a treatment to a private server: at its start, or online while it runs."""

import random
import re
import time
from bisect import bisect_right
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mydyno.host import Host, Local, Remote, ask
from mydyno.host.files import size_of
from mydyno.loads import Target
from mydyno.model import Action, Change, Cost, HostError, Reset, Trial
from mydyno.server import Instance
from mydyno.server.client import DATABASE
from mydyno.stack import LayerPlan, Ledger, Site, converge_server, launch_file
from mydyno.stack.protocol import StackSettings
from mydyno.testbed import slow_log
from mydyno.testbed.bench_setup import ServerLayers, read_defaults
from mydyno.testbed.replica import Replica

_LIST = "ib_buffer_pool"  # the name that every server looks for in its data folder
_MOST = 2_000_000  # pages that are listed: 32 GB of 16 KiB
_SEED = 1
_POLL_S = 0.1
_BEGINS_S = 3.0  # after the server answers
_RUNS = re.compile(r"^(loading buffer pool|loaded \d)")
_SPACES = ("INNODB_TABLESPACES", "INNODB_SYS_TABLESPACES")  # MySQL 8; MariaDB and MySQL before
_STATUS = "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_load_status'"


def page_list(instance: Instance) -> bytes:
    """Return every page of the load's tables as the running server's own dump would name them.

    They are in drawn order, so that what fits into a smaller pool is an even sample.
    """
    page = int(instance.query("SELECT @@innodb_page_size")[0][0])
    spaces, ends = [], [0]  # of a terabyte the pages themselves would not fit into memory
    for space, name in _spaces(instance):
        pages = size_of(instance.host, instance.place.data / f"{name}.ibd") // page
        spaces.append(int(space))
        ends.append(ends[-1] + pages)
    most = min(ends[-1], _MOST)
    drawn = [n * ends[-1] // most for n in range(most)]  # evenly over all files
    random.Random(_SEED).shuffle(drawn)
    listed = ((number, bisect_right(ends, number) - 1) for number in drawn)
    return "".join(f"{spaces[n]},{number - ends[n]}\n" for number, n in listed).encode()


def write_page_list(instance: Instance, pages: bytes) -> None:
    """Put a list of pages where the stopped server will look for it when it starts."""
    path = instance.place.data / _LIST
    # by the server's user: in its folder root would follow what it has put there
    argv = (*instance.identity.drop(), "dd", f"of={path}", "status=none")
    instance.host.run(Action(argv, pages)).check()


def load_buffer_pool(instance: Instance, *, timeout_s: float = 900.0) -> None:
    """Return when the server has the listed pages in its pool, or as many as the pool holds.

    Where there is no list, or a treatment forbids it, the trial starts cold.
    """
    began_s = time.monotonic()
    while (spent_s := time.monotonic() - began_s) < timeout_s:
        status = next((row[1] for row in instance.query(_STATUS)), "").lower()
        waiting = (not status or "not started" in status) and spent_s < _BEGINS_S
        if "completed" in status or not (waiting or _RUNS.search(status)):
            return
        time.sleep(_POLL_S)
    raise HostError(
        f"loading the buffer pool timed out after {timeout_s:g} s; set protocol.preload = false"
    )


def _spaces(instance: Instance) -> list[tuple[str, ...]]:
    """Return the tablespaces of the load's tables: their numbers and names."""
    known = {
        row[0].upper()
        for row in instance.query(
            "SELECT TABLE_NAME FROM information_schema.TABLES "
            "WHERE TABLE_SCHEMA = 'information_schema'"
        )
    }
    view = next((name for name in _SPACES if name in known), "")
    if not view:
        return []
    return instance.query(
        f"SELECT SPACE, NAME FROM information_schema.{view} WHERE NAME LIKE '{DATABASE}/%'"  # noqa: S608 - our own names
    )


def write_owned(host: Host, instance: Instance, lines: str = "") -> None:
    """Write `lines` as the entire owned option file, and remove the other launch files."""
    place = instance.place
    host.run(launch_file.install(place.owned, f"[mysqld]\n{lines}")).check()
    files = ("find", str(place.launch), "-mindepth", "1", "-type", "f", "-delete")
    host.run(Action(files)).check()


def target_of(instance: Instance, work: Path, directory: Path) -> Target:
    """Return the target of a load on a running private server; `work` is a folder of ours."""
    end = instance.endpoint
    return Target(
        work=work,
        directory=directory,
        socket=end.socket,
        tcp_host=end.tcp_host,
        tcp_port=end.tcp_port,
        user=end.user,
        password_file=_password_file(instance, work),
        database=end.database,
    )


def _password_file(instance: Instance, work: Path) -> Path:
    """Return a client option file for the load that can be read here: the original or a copy.

    The copy names copies of the certificates, so that both can be uploaded to the load's host.
    """
    there = instance.endpoint.password_file
    if not isinstance(instance.host, Remote) and not instance.address:
        return there
    text = _text(instance.host, there)
    tls = instance.place.tls
    for name in sorted(set(re.findall(rf'"{re.escape(str(tls))}/([^"/]+)"', text))):
        _save(_text(instance.host, tls / name), work / tls.name / name)
    here = work / there.name
    _save(text.replace(f'"{tls}/', f'"{work / tls.name}/'), here)
    return here


def _text(host: Host, path: Path) -> str:
    return host.run(Action(("cat", str(path)))).check().stdout.decode()


def _save(text: str, here: Path) -> None:
    install = ("install", "-D", "-m", "600", "/dev/stdin", str(here))
    Local().run(Action(install, text.encode())).check()


_STOP_S = 900.0  # a clean shutdown of a server whose data set stays writes every dirty page
_ANSWER_S = 2.0
_HEADING = "# %f\\n"
SAVED_LOG = "mysqld.err"
_SHOWN = 200  # lines of the error log that are saved with a trial


@dataclass(slots=True)
class ServerRunner:
    """A private server across trials; `layers` is None until its defaults were read.

    `link` is its address on the lab link, where there is one; `begun` is set from the attempt to
    start it until its log was collected.  `slow_from` is where a trial begins in the slow log,
    None where its treatment has none.  A `replica` follows it in each trial.
    """

    host: Host
    instance: Instance
    ledger: Ledger
    layers: ServerLayers | None = None
    up: bool = False
    link: str = ""
    begun: bool = False
    slow_from: int | None = None
    replica: Replica | None = None

    @property
    def instances(self) -> list[Instance]:
        """Return the server, and its replica if there is one."""
        return [self.instance, *([self.replica.instance] if self.replica else [])]

    @property
    def _site(self) -> Site:
        return Site("db", self.host, self.layers.layers if self.layers else ())

    def read_defaults(self) -> ServerLayers:
        """Return the layers and defaults of the server, which must run with its defaults now."""
        self.layers = self.layers or read_defaults(self.instance, self.link)
        return self.layers

    def reconfigure(self, settings: StackSettings, trial: Trial) -> list[Change] | None:
        """Apply a treatment to the running server; return None where that needs a restart.

        Settings that this treatment does not name are reset to their defaults.
        """
        if not self.up or self.layers is None or not self.instance.pid:
            return None
        plans = []
        for layer in self.layers.layers:
            now = ask(self.host, layer.observe())
            changes = layer.plan(now, settings.of(layer.name))
            plans.append(LayerPlan(layer, changes, hot=True))
        if any(c.cost is not Cost.ONLINE for plan in plans for c in plan.changes):
            return None
        self.slow_from = slow_log.begins(self.instance, settings)
        observe = partial(self.layers.verify, self.host, settings)
        return converge_server(self._site, plans, self.ledger, trial.id, observe)

    def launch(self, settings: StackSettings, trial: Trial) -> list[Change]:
        """Write the treatment's option and launch files, start the server, verify the settings.

        A replica begins with the same data, and follows it when this returns.
        """
        layers = self.layers
        if layers is None:
            return []
        if self.replica:
            self.replica.copy()
        write_owned(self.host, self.instance)
        self.slow_from = slow_log.begins(self.instance, settings)

        def observe() -> None:
            self.begun = True
            self.instance.start()
            self.up = True
            layers.verify(self.host, settings)

        made = converge_server(self._site, layers.plan(settings), self.ledger, trial.id, observe)
        load_buffer_pool(self.instance)
        if self.replica:
            self.replica.follow()
        return made

    def collect(self, folder: Path, reset: Reset) -> str:
        """Save the server's log and options; stop it if the next trial's reset requires it.

        Returns why it died, or ``""`` if it did not.
        """
        if self.replica:
            self.replica.stop()
        if not self.up and not self.begun:
            return ""
        died = ""
        if self.up and not self._is_alive():
            died = "the server died: " + " | ".join(self.instance.error_tail())
        self.begun = False
        log, options = self.instance.error_tail(_SHOWN), _options(self.instance)
        for name, lines in ((SAVED_LOG, log), ("my.cnf", options)):
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        if self.slow_from is not None:
            slow_log.save(self.instance, folder, self.slow_from)
        if self.up and (reset is Reset.DATASET or died):
            self.stop(grace_s=0.0)  # its data set is discarded
        return died

    def stop(self, *, grace_s: float = _STOP_S) -> None:
        """Stop the server."""
        self.up = False
        if self.replica:
            self.replica.stop()
        self.instance.stop(grace_s=grace_s)

    def _is_alive(self) -> bool:
        """Return whether the server still runs; a killed server needs a moment to end."""
        try:
            self.instance.ready(timeout_s=_ANSWER_S)
        except HostError:
            return bool(self.instance.pid)
        return True


def _options(instance: Instance) -> list[str]:
    """Return the treatment's option file and launch files as one text, without passwords."""
    place = instance.place
    find = ("find", str(place.owned), str(place.launch), "-type", "f", "-printf", _HEADING)
    shown = instance.host.run(Action((*find, "-exec", "cat", "{}", ";"))).check().stdout
    return shown.decode(errors="replace").splitlines()
