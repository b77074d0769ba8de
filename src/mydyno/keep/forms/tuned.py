"""A profile of TuneD: sysctl, huge pages, the disk's scheduler and read-ahead."""

from collections.abc import Sequence

from mydyno.keep.forms import sysctl
from mydyno.keep.kept import NO_DISK, Form, Kept, KeptFile
from mydyno.model import SpecError

_DISK = {"block.scheduler": "elevator", "block.read_ahead_kb": "readahead"}


def carries(key: str) -> bool:
    """Return whether TuneD has a setting for it."""
    return key.startswith("kernel.sysctl.") or key == "kernel.thp" or key in _DISK


def _profile(kept: Kept, values: dict[str, str], title: str) -> str:
    if bad := [f"{key} = {value}" for key, value in values.items() if "${" in value]:
        raise SpecError(
            f"tuned: {bad[0]}: TuneD replaces ${{...}}, even by what a command prints; choose "
            "another --format"
        )
    lines = [*kept.heading(), "[main]", f"summary={title}"]
    sysctls = {k: v for k, v in values.items() if k.startswith("kernel.sysctl.")}
    lines += ["", "[sysctl]"] if sysctls else []
    lines += [f"{k.removeprefix('kernel.sysctl.')}={v}" for k, v in sysctls.items()]
    if "kernel.thp" in values:
        lines += ["", "[vm]", f"transparent_hugepages={values['kernel.thp']}"]
    disk = {_DISK[k]: v for k, v in values.items() if k in _DISK}
    lines += ["", "[disk]", f"devices={kept.target.disk}"] if disk else []
    lines += [f"{key}={value}" for key, value in disk.items()]
    return "\n".join(lines) + "\n"


def _write(kept: Kept) -> Sequence[KeptFile]:
    values = {f"kernel.{k}": v for k, v in kept.of("kernel").items()}
    values |= {f"block.{k}": v for k, v in kept.of("block").items()}
    text = _profile(kept, values, "what mydyno measured to be better")
    return [KeptFile("/etc/tuned/mydyno/tuned.conf", text)]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    others = [key for key in kept.settings if not key.startswith("kernel.sysctl.")]
    values = {key: kept.before(key) for key in others if kept.before(key)}
    values |= {f"kernel.sysctl.{k}": v for k, v in sysctl.first_values(kept).items() if v}
    text = _profile(kept, values, "what was set before")
    return [KeptFile("/etc/tuned/mydyno-before/tuned.conf", text)]


def _refusal(kept: Kept) -> str:
    if any(key in _DISK for key in kept.settings) and not kept.target.disk:
        return NO_DISK
    return ""


FORM = Form(
    "tuned",
    "a profile of TuneD",
    carries,
    _write,
    _inverse,
    "copy it to the host, then tuned-adm profile ACTIVE mydyno, beside the profile that tuned-adm "
    "active prints, and tuned-adm verify",
    _refusal,
)
