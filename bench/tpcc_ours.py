"""Our TPC-C under the bench: loaded, run, and its checks on any tables of the same columns."""

import resource
import time
from dataclasses import dataclass

from mydyno.host import Local
from mydyno.loads import Target
from mydyno.loads.protocol import WorkloadInfo
from mydyno.loads.sysbench_tpcc import SysbenchTpcc, TpccParams
from mydyno.model import HostError
from mydyno.server import Instance
from probe_process import cpu_ns

HOST = Local()
HOURS_S = 4 * 3600.0
TABLES = ("item", "warehouse", "district", "stock", "customer", "history", "orders", "new_order",
          "order_line")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Cost:
    """What a piece of work took: by the clock, in the server, and in the tool."""

    wall_s: float
    server_s: float
    tool_s: float


class Meter:
    """Times commands that run to their end beside one server."""

    def __init__(self, instance: Instance) -> None:
        self.pid = instance.pid
        self.began = self._now()

    def _now(self) -> Cost:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        server_s = cpu_ns(self.pid) / 1e9
        return Cost(time.monotonic(), server_s, used.ru_utime + used.ru_stime)

    def cost(self) -> Cost:
        """Return what was used since this was made."""
        now, then = self._now(), self.began
        return Cost(
            now.wall_s - then.wall_s, now.server_s - then.server_s, now.tool_s - then.tool_s
        )


def cell(warehouses: int, threads: int) -> SysbenchTpcc:
    """Return our load of one set of warehouses."""
    params = TpccParams(threads, scale=warehouses, check=warehouses)
    return SysbenchTpcc(WorkloadInfo("bench", needs_server=True), params, threads)


def load(ours: SysbenchTpcc, target: Target, instance: Instance) -> dict[str, Cost]:
    """Load the data and return what each step took."""
    costs = {}
    for action in ours.prepare(target):
        meter = Meter(instance)
        HOST.run(action, timeout_s=HOURS_S).check()
        costs[action.argv[-1]] = meter.cost()
    return costs


def rates(ours: SysbenchTpcc, target: Target, seconds: int, seed: int) -> tuple[float, float]:
    """Run the load and return its New-Orders and all transactions per second."""
    running = HOST.start(ours.run(target, seed, {}))
    orders = every = at_s = 0.0
    try:
        for interval in ours.parse(running.lines()):
            span_s, at_s = interval.t_s - at_s, interval.t_s
            orders += interval.values["new_orders"] * span_s
            every += interval.values["tps"] * span_s
            if at_s >= seconds:
                break
    finally:
        running.stop()
    return orders / at_s, every / at_s


def checked(ours: SysbenchTpcc, target: Target) -> str:
    """Return whether all conditions hold, or the first that does not."""
    try:
        for action in ours.verify(target, 0):
            HOST.run(action, timeout_s=HOURS_S).check()
    except HostError as error:
        return str(error)
    return "hold"


def counts(instance: Instance, database: str, suffix: str) -> dict[str, int]:
    """Return the number of rows in each table."""
    asked = {t: f"SELECT COUNT(*) FROM {database}.{t}{suffix}" for t in TABLES}  # noqa: S608 - ours
    return {t: int(instance.query(sql, timeout_s=HOURS_S)[0][0]) for t, sql in asked.items()}
