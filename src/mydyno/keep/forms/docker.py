"""An override file of Docker Compose: options, limits, CPUs, quota, environment, sysctls."""

from collections.abc import Mapping, Sequence

from mydyno.keep.forms import systemd
from mydyno.keep.kept import Form, Kept, KeptFile, scalar
from mydyno.model import SpecError
from mydyno.stack.known import switch

_FILE = "compose.mydyno.yml"
# Of net.ipv4, what belongs to no network namespace; of net.core a container has one.
_OF_HOST = {"tcp_mem", "tcp_low_latency", "tcp_max_orphans", "udp_mem", "fib_sync_mem"}


def carries(key: str) -> bool:
    """Return whether a container can have it of its own."""
    own = ("mysqld.", "limits.", "cpus.", "cgroup.", "alloc.", "env.", "kernel.sysctl.net.ipv4.")
    name = key.rpartition(".")[2]
    here = key.startswith(own) and name not in _OF_HOST and not name.startswith("inet_peer_")
    return here or key == "kernel.sysctl.net.core.somaxconn"


def _write(kept: Kept) -> Sequence[KeptFile]:
    lines = ["services:", "  db:"]
    options = kept.of("mysqld")
    if options:  # Compose replaces a list, it does not add to it
        lines += ["    # add the options of the service's own command", "    command:"]
    words = (f"--{switch(name, value) or f'{name}={value}'}" for name, value in options.items())
    lines += [f"      - {scalar(word)}" for word in words]
    limits = kept.of("limits")
    lines += ["    ulimits:"] if limits else []
    lines += [f"      {n}: {'-1' if v == 'unlimited' else v}" for n, v in limits.items()]
    lines += [f"    cpuset: {scalar(cpus)}" for cpus in kept.of("cpus").values()]
    lines += _quota(kept.of("cgroup"))
    sysctls = kept.of("kernel.sysctl")
    lines += ["    sysctls:"] if sysctls else []
    lines += [f"      {name}: {scalar(value)}" for name, value in sysctls.items()]
    environment = systemd.environment(kept)
    lines += ["    environment:"] if environment else []
    lines += [f"      {name}: {scalar(value)}" for name, value in environment.items()]
    # Compose takes $NAME for a variable of the host that runs it
    plain = [line.replace("$", "$$") for line in lines]
    return [KeptFile(_FILE, "\n".join([*kept.heading(), *plain]) + "\n")]


def _quota(asked: Mapping[str, str]) -> list[str]:
    """Return the quota as Compose takes it, in microseconds of each period."""
    if "cpu" not in asked:
        return []
    try:
        period_us = 1000 * int(asked.get("period", "100ms").removesuffix("ms"))
        quota_us = round(float(asked["cpu"].removesuffix("%")) / 100 * period_us)
    except ValueError as error:
        raise SpecError(f"cgroup: {dict(asked)}: write cpu as 150% and period as 100ms") from error
    return [f"    cpu_period: {period_us}", f"    cpu_quota: {quota_us}"]


def _inverse(_: Kept) -> Sequence[KeptFile]:
    return [KeptFile(_FILE, "# empty on purpose: the service is as it was\nservices:\n  db: {}\n")]


FORM = Form(
    "docker",
    "an override file of Docker Compose",
    carries,
    _write,
    _inverse,
    "rename db to your service, add its own command, then "
    f"docker compose -f compose.yml -f {_FILE} up -d",
)
