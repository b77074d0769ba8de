"""User data of cloud-init: files, and the commands that load them."""

from collections.abc import Sequence

from mydyno.keep.forms import native
from mydyno.keep.kept import Form, Kept, KeptFile, block, scalar


def _data(kept: Kept, files: Sequence[KeptFile]) -> str:
    lines = ["#cloud-config", *kept.heading(), "write_files:"]
    for file in files:
        lines += [f"  - path: {file.path}", '    permissions: "0644"', "    content: |"]
        lines += block(file.text, 6)
    commands = [list(file.reload) for file in files if file.reload]
    commands += [["systemctl", "try-restart", kept.unit]] if native.restarts(kept) else []
    lines += ["runcmd:"] if commands else []
    lines += [f"  - {scalar(argv)}" for argv in commands]
    return "\n".join(lines) + "\n"


def _write(kept: Kept) -> Sequence[KeptFile]:
    return [KeptFile("user-data.yml", _data(kept, native.write(kept)))]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    return [KeptFile("user-data-revert.yml", _data(kept, native.inverse(kept)))]


FORM = Form(
    "cloud-init",
    "user data of cloud-init",
    native.carries,
    _write,
    _inverse,
    "give it to a new machine as user data; cloud-init runs it once",
    native.refusal,
)
