"""Measuring a bare block device with fio."""

from typing import Any

import msgspec

from mydyno.host import Host
from mydyno.model import Action

_SEQUENTIAL = 256 * 1024  # bytes
_RAMP_S = 1  # in which the credits earned while fio started are spent


def random_rate(host: Host, device: str, rw: str, seconds: int) -> float:
    """Return 16 KiB I/Os per second at depth 32; `rw` is ``randread`` or ``randwrite``."""
    return _rate(host, _job(device, rw, seconds, "--bs=16k", "--iodepth=32"), seconds, rw)


def sequential_rate(host: Host, device: str, seconds: int) -> float:
    """Return bytes per second of sequential reads of 256 KiB, one I/O of any cloud, at depth 16."""
    job = _job(device, "read", seconds, "--bs=256k", "--iodepth=16")
    return _rate(host, job, seconds, "read") * _SEQUENTIAL


def parse(raw: bytes, rw: str) -> float:
    """Return I/Os per second of the first job in fio's JSON, which notes may precede.

    After a ramp fio counts what was issued in the window, over a runtime that goes on until the
    last of it is answered, one latency later: at depth 32 and 1100 IOPS that is 29 ms too long.
    """
    reply: dict[str, Any] = msgspec.json.decode(raw[raw.index(b"{") :], type=dict[str, Any])
    done = reply["jobs"][0]["write" if "write" in rw else "read"]
    window_s = done["runtime"] / 1e3 - done["lat_ns"]["mean"] / 1e9
    return float(done["total_ios"] / window_s) if done["total_ios"] else 0.0


def _job(device: str, rw: str, seconds: int, *more: str) -> Action:
    fixed = ("fio", "--name=gauge", f"--filename={device}", f"--rw={rw}", "--direct=1")
    timing = ("--time_based", f"--runtime={seconds}", f"--ramp_time={_RAMP_S}")
    engine = ("--ioengine=libaio", "--zero_buffers", "--randrepeat=0", "--output-format=json")
    safety = () if "write" in rw else ("--readonly",)
    return Action((*fixed, *timing, *engine, *safety, *more))


def _rate(host: Host, job: Action, seconds: int, rw: str) -> float:
    return parse(host.run(job, timeout_s=60.0 + seconds).check().stdout, rw)
