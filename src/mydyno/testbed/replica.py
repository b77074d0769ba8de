"""A replica of the private server, on its host: whether it keeps up with a load.

Before each trial it gets a copy of the data set and the treatment's settings, and follows the
server from there.  Its data are on the filesystem of the server's, and it uses the same CPUs.  An
event in the server writes the time ten times a second, and another one in the replica compares
what has arrived with the clock; no client asks while the load runs.
"""

import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from mydyno.host.files import make
from mydyno.model import Action, HostError
from mydyno.sample.lag import FILE
from mydyno.server import Instance
from mydyno.server.client import NATIVE_PLUGIN, USERS, create_user, query
from mydyno.server.initialise import install, password_of
from mydyno.server.instance import Added
from mydyno.server.place import LOOPBACK, client_options

HOME, DATA = "replica", "replica-data"
_USER = "mydyno_replica"
_LOGGED = (("log_bin", "mydyno-bin"), ("server_id", "1"))
_FOLLOWING = (("server_id", "2"), ("relay_log", "mydyno-relay"))
_COPY_S = 3600.0
_ARRIVES_S, _RETRIES_S = 60.0, 5.0  # the first event of the server; an error may pass by itself
_ANSWER_S, _POLL_S = 30.0, 0.1
_ERRORS = ("Last_IO_Error:", "Last_SQL_Error:", "Last_Error:")
_STALE = "mydyno-*", "auto.cnf", "*-bin.*", "binlog.*"  # of the server itself, not of its data
_BEAT = """
CREATE DATABASE IF NOT EXISTS mydyno_beat;
CREATE TABLE IF NOT EXISTS mydyno_beat.beat (id TINYINT PRIMARY KEY, at DATETIME(6))
  ENGINE = InnoDB;
REPLACE INTO mydyno_beat.beat VALUES (1, NOW(6));
DROP EVENT IF EXISTS mydyno_beat.beats;
SET GLOBAL event_scheduler = ON;
DELIMITER //
CREATE EVENT mydyno_beat.beats ON SCHEDULE AT CURRENT_TIMESTAMP DO
WHILE TRUE DO
  UPDATE mydyno_beat.beat SET at = NOW(6);
  DO SLEEP(0.1);
END WHILE//
"""
_SEEN = """
CREATE DATABASE mydyno_lag;
CREATE TABLE mydyno_lag.seen (at DATETIME(6), behind DOUBLE) ENGINE = InnoDB;
SET GLOBAL event_scheduler = ON;
DELIMITER //
CREATE EVENT mydyno_lag.look ON SCHEDULE AT CURRENT_TIMESTAMP DO
WHILE TRUE DO
  INSERT INTO mydyno_lag.seen
    SELECT NOW(6), TIMESTAMPDIFF(MICROSECOND, at, NOW(6)) / 1e6 FROM mydyno_beat.beat;
  DO SLEEP(0.25);
END WHILE//
"""
_PORT = "SELECT @@port"
_THERE = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mydyno_beat'"
_ARRIVED = "SELECT 1 FROM mydyno_beat.beat"
_READ = (
    "SELECT TIMESTAMPDIFF(MICROSECOND, at, NOW(6)) / 1e6, behind FROM mydyno_lag.seen ORDER BY at"
)


