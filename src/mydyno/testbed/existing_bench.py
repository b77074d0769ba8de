"""A bench on a running server that is not ours: hot settings only, and its first values again.

Nothing is restarted, no file is written.  The load works in a database of its own, and not at all
while somebody else is connected.
"""

import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mydyno.campaign.bench import TrialBench, TrialInput
from mydyno.campaign.plan import Campaign
from mydyno.host import Host, Local, Remote, ask, interruptible, shielded
from mydyno.host.files import distrust
from mydyno.host.processes import ending_with_us
from mydyno.journal import outcomes
from mydyno.journal.records import Made
from mydyno.journal.register import marked
from mydyno.loads import Target
from mydyno.model import HostError, RefusedError, SpecError
from mydyno.sample.sampler import Sampling, Watch, sampling, where_in
from mydyno.server.client import query
from mydyno.server.existing import BENCH, DATABASE, SERVER, Existing, dropped
from mydyno.stack import Site, converge
from mydyno.stack.existing_variables import ExistingVariables
from mydyno.stack.flavours import quirks
from mydyno.stack.known.variables import COMPANIONS, describe
from mydyno.stack.layers import judged
from mydyno.stack.protocol import keys_of, spec_key
from mydyno.testbed.bench_setup import CampaignLog, Hosts
from mydyno.testbed.lock import (
    LOCAL_FOLDER,
    REMOTE_ROOT,
    host_lock,
    open_work,
    post,
    remove_work,
)
from mydyno.testbed.private_bench import host_changes, save_changes

CONSENT = "existing-server"
_HOURS_S = 6 * 3600.0  # for the preparation of the data
_SQL_S = 60.0
# Between trials for longer: a busy server still lists the sessions of the last one.
_LOOKS, _BETWEEN, _APART_S = 3, 20, 0.5
_TAKES_PROCESS = "SELECT COUNT(*) FROM information_schema.innodb_trx;"
_SESSIONS = (
    "SELECT CONCAT(user, '@', host) FROM information_schema.processlist "
    "WHERE id <> CONNECTION_ID() AND command NOT IN ('Daemon') "
    "AND user NOT IN ('event_scheduler', 'mysql.session', 'mysql.sys')"
)


def refuse(
    campaign: Campaign, existing: Existing, options: str, *, planned: bool
) -> ExistingVariables:
    """Return the layer of a campaign's variables; raise an error for what cannot be tested there.

    Only variables that the server takes while it runs are, and no other setting.  What is only
    `planned` assigns none, so that MySQL is not asked which of them need a restart.
    """
    _refuse_shape(campaign)
    if existing.process is None:
        raise RefusedError(
            f"stack.server: {options}: its server does not run on {existing.host.name}; name that "
            "host in stack.host, as its load would meet whatever listens here"
        )
    if not options.startswith("/"):
        raise SpecError(f"stack.server: {options}: write the path of the option file from / on")
    if isinstance(existing.host, Remote):
        raise RefusedError(
            f"stack.server: {options}: is on {existing.host.name}, and the load reads its account "
            "here; run mydyno on that host"
        )
    _refuse_blind(existing)
    treatments = campaign.treatments
    keys = keys_of(treatments.values(), "mysqld")
    along = [COMPANIONS[key] for key in keys if key in COMPANIONS]
    layer = ExistingVariables(tuple(dict.fromkeys((*keys, *along))), options)
    now = ask(existing.host, layer.observe())
    for name, settings in treatments.items():
        try:
            layer.plan(now, settings.of("mysqld"))
        except SpecError as error:
            raise SpecError(f"{name}: {error}") from error
    if planned and not quirks(existing.flavour, existing.version).lists_variables:
        return layer
    known = ask(
        existing.host, describe(existing.argv, existing.flavour, existing.version, dict(now))
    )
    fixed = [key for key in keys if key not in known or not known[key].dynamic]
    if fixed:
        raise SpecError(f"mysqld.{fixed[0]}: needs a restart, and this server is not ours")
    return layer


def _refuse_shape(campaign: Campaign) -> None:
    """Raise `SpecError` for a spec that asks for more than variables set while it runs."""
    stack, place = campaign.spec.stack, "stack.server is existing:…"
    if stack.load or stack.device != "here" or stack.data:
        raise SpecError(f"{place}: remove load, device and data of [stack]")
    if campaign.spec.protocol.reset != "none":
        raise SpecError(f'{place}, and nothing is reset there; write [protocol] reset = "none"')
    for name, settings in campaign.treatments.items():
        if wrong := [k for k in settings if not k.startswith(("db/mysqld.", "load/"))]:
            raise SpecError(f"{name}: {spec_key(wrong[0])}: {place}: only mysqld.* can be set")
    for cell, workload in campaign.workloads.items():
        if not workload.info.needs_server:
            raise SpecError(f"workloads.{cell}: {place}, and this load needs no server")


def _refuse_blind(existing: Existing) -> None:
    """Raise `RefusedError` for an account to which the server does not show others' sessions."""
    try:
        query(existing.host, existing.argv, _TAKES_PROCESS, _SQL_S)
    except HostError as error:
        raise RefusedError(
            f"{existing.host.name}: the account cannot see whom a load would disturb: "
            "GRANT PROCESS ON *.* TO it"
        ) from error


