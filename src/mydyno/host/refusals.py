"""What ssh says when it cannot connect, turned into an error that names the next step."""

import re

from mydyno.model import HostError, MydynoError, RefusedError

_SHOWN = 300
_CHANGED = "HOST IDENTIFICATION HAS CHANGED"
_KEY = re.compile(r"host key verification failed|no .* host key is known|REVOKED", re.IGNORECASE)
_STEPS = (
    (
        re.compile(r"permission denied|too many authentication|no such identity", re.IGNORECASE),
        "authentication failed; load the key into ssh-agent, or name it in ~/.ssh/config",
    ),
    (
        re.compile(r"could not resolve|name or service not known", re.IGNORECASE),
        "its name is not known: check its spelling, or write an alias into ~/.ssh/config",
    ),
    (
        re.compile(r"connection refused", re.IGNORECASE),
        "nobody listens there: check the port, and that sshd runs",
    ),
    (
        re.compile(r"no route to host|network is unreachable|timed out", re.IGNORECASE),
        "it cannot be reached: check address, route and firewall, or name a ProxyJump",
    ),
    (
        re.compile(r"not allowed|administratively prohibited|stdio forwarding failed"),
        "the jump host does not let us through: check its AllowTcpForwarding",
    ),
)
_NOISE = re.compile(r"^(@+|\s*|.*UNKNOWN port 65535.*)$")


def refusal(name: str, words: bytes) -> MydynoError:
    """Return the error for ssh's last words, `RefusedError` where a host's key is not the known."""
    text = words.decode(errors="replace")
    if _CHANGED in text:
        return RefusedError(
            f"{name}: its host key is not the one in known_hosts: another machine, or somebody "
            "between. Find out why; only then remove the old one with `ssh-keygen -R`"
        )
    if _KEY.search(text):
        return RefusedError(
            f"{name}: its host key is not known here: connect once with ssh yourself, compare "
            f"the fingerprint, and accept it ({last(text)})"
        )
    step = next((told for pattern, told in _STEPS if pattern.search(text)), "ssh cannot connect")
    return HostError(f"{name}: {step} ({last(text)})")


def last(text: str) -> str:
    """Return the last line that tells something."""
    lines = [line.strip() for line in text.splitlines() if not _NOISE.match(line)]
    return (lines or ["ssh said nothing"])[-1][:_SHOWN]
