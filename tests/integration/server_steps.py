"""Steps of the tests on real private servers: found, made once, given settings, killed."""

import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.host import Local, ask
from mydyno.server import find, prepare
from mydyno.stack import mysqld
from mydyno.stack.alloc import Alloc, installed
from mydyno.stack.cgroup import Cgroup
from mydyno.stack.cpus import Cpus
from mydyno.stack.known.variables import describe
from mydyno.stack.launch_file import Env, Limits, Server
from mydyno.stack.mysqld import Mysqld
from mydyno.stack.net import Net

HOST = Local()
SERVERS = ("mariadb-10.11", "mariadb-11.4.5", "mysql-8.0.33", "mysql-5.6.14")
# what packaging/servers.sh fetches where it can: older ones, and Debian's newest
MORE = (
    *("mysql-5.7.22", "mysql-8.4", "mysql-9.7", "percona-5.6", "percona-5.7"),
    *("mariadb-10.1.23", "mariadb-10.2.11", "mariadb-10.5", "mariadb-10.6", "mariadb-11.8"),
)
MARIADB, PERCONA = SERVERS[0], "percona-5.7"
OWN_CACHE = Path("/var/cache/mydyno" if os.geteuid() == 0 else "~/.cache/mydyno").expanduser()
CACHE = Path(os.environ.get("MYDYNO_CACHE") or OWN_CACHE)
SMALL = {"innodb_buffer_pool_size": "64M", "max_connections": "50"}


def build_of(name):
    if name == MARIADB:
        return find(HOST, "auto")
    basedir = CACHE / "servers" / name
    if name in MORE and not basedir.is_dir():
        pytest.skip(f"{basedir} is missing: packaging/servers.sh could not fetch it")
    if not basedir.is_dir():
        pytest.fail(f"{basedir} is missing: run packaging/servers.sh")
    return find(HOST, str(basedir))


def open_folder():
    """Return a fresh folder that the server's user can pass through, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="mydyno-servers-"))
    folder.chmod(0o755)
    return folder


def layers_of(instance, stock, variables):
    place = instance.place

    def server(name):
        return Server(place.launch / name, place.pid_file, place.options)

    build = instance.build
    client, version = instance.client, build.version
    return SimpleNamespace(
        mysqld=Mysqld(client, place.owned, build.flavour, version, variables, stock),
        alloc=Alloc(server("alloc"), ask(HOST, installed()), build.allocator),
        env=Env(server("env")),
        limits=Limits(server("limits")),
        cpus=Cpus(server("cpus")),
        cgroup=Cgroup(server("cgroup")),
        net=Net(place.launch / "net", client, build.flavour, version, library=build.tls),
    )


class Bench:
    """Servers initialised once, each stopped again when nobody uses it."""

    def __init__(self, folder):
        self.folder = folder
        self.made = {}
        self.used = set()  # names of those whose data may hold what a module put there

    def take(self, name):
        """Return a server with its layers, stopped or as the test before has left it."""
        if name not in self.made:
            build, home = build_of(name), self.folder / name
            home.mkdir(mode=0o755)
            instance = prepare(HOST, build, places=(home / "home", home / "data"))
            instance.initialise()
            self.made[name] = SimpleNamespace(instance=instance, layers=self.learn(instance))
            if name in SERVERS:
                _copy(instance.place.data, home / "kept")
        elif name in self.used:
            data = self.made[name].instance.place.data
            shutil.rmtree(data)
            _copy(self.folder / name / "kept", data)
            self.used.remove(name)
        return self.made[name]

    def renew(self):
        """Stop all: each that is taken again has the data that it was initialised with.

        Servers that one module alone uses are removed.
        """
        for name in self.made.keys() - self.used:
            made = self.made[name]
            made.instance.stop()
            clear(made)
            if name in SERVERS:
                self.used.add(name)
            else:
                made.instance.close()
                shutil.rmtree(self.folder / name)
                del self.made[name]

    @staticmethod
    def learn(instance):
        instance.start()
        stock = ask(HOST, mysqld.observe(instance.client, instance.place.owned))
        build = instance.build
        facts = describe(instance.client, build.flavour, build.version, stock)
        layers = layers_of(instance, stock, ask(HOST, facts))
        instance.stop()
        return layers

    def close(self):
        for made in self.made.values():
            made.instance.close()
        shutil.rmtree(self.folder)


class Running:
    """Servers that run until a module ends, each started when a test first asks for it."""

    def __init__(self, bench):
        self.bench = bench
        self.names = set()

    def take(self, name, transport="socket"):
        """Return a server that runs; the transport is that of its first test."""
        made = self.bench.take(name)
        self.names.add(name)
        if not made.instance.pid:
            write(made.layers.net, {}, {"transport": transport})
            made.instance.start()
        return made.instance

    def stop(self, name):
        """Stop a server, so that it starts again for whoever takes it next."""
        made = self.bench.take(name)
        made.instance.stop()
        clear(made)

    def close(self):
        for name in self.names:
            self.stop(name)


def _copy(folder, place):
    """Copy a stopped server's data with its owner and the gaps in its files."""
    subprocess.run(("cp", "-a", folder, place), check=True)


def clear(made):
    """Leave nothing of a treatment in the instance's files."""
    for layer in vars(made.layers).values():
        write(layer, {"owned": ""}, {})
    place = made.instance.place
    place.owned.write_text("[mysqld]\n")
    for file in place.launch.iterdir():
        file.unlink()


def write(layer, now, want):
    for action in {change.action for change in layer.plan(now, want)}:
        HOST.run(action).check()


def drift(layer, want):
    return [change.key for change in layer.plan(ask(HOST, layer.observe()), want)]


@contextmanager
def applied(made, **wants):
    """Write what the layers want, start, yield the instance once nothing is left to plan; clear."""
    for name, want in wants.items():
        write(
            getattr(made.layers, name), made.layers.mysqld.stock if name == "mysqld" else {}, want
        )
    try:
        made.instance.start()
        for name, want in wants.items():
            assert drift(getattr(made.layers, name), want) == []
        yield made.instance
    finally:
        made.instance.stop()
        clear(made)


def forked(work):
    """Run `work` in a child process and return its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