def refuse_foreign(existing: Existing, looks: int = _LOOKS) -> None:
    """Raise `RefusedError` where somebody else is connected, each time of several.

    A replica of it is: it would be given the load's writes.  So is its own replication.
    """
    for _ in range(looks):  # a monitor comes and goes
        if not (found := query(existing.host, existing.argv, f"{_SESSIONS};", _SQL_S)):
            break
        time.sleep(_APART_S)
    else:
        names = ", ".join(sorted({row[0].partition(":")[0] for row in found})[:5])
        raise RefusedError(
            f"{existing.host.name}: {len(found)} other sessions are connected ({names}); a load "
            "would disturb them: stop what they belong to, or test on a copy"
        )


@dataclass(slots=True)
class ExistingBench:
    """A server as it was found: `existing` reaches it, `layer` sets its variables."""

    hosts: Hosts
    campaign: Campaign
    log: CampaignLog
    existing: Existing
    layer: ExistingVariables
    timed: bool = True

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Make the database of the load; at the end restore all variables and drop it."""
        with shielded(), host_lock(self.hosts.db, self.hosts.load):
            self._clean()
            if self.campaign.next(outcomes(self.log.journal.events())) is None:
                yield  # the campaign is complete
                return
            self.log.refuse()
            refuse_foreign(self.existing)
            post(
                self.hosts.db, marked(self.log.files.path), self.campaign.name, self.log.files.path
            )
            try:
                with interruptible():
                    self._fill()
                    yield
            finally:
                self._clean()

    def trial(self, inputs: TrialInput) -> TrialBench:
        """Return the bench of one trial."""
        return ExistingTrial(self, inputs)

    def recover(self) -> None:
        """Restore the variables after a trial with an unknown end."""
        with shielded():
            self.log.restore(self.hosts.db, "variables")

    def _work(self) -> Path:
        """Return the folder of what the load logs in with, which ends with the campaign."""
        inside, host = self.log.files.work, Local()
        elsewhere = REMOTE_ROOT / f"mydyno-{secrets.token_hex(8)}"
        where = elsewhere if distrust(host, inside.parent) else inside
        return open_work(host, where, self.log.records, kind=LOCAL_FOLDER)

    def target(self) -> Target:
        """Return the target of a load: the server's socket."""
        ((socket, user),) = self._ask("SELECT @@socket, USER();")
        work = self._work()
        return Target(
            work=work,
            directory=work,
            socket=socket,
            user=user.rpartition("@")[0],
            password_file=Path(self.layer.at),
            database=DATABASE,
        )

    def _ask(self, text: str) -> list[tuple[str, ...]]:
        return query(self.hosts.db, self.existing.argv, text, _SQL_S)

    def _fill(self) -> None:
        """Make the data of each load that has some, once."""
        if self._ask(f"SHOW DATABASES LIKE '{DATABASE}';"):
            raise RefusedError(f"{DATABASE}: is a database there already; drop or rename it")
        ((server,),) = self._ask(SERVER)
        self.log.records.add(Made(BENCH, DATABASE, {"at": self.layer.at, "server": server}))
        self._ask(f"CREATE DATABASE {DATABASE};")
        target = self.target()
        loads = {one.info.data_key: one for one in self.campaign.workloads.values()}
        for key, workload in loads.items():
            if key:
                self.log.say(f"preparing {key} in {DATABASE}")
                for action in workload.prepare(target):
                    self.hosts.load.run(ending_with_us(action), timeout_s=_HOURS_S).check()

    def _clean(self) -> None:
        try:
            self.log.restore(self.hosts.db, "variables")
        finally:
            removed, failed = dropped(self.hosts.db, self.log.records)
            _, left = remove_work(Local(), self.log.records, kind=LOCAL_FOLDER)
            for line in (*removed, *failed, *left):
                self.log.say(line)


@dataclass(slots=True)
class ExistingTrial:
    """The server during one trial: the treatment's variables are set."""

    bench: ExistingBench
    inputs: TrialInput

    @property
    def load_host(self) -> Host:
        """Return the host of the load."""
        return self.bench.hosts.load

    def ready(self) -> Target:
        """Set the treatment's variables; refuse where somebody has connected meanwhile."""
        b, settings = self.bench, self.inputs.settings
        refuse_foreign(b.existing, _BETWEEN)
        wanted = {key: v for key, v in settings.items() if key.startswith("db/")}
        site = Site("db", b.hosts.db, (b.layer,))
        converge(site, wanted, b.log.ledger, self.inputs.trial.id)
        changes = host_changes(wanted, b.log.records)
        baseline = b.campaign.treatments[b.campaign.rule.baseline]
        save_changes(self.inputs.folder, judged(changes, settings, {}, baseline))
        return b.target()

    def sampler(self) -> AbstractContextManager[Sampling]:
        """Sample host and server while the load runs."""
        b = self.bench
        process = b.existing.process
        watched = {"mysqld": process.pid} if process else {}
        where = where_in(b.hosts.db, Path(b.existing.data))
        return sampling(b.hosts.db, self.inputs.folder, Watch(where, watched, Path(b.layer.at)))

    def verify_session(self) -> None:
        """Do nothing: TLS is the server's own."""

    def collect(self) -> str:
        """Return why the server does not answer any more, or ``""``."""
        try:
            query(self.bench.hosts.db, self.bench.existing.argv, "SELECT 1;", _SQL_S)
        except HostError as error:
            return str(error)
        return ""
