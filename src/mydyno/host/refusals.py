"""Errors of ssh when it cannot connect, each with its next step."""

import re

from mydyno.model import HostError, MydynoError, RefusedError

_SHOWN = 300
_CHANGED = "HOST IDENTIFICATION HAS CHANGED"
_KEY = re.compile(r"host key verification failed|no .* host key is known|REVOKED", re.IGNORECASE)
_STEPS = (
    (
        re.compile(r"permission denied|too many authentication|no such identity", re.IGNORECASE),
        "authentication failed; load the key into ssh-agent, or set IdentityFile in ~/.ssh/config",
    ),
    (
        re.compile(r"could not resolve|name or service not known", re.IGNORECASE),
        "host name not found; check its spelling, or add an alias to ~/.ssh/config",
    ),
    (
        re.compile(r"connection refused", re.IGNORECASE),
        "connection refused; check the port, and that sshd is running",
    ),
    (
        re.compile(r"no route to host|network is unreachable|timed out", re.IGNORECASE),
        "host unreachable; check address, route and firewall, or set a ProxyJump",
    ),
    (
        re.compile(r"not allowed|administratively prohibited|stdio forwarding failed"),
        "the jump host refused forwarding; check its AllowTcpForwarding",
    ),
)
_NOISE = re.compile(r"^(@+|\s*|.*UNKNOWN port 65535.*)$")


def refusal(name: str, words: bytes) -> MydynoError:
    """Return the error for ssh's error output: `RefusedError` for an unknown host key."""
    text = words.decode(errors="replace")
    if _CHANGED in text:
        return RefusedError(
            f"{name}: host key differs from known_hosts: another machine, or a man in the middle; "
            "find out why, and only then remove the old key with `ssh-keygen -R`"
        )
    if _KEY.search(text):
        return RefusedError(
            f"{name}: host key unknown; connect once with ssh, compare the fingerprint, and accept "
            f"it ({last(text)})"
        )
    steps = (step for pattern, step in _STEPS if pattern.search(text))
    step = next(steps, "ssh cannot connect; try the same with ssh -v")
    return HostError(f"{name}: {step} ({last(text)})")


def last(text: str) -> str:
    """Return the last meaningful line."""
    lines = [line.strip() for line in text.splitlines() if not _NOISE.match(line)]
    return (lines or ["ssh printed nothing"])[-1][:_SHOWN]
