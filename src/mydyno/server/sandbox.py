"""A mount namespace in which a server can write to its own folders only.

The dictionary of a copied data directory may name files of the original by their absolute paths
(DATA DIRECTORY, general and undo tablespaces, redo); a server would write into them.
"""

from collections.abc import Sequence
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, RefusedError

# Arguments: how many folders stay writable, these, how many are hidden, these, the command.
# All mounts there are become read-only, the writable folders are mounted on themselves before
# that; kernel filesystems hold no data and may refuse.  What is still writable at the end is named.
_SCRIPT = r"""
set -eu
mount --make-rprivate /
before=$(cut -d' ' -f5,6 /proc/self/mountinfo)
keep="
"
n=$1; shift
while [ "$n" -gt 0 ]; do mount --bind -- "$1" "$1"; keep="$keep$1
"; shift; n=$((n - 1)); done
kept() { case "$keep" in *"
$1
"*) return 0;; *) return 1;; esac; }
while read -r point options; do
    point=$(printf '%b' "$point")
    kept "$point" && continue
    case "$options" in rw*) options="ro${options#rw}";; esac
    mount --options-mode ignore -o "remount,bind,$options" "$point" 2>/dev/null || :
done <<END
$before
END
n=$1; shift
while [ "$n" -gt 0 ]; do
    [ ! -d "$1" ] || mount -t tmpfs -o ro,nosuid,nodev,noexec,size=4k,mode=000 none "$1"
    shift; n=$((n - 1))
done
# of several mounts at one place only the last is seen
left=$(awk '{ point = $5; how[point] = $6; sub(/.* - /, ""); kind[point] = $1 }
    END { for (p in how) if (how[p] ~ /^rw/) print kind[p], p }' /proc/self/mountinfo)
while read -r kind point; do
    case "$kind" in
    "" | proc | sysfs | cgroup | cgroup2 | devpts | mqueue | debugfs | tracefs | bpf) ;;
    securityfs | pstore | fusectl | configfs | hugetlbfs | efivarfs | nsfs | binfmt_misc) ;;
    autofs) ;;
    *) kept "$(printf '%b' "$point")" && continue
       echo "mydyno: $point cannot be made read-only for the copy" >&2; exit 97;;
    esac
done <<END
$left
END
exec "$@"
"""


def wrapped(
    argv: Sequence[str], writable: Sequence[Path], hidden: Sequence[Path], *, root: bool
) -> tuple[str, ...]:
    """Return the command that runs `argv` where only `writable` can be written to.

    `hidden` folders look empty.  Without `root` it takes a user namespace.
    """
    alone: tuple[str, ...] = ("unshare", "--mount", "--propagation", "private")
    if not root:
        alone = ("unshare", "--user", "--map-current-user", "--keep-caps", *alone[1:])
        argv = ("setpriv", "--ambient-caps=-all", "--inh-caps=-all", *argv)
    words = (str(len(writable)), *map(str, writable), str(len(hidden)), *map(str, hidden))
    return (*alone, "sh", "-c", _SCRIPT, "sandbox", *words, *argv)


def refuse_unavailable(host: Host, *, root: bool) -> None:
    """Raise `RefusedError` where the host lets us make no such namespace."""
    done = host.run(Action(wrapped(("true",), (), (), root=root)))
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise RefusedError(
            f"stack.data: {host.name}: no mount namespace can be made ({words}), so a copy could "
            "write into the files of the original; run as root, or allow user namespaces"
        )
