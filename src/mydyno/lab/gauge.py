"""Measuring a bare block device with fio."""

from typing import Any

import msgspec

from mydyno.host import Host
from mydyno.model import Action

_RAMP_S = 1  # in which the credits earned while fio started are spent


def random_rate(host: Host, device: str, rw: str, seconds: int) -> float:
    """Return 16 KiB I/Os per second at depth 32; `rw` is ``randread`` or ``randwrite``."""
    job = _job(device, rw, seconds, "--bs=16k", "--iodepth=32")
    return _reply(host, job, seconds, "iops", rw)


def sequential_rate(host: Host, device: str, seconds: int) -> float:
    """Return bytes per second of sequential reads of 256 KiB, one I/O of any cloud, at depth 16."""
    job = _job(device, "read", seconds, "--bs=256k", "--iodepth=16")
    return _reply(host, job, seconds, "bw_bytes", "read")


def parse(raw: bytes, rw: str, field: str) -> float:
    """Return one number of the first job in fio's JSON, which notes may precede."""
    reply: dict[str, Any] = msgspec.json.decode(raw[raw.index(b"{") :], type=dict[str, Any])
    return float(reply["jobs"][0]["write" if "write" in rw else "read"][field])


def _job(device: str, rw: str, seconds: int, *more: str) -> Action:
    fixed = ("fio", "--name=gauge", f"--filename={device}", f"--rw={rw}", "--direct=1")
    timing = ("--time_based", f"--runtime={seconds}", f"--ramp_time={_RAMP_S}")
    engine = ("--ioengine=libaio", "--zero_buffers", "--randrepeat=0", "--output-format=json")
    safety = () if "write" in rw else ("--readonly",)
    return Action((*fixed, *timing, *engine, *safety, *more))


def _reply(host: Host, job: Action, seconds: int, field: str, rw: str) -> float:
    done = host.run(job, timeout_s=60.0 + seconds).check()
    return parse(done.stdout, rw, field)