@dataclass(slots=True)
class Replica:
    """The `instance` that follows the `source`; both live as long as their campaign."""

    source: Instance
    instance: Instance

    def announce(self) -> None:
        """Have the source log, and listen, from its next start on."""
        self.source.added = Added(_LOGGED, listens=True)
        self.instance.added = Added(_FOLLOWING)

    def copy(self) -> None:
        """Copy the data of the stopped source, without what makes a server itself."""
        host, ours, theirs = self.source.host, self.instance.place, self.source.place
        host.run(Action(("rm", "-rf", "--", str(ours.data))), timeout_s=_COPY_S).check()
        make(host, ours.data, "700", owner=self.instance.identity.owner)
        # by the server's user: in its folder root would follow what it has put there
        drop = self.instance.identity.drop()
        copying = ("cp", "-a", "--reflink=auto", "-T", str(theirs.data), str(ours.data))
        host.run(Action((*drop, *copying)), timeout_s=_COPY_S).check()
        names = [word for name in _STALE for word in ("-o", "-name", name)][1:]
        found = ("find", str(ours.data), "-maxdepth", "1", "-type", "f", "(", *names, ")")
        host.run(Action((*drop, *found, "-delete"))).check()
        password = password_of(host, theirs.admin)
        install(host, ours.admin, "600", client_options("root", password, ours.socket))

    def follow(self) -> None:
        """Start the replica with the running source's settings; return once it follows.

        Raise `HostError` with the replica's words where it does not.
        """
        position = self.source.query(self.source.build.quirks.replication.position)
        if not position:
            raise HostError("stack.replica: the server has no binary log; remove skip_log_bin")
        self._settings()
        self.instance.start()
        password = secrets.token_hex(16)
        self.source.query(self._account(password))
        self.source.query(_BEAT)
        host, port = self.source.endpoint.tcp_host or LOOPBACK, self.source.query(_PORT)[0][0]
        file, at, *_ = position[0]
        follow = self.source.build.quirks.replication.follow.format(
            host=host, port=port, user=_USER, password=password, file=file, at=at
        )
        self.instance.query(follow)
        self._wait()
        self.instance.query(_SEEN)

    def save(self, folder: Path) -> None:
        """Write how far the replica was behind into a trial's folder: seconds ago, seconds behind.

        Raise `HostError` where it has stopped.
        """
        if wrong := self._errors():
            raise HostError(f"stack.replica: {wrong}")
        rows = [[float(ago), float(behind)] for ago, behind in self.instance.query(_READ)]
        (folder / FILE).write_text(json.dumps(rows), encoding="ascii")

    def stop(self) -> None:
        """Stop the replica; its data are discarded with the next copy."""
        self.instance.stop(grace_s=0.0)

    def _settings(self) -> None:
        """Give the replica the source's settings; where it listens is its own."""
        host, ours, theirs = self.source.host, self.instance.place, self.source.place
        owned = host.run(Action(("cat", str(theirs.owned)))).check().stdout
        install(host, ours.owned, "640", owned.decode())
        clear = ("find", str(ours.launch), "-mindepth", "1", "-delete")
        host.run(Action(clear)).check()
        host.run(Action(("cp", "-a", "-T", str(theirs.launch), str(ours.launch)))).check()
        host.run(Action(("rm", "-rf", "--", str(ours.launch / "net")))).check()

    def _account(self, password: str) -> str:
        """Return the SQL that gives the source an account for its replica."""
        who, native = f"'{_USER}'@'%'", bool(self.source.query(NATIVE_PLUGIN))
        there = any(user == _USER for user, _ in self.source.query(USERS))
        lines = [f"DROP USER {who};"] if there else []
        lines += [create_user(self.source.build, who, password, native=native)]
        lines += [f"GRANT REPLICATION SLAVE ON *.* TO {who};", "FLUSH PRIVILEGES;"]
        return "\n".join(["SET sql_log_bin = 0;", *lines]) + "\n"

    def _wait(self) -> None:
        """Return once an event of the source has arrived."""
        began_s, wrong = time.monotonic(), ""
        while (spent_s := time.monotonic() - began_s) < _ARRIVES_S:
            if self.instance.query(_THERE) and self.instance.query(_ARRIVED):
                return
            wrong = self._errors()
            if wrong and spent_s > _RETRIES_S:
                break
            time.sleep(_POLL_S)
        raise HostError(
            "stack.replica: nothing arrives from the server; "
            f"the replica reports {wrong or f'no error within {_ARRIVES_S:g} s'}"
        )

    def _errors(self) -> str:
        """Return why the replica has stopped, in its own words, or ``""``."""
        argv = (*self.instance.client, "--vertical", "--column-names")
        statement = self.instance.build.quirks.look.replica
        rows = query(self.instance.host, argv, statement, _ANSWER_S)
        lines = [" ".join(row).strip() for row in rows]
        found = [line.partition(":")[2].strip() for line in lines if line.startswith(_ERRORS)]
        return " | ".join(dict.fromkeys(filter(None, found)))
