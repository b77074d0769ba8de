"""Throughput of a lab link, measured with iperf3 in both directions."""

from dataclasses import dataclass

import msgspec

from mydyno.host import Running
from mydyno.lab.lab_link import LabLink
from mydyno.model import Action, HostError

_FRAME = 1514 / 1448  # bytes on the wire for bytes of payload: Ethernet, IPv4, TCP with timestamps
_RAMP_S = 1  # of slow start and a first burst, left out
_MEASURED_S = 2
_SPARE_S = 20.0
_PORT = 5201
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Throughput:
    """Bytes per second on the wire, to the load and from it."""

    to_load: float
    from_load: float


class _Rate(msgspec.Struct, frozen=True):
    bits_per_second: float


class _End(msgspec.Struct, frozen=True):
    sum_received: _Rate | msgspec.UnsetType = msgspec.UNSET


class _Report(msgspec.Struct, frozen=True):
    end: _End = _End()
    error: str = ""


def measure_throughput(link: LabLink) -> Throughput:
    """Return the throughput in both directions, measured one after the other in six seconds.

    Raises `HostError` where no traffic passes, for example because of a firewall.
    """
    listen = ("iperf3", "--server", "--bind", link.state.address, "--port", str(_PORT))
    server = link.host.start(Action(("setpriv", "--pdeathsig", "KILL", *listen)))
    try:
        return Throughput(_one(link, server, "--reverse"), _one(link, server))
    finally:
        server.stop()
        for _ in server.lines():
            pass  # reading to the end closes the pipe


def _one(link: LabLink, server: Running, *way: str) -> float:
    argv = ("iperf3", "--json", "--client", link.state.address, "--port", str(_PORT), *way)
    timing = ("--omit", str(_RAMP_S), "--time", str(_MEASURED_S), "--connect-timeout", "3000")
    problem = ""
    for _ in range(_TRIES):  # it may not listen yet
        done = link.inside.run(Action((*argv, *timing)), timeout_s=_SPARE_S)
        report = parse(done.stdout)
        if isinstance(report, float):
            return report
        problem = report
        if server.returncode() is not None:
            break
    raise HostError(
        f"link {link.state.link}: no traffic passes ({problem}); allow {link.state.load_address} "
        "on "
        f"{link.state.device} in the host's firewall"
    )


def parse(raw: bytes) -> float | str:
    """Return the bytes per second on the wire in a report, or its error message."""
    try:
        report = msgspec.json.decode(raw, type=_Report)
    except msgspec.DecodeError as error:
        return f"iperf3 printed no report: {error}"
    received = report.end.sum_received
    if isinstance(received, msgspec.UnsetType) or report.error:
        return report.error or "iperf3 reported no end"
    return received.bits_per_second / 8 * _FRAME
