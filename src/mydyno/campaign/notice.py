"""A notice on a host that a campaign changes its settings, for other users of that host.

The change records are on the controller; other controllers and users see only this notice.
Nothing is restored from it, and a reboot removes it together with the settings.
"""

import platform
from pathlib import Path

from mydyno.host import Host
from mydyno.journal.register import controller, marked, opened
from mydyno.model import Action, RefusedError

_FOLDER = "/run/mydyno-open"  # only root can make it
_MOST = 1000  # characters of a note that are shown
_POST = """
umask 022; mkdir -p "$1" && cat >"$1/.$2" && mv -f "$1/.$2" "$1/$2"
"""
_WITHDRAW = """
rm -f "$1/.$2"; [ "$(head -c 16 "$1/$2" 2>/dev/null)" = "$3" ] && rm -f "$1/$2"; :
"""
_READ = """
[ "$(stat -c %u "$1" 2>/dev/null)" = 0 ] || exit 0
cd "$1" && for f in *; do [ -f "$f" ] && echo "$f $(head -c 2000 "$f" | tr '\\n' ' ')"; done; :
"""


def post(host: Host, id_: str, name: str, directory: Path) -> None:
    """Write a notice on the host that this campaign may have changed its settings."""
    text = (
        f"{controller()} campaign {name} of {platform.node()} may have changed settings of this "
        f"host; `mydyno rollback {directory}` there restores them (if that machine no longer "
        f"exists, reboot this host, or remove {_FOLDER}/{id_})"
    )
    argv = ("sh", "-c", _POST, "post", _FOLDER, id_)
    host.run(Action(argv, text.encode(errors="replace"))).check()


def withdraw(host: Host, id_: str) -> None:
    """Remove a campaign's notice if it is this machine's, and one left half-written by a kill."""
    if id_:
        host.run(Action(("sh", "-c", _WITHDRAW, "withdraw", _FOLDER, id_, controller())))


def open_campaigns(host: Host, named: str, but: str = "") -> list[str]:
    """Return a line for each campaign, except `but`, with unrestored changes on the host.

    `named` is the host as a spec names it.  A notice of this controller without records belongs to
    a campaign that restored all and was killed before it could remove the notice.
    """
    mine = [one for one in opened(named) if one.moved]
    lines = [one.line for one in mine if one.registered.id != but]
    known = {but, *(one.registered.id for one in mine)}
    shown = host.run(Action(("sh", "-c", _READ, "read", _FOLDER)))
    for line in shown.stdout.decode(errors="replace").splitlines():
        id_, of, text = (*line.split(" ", 2), "", "")[:3]
        if id_ not in known and of != controller():
            lines.append(text.strip()[:_MOST])
    return lines


def refuse_open(host: Host, named: str, directory: Path) -> None:
    """Raise `RefusedError` where another campaign has left its changes on the host."""
    if lines := open_campaigns(host, named, marked(directory)):
        raise RefusedError(
            f"{host.name}: has settings changed by another campaign: {'; '.join(lines)}; restore "
            "them, then run again"
        )
