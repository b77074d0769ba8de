"""Whether access times behave as the mount options require, tested on a temporary file."""

from pathlib import Path

from mydyno.model import Action, Probe

_FILE = ".mydyno-atime"
_LONG_AGO = "2001-01-01"  # relatime also moves a time that is older than a day
_TICK_S = "0.05"  # the kernel stamps files by its tick, which is at most 10 ms
_WORDS = {
    "noatime": "noatime",
    "relatime": "relatime",
    "atime": "relatime",  # what the kernel makes of it since 2.6.30
    "strictatime": "strictatime",
}


def wanted(options: str) -> str:
    """Return what mount options ask of access times, or ``""``: the last word decides."""
    asked = [_WORDS[option] for option in options.split(",") if option in _WORDS]
    return asked[-1] if asked else ""


def probe(where: str) -> Probe[str]:
    """Return the probe of how a mounted folder keeps access times, asked by reading a file there.

    A file is given an old access time and read twice: `noatime` leaves the time alone, `relatime`
    moves it once, since it was older than the change of the file, `strictatime` moves it twice.
    ``find`` is there to do it all in one command; it removes the file whatever happened before.
    """
    file = str(Path(where) / _FILE)
    print_time = ("stat", "--format=%.9X", file)
    read = ("cksum", file)
    steps = (
        ("install", "-m", "600", "/proc/version", file),
        ("touch", "-a", "-d", _LONG_AGO, file),
        *(print_time, ("sleep", _TICK_S), read, print_time, ("sleep", _TICK_S), read, print_time),
    )
    found = [word for step in steps for word in ("-exec", *step, ";")]
    removed = (",", "-exec", "rm", "-f", file, ";")
    return Probe(Action(("find", where, "-maxdepth", "0", "(", *found, ")", *removed)), parse)


def parse(raw: bytes) -> str:
    """Return `noatime`, `relatime` or `strictatime`; raise `ValueError` for another reply."""
    lines = raw.decode(errors="replace").splitlines()
    times = [line for line in lines if " " not in line]  # the others are sums of what was read
    if len(times) != 3:  # noqa: PLR2004 - before, between and after two reads
        raise ValueError(f"no three access times: {raw[:200]!r}")
    first, second, third = times
    if first == second == third:
        return "noatime"
    return "relatime" if second == third else "strictatime"
