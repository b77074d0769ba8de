"""Writes the man pages and the shell completions from the commands themselves, below one folder.

``python packaging/man.py FOLDER``, or ``target/share``.  Nothing is typed by hand: a page is what
``--help`` prints.  Commands of plug-ins, such as ``lab boot``, are those of other distributions, and
are left out.  Same source, same bytes.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
ASK = "_MYDYNO_COMPLETE"  # set by a shell that asks for completions; every command is then loaded
SHELLS = {
    "bash": "bash-completion/completions/mydyno",
    "zsh": "zsh/site-functions/_mydyno",
    "fish": "fish/vendor_completions.d/mydyno.fish",
}
PROGRAMS = {
    "mydyno-probe": "sample a host and its MySQL server; digest slow logs",
    "mydyno-disk": "a lab disk with the caps and bursts of a cloud disk, served over FUSE",
    "mydyno-guard": "the part of a lease on the host that it changes",
}


def commands() -> dict[tuple[str, ...], Any]:
    """Return each command of ours by its words; ``()`` is mydyno itself."""
    import typer.main  # noqa: PLC0415 - not needed for the names of the files

    from mydyno.cli import application  # noqa: PLC0415

    os.environ[ASK] = "man"
    top = typer.main.get_command(application(()))
    del os.environ[ASK]
    found: dict[tuple[str, ...], Any] = {}
    waiting = [((), top)]
    while waiting:
        words, command = waiting.pop()
        found[words] = command
        for name, one in getattr(command, "commands", {}).items():
            if hasattr(one, "commands") or one.callback.__module__.startswith("mydyno."):
                waiting.append(((*words, name), one))
    return dict(sorted(found.items()))


def roff(text: str) -> str:
    """Return text as roff that shows it as it is."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")
    return re.sub(r"^(?=\.)", r"\\&", text, flags=re.MULTILINE)


def shown(text: str) -> str:
    """Return lines that keep their breaks."""
    return f".nf\n{roff(text.strip(chr(10)))}\n.fi" if text.strip() else ""


def page(name: str, summary: str, version: str, sections: dict[str, str]) -> str:
    """Return a page of section 1; empty sections are left out."""
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    day = time.strftime("%Y-%m-%d", time.gmtime(epoch)) if epoch else ""
    head = f'.TH "{name.upper()}" "1" "{day}" "mydyno {version}" "User Commands"'
    lines = [head, ".SH NAME", f"{roff(name)} \\- {roff(summary)}"]
    for title, body in sections.items():
        if body:
            lines += [f".SH {title}", body]
    return "\n".join(lines) + "\n"


def context_of(words: tuple[str, ...], command: Any) -> Any:
    """Return the context in which the command line shows a command."""
    from typer import Context  # noqa: PLC0415

    settings = {"help_option_names": ["-h", "--help"], **command.context_settings}
    return Context(command, info_name=" ".join(("mydyno", *words)), **settings)


def parameters(words: tuple[str, ...], command: Any, kind: str) -> Iterator[str]:
    """Yield the entries of a command's arguments or options, as ``--help`` has them."""
    context = context_of(words, command)
    for one in command.get_params(context):
        record = one.get_help_record(context)
        if one.param_type_name == kind and record is not None and record[1] is not None:
            yield f".TP\n.B {roff(record[0])}\n{roff(record[1] or '')}"


def usage(words: tuple[str, ...], command: Any) -> str:
    context = context_of(words, command)
    pieces = command.collect_usage_pieces(context)
    return f".B {roff(context.info_name)}\n{roff(' '.join(pieces))}"


def built(name: str) -> str:
    """Return the path of a program of ours, as mydyno finds it."""
    from mydyno.lab.loop_lab import binary  # noqa: PLC0415
    from mydyno.sample import probe_binary  # noqa: PLC0415

    return probe_binary() if name == "mydyno-probe" else binary()


def help_of(*argv: str) -> str:
    """Return what a program of ours prints as its help."""
    return subprocess.run([*argv, "--help"], capture_output=True, text=True, check=True).stdout


def page_of(
    words: tuple[str, ...], command: Any, every: list[tuple[str, ...]], version: str
) -> str:
    """Return the page of one command of mydyno."""
    below = [one for one in every if len(one) == len(words) + 1 and one[: len(words)] == words]
    rows = "\n".join(
        f".TP\n.BR {roff('-'.join(('mydyno', *one)))} (1)\n{roff(_summary(command.commands[one[-1]]))}"
        for one in below
    )
    near = [words[:-1]] if words else []
    others = [f"mydyno {' '.join(one)}".strip().replace(" ", "-") for one in near]
    passed = help_of(built("mydyno-probe"), "digest") if words == ("digest",) else ""
    epilog = (command.epilog or "").replace("\b", "").strip("\n").partition("\n")
    sections = {
        "SYNOPSIS": usage(words, command),
        "DESCRIPTION": roff(command.help or _summary(command)).replace("\n\n", "\n.PP\n"),
        "ARGUMENTS": "\n".join(parameters(words, command, "argument")),
        "OPTIONS": "\n".join(parameters(words, command, "option")),
        "OPTIONS OF MYDYNO\\-PROBE DIGEST": shown(passed),
        "COMMANDS": rows,
        epilog[0].rstrip(":").upper(): shown(epilog[2]),
        "SEE ALSO": ",\n".join(f".BR {roff(one)} (1)" for one in [*others, *PROGRAMS]).replace(
            ",\n.BR", " ,\n.BR"
        ),
    }
    return page("-".join(("mydyno", *words)), _summary(command), version, sections)


def _summary(command: Any) -> str:
    text = command.short_help or (command.help or "").partition("\n")[0]
    return text.strip().rstrip(".")


def program_page(name: str, version: str) -> str:
    """Return the page of a program that is built from Rust, with the help of its commands."""
    program = built(name)
    top = help_of(program)
    listed = top.partition("Commands:\n")[2].partition("\n\n")[0]
    below = [line.split()[0] for line in listed.splitlines() if line.strip()]
    sections = {"DESCRIPTION": shown(top)}
    sections |= {roff(one.upper()): shown(help_of(program, one)) for one in below if one != "help"}
    return page(name, PROGRAMS[name], version, sections | {"SEE ALSO": ".BR mydyno (1)"})


def completion(shell: str) -> str:
    """Return the script that completes mydyno in a shell, as ``--show-completion`` prints it."""
    from typer.completion import get_completion_script  # noqa: PLC0415

    script: str = get_completion_script(prog_name="mydyno", complete_var=ASK, shell=shell)
    return script.rstrip() + "\n"


def files() -> dict[str, str]:
    """Return every file by its path below ``share``."""
    from mydyno import __version__  # noqa: PLC0415

    found = commands()
    made = {}
    for words, command in found.items():
        name = "-".join(("mydyno", *words))
        made[f"man/man1/{name}.1"] = page_of(words, command, list(found), __version__)
    for name in PROGRAMS:
        made[f"man/man1/{name}.1"] = program_page(name, __version__)
    return made | {path: completion(shell) for shell, path in SHELLS.items()}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target" / "share"
    for name, text in files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{folder}\n")


if __name__ == "__main__":
    main()
