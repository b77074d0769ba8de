"""Two playbooks of ansible.builtin modules: apply.yml and revert.yml."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from mydyno.keep.forms import native
from mydyno.keep.kept import Form, Kept, KeptFile, block, scalar


def _play(kept: Kept, files: Sequence[KeptFile], title: str) -> str:
    lines = ["---", *kept.heading(), f"- name: {title}", "  hosts: all", "  become: true"]
    lines.append("  tasks:")
    handlers: dict[str, tuple[str, ...]] = {}
    for file in files:
        folder = str(PurePosixPath(file.path).parent)
        lines += [
            f"    - name: Create {folder}",
            "      ansible.builtin.file:",
            f"        path: {folder}",
            "        state: directory",
            '        mode: "0755"',
            f"    - name: Write {file.path}",
            "      ansible.builtin.copy:",
            f"        dest: {file.path}",
            '        mode: "0644"',
            "        content: !unsafe |",  # values may look like templates, which run commands
            *block(file.text, 10),
        ]
        notified = _handlers(kept, file)
        handlers |= notified
        lines += ["      notify:", *(f"        - {name}" for name in notified)] if notified else []
    lines += ["  handlers:"] if handlers else []
    for name, argv in sorted(handlers.items(), key=lambda one: one[0].startswith("Restart")):
        lines += _handler(name, argv)
    return "\n".join(lines) + "\n"


def _handlers(kept: Kept, file: KeptFile) -> dict[str, tuple[str, ...]]:
    """Return what must follow a changed file: names of handlers to their commands."""
    found = {f"Reload {file.path}": file.reload} if file.reload else {}
    if file.path.startswith((kept.include, "/etc/systemd/")):
        found[f"Restart {kept.unit}"] = ()
    return found


def _handler(name: str, argv: tuple[str, ...]) -> list[str]:
    if not argv:
        unit = name.removeprefix("Restart ")
        module = ["      ansible.builtin.service:", f"        name: {unit}"]
        return [f"    - name: {name}", *module, "        state: restarted"]
    # the module for systemd has one name up to ansible-core 2.14 and another from 2.15 on
    known = " # noqa: command-instead-of-module" if argv[0] == "systemctl" else ""
    return [
        f"    - name: {name}{known}",
        "      ansible.builtin.command:",
        "        argv:",
        *(f"          - {scalar(word)}" for word in argv),
        "      changed_when: true",
    ]


def _write(kept: Kept) -> Sequence[KeptFile]:
    return [KeptFile("apply.yml", _play(kept, native.write(kept), "Keep what mydyno measured"))]


def _inverse(kept: Kept) -> Sequence[KeptFile]:
    return [KeptFile("revert.yml", _play(kept, native.inverse(kept), "Revert what mydyno kept"))]


FORM = Form(
    "ansible",
    "two playbooks",
    native.carries,
    _write,
    _inverse,
    "ansible-playbook -i INVENTORY --limit HOST apply.yml; it restarts the server where that is "
    "needed",
    native.refusal,
)
