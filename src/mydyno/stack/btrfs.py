"""What a mounted btrfs is made of: the profiles of its data and metadata over its devices."""

import re

from mydyno.model import Action, HostError, Probe, Settings

_LINE = re.compile(r"(?P<kind>Data|System|Metadata), (?P<profile>\w+): total=\d+, used=\d+")


def profiles(where: str) -> Probe[Settings]:
    """Return the probe for the profiles: ``data``, ``metadata``, ``system`` to ``raid10``."""
    return Probe(Action(("btrfs", "filesystem", "df", "--raw", where)), parse)


def parse(raw: bytes) -> Settings:
    """Return the profiles; where a conversion was cut short there are two, joined by a plus.

    Raise `HostError` for a reply without data profiles.
    """
    found: dict[str, list[str]] = {}
    for line in _LINE.finditer(raw.decode(errors="replace")):
        found.setdefault(line["kind"].lower(), []).append(line["profile"].lower())
    if "data" not in found:
        raise HostError(
            f"btrfs filesystem df: no profiles in {raw[:80]!r}; check the version of btrfs-progs"
        )
    return {kind: "+".join(sorted(set(names))) for kind, names in found.items()}
