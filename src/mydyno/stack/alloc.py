"""The memory allocator of a private server: preloaded, tuned, and verified in its maps."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from mydyno.model import Action, Change, Probe, Settings, SpecError, unknown_value
from mydyno.stack import launch_file
from mydyno.stack.known.allocators import ALLOCATORS, GLIBC, TUNABLES, named_in, tunables_of
from mydyno.stack.launch_file import OWNED, Server, ServerState
from mydyno.stack.protocol import refuse_unknown

_LIST, _TUNABLE = "GLIBC_TUNABLES=", "glibc."
_CACHED = re.compile(r"^\s*(\S+) \(([^)]*)\) => (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Alloc:
    """Keys `library` (glibc, jemalloc, tcmalloc, mimalloc) and `tunables`.

    `libraries` maps each allocator found on the host to its file (see `installed`); `linked` is the
    one that the server is linked against or contains.
    """

    name: ClassVar[str] = "alloc"
    owned: ClassVar[bool] = True
    server: Server
    libraries: Mapping[str, str] = field(default_factory=dict)
    linked: str = GLIBC

    def observe(self) -> Probe[Settings]:
        """Return the probe for the allocator in the process's maps, not in an option."""
        return Probe(self.server.look("maps", "environ"), partial(parse, linked=self.linked))

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for an allocator that cannot be had here."""
        _refuse_unknown(want)
        default = now.get("linked", self.linked)
        library = want.get("library", default)
        lines = [*self._preload(library, default), *_tuning(library, want.get("tunables", ""))]
        defaults = {"library": default, "tunables": ""}
        return launch_file.changes(now, want, defaults, self.server.write(lines))

    def _preload(self, library: str, default: str) -> list[str]:
        if library == default:
            return []
        if default != GLIBC:
            raise SpecError(
                f"alloc.library = {library!r}: this server is linked to {default}, and a second "
                f"allocator is not loaded over it: leave alloc.library out or name {default}"
            )
        if library not in self.libraries:
            package = ALLOCATORS[library].package
            raise SpecError(f"alloc.library = {library!r}: not found: apt-get install {package}")
        return [f"LD_PRELOAD={self.libraries[library]}"]


def installed() -> Probe[Mapping[str, str]]:
    """Return the probe for the allocators of this host: name to file."""
    return Probe(Action(("/sbin/ldconfig", "-p")), libraries)


def libraries(raw: bytes) -> dict[str, str]:
    """Return the allocators in the linker's cache that are of the C library's architecture."""
    cached = _CACHED.findall(raw.decode(errors="replace"))
    kinds = [kind.split(", ")[0] for soname, kind, _ in cached if soname == "libc.so.6"]
    found: dict[str, str] = {}
    for _, kind, path in cached:
        if kind.split(", ")[0] in kinds[:1]:
            for name in named_in([path]):
                found.setdefault(name, path)
    return found


def parse(raw: bytes, linked: str = GLIBC) -> Settings:
    """Return `library`, `tunables` where set, and `linked` where the server brings its own.

    One that it contains, `linked`, has no file in the process's maps.
    """
    seen = launch_file.parse(raw)
    preload = seen.own.get("LD_PRELOAD", "")
    asked = next(iter(named_in([preload])), "")
    library = (_mapped(seen) if seen.running else asked) or linked
    settings = {"library": library}
    environment = (
        launch_file.pairs(rejoined(seen.files.get("environ", []))) if seen.running else seen.own
    )
    tunables = environment.get(TUNABLES.get(library, ""), "")
    if tunables:
        settings["tunables"] = tunables
    if seen.running and not preload and library != GLIBC:
        settings["linked"] = library
    tuned = any(name in seen.own for name in TUNABLES.values())
    held = [name for name, there in (("library", asked), ("tunables", tuned)) if there]
    return {**settings, OWNED: ",".join(held)} if held else settings


def rejoined(entries: Iterable[str]) -> Sequence[str]:
    """Return the environment of a process with its GLIBC_TUNABLES in one piece again.

    The C library cuts the list where it stands (2.36: each colon becomes the end of a string).
    """
    found: list[str] = []
    for entry in entries:
        if found and entry.startswith(_TUNABLE) and found[-1].startswith(_LIST):
            found[-1] += f":{entry}"
        else:
            found.append(entry)
    return found


def _mapped(seen: ServerState) -> str:
    paths = {line.split()[-1] for line in seen.files.get("maps", []) if "/" in line}
    return next(iter(named_in(sorted(paths))), "")


def _tuning(library: str, tunables: str) -> list[str]:
    if not tunables:
        return []
    if "\n" in tunables:
        raise SpecError("alloc.tunables: one line only")
    return [f"{tunables_of(library)}={tunables}"]


def _refuse_unknown(want: Settings) -> None:
    refuse_unknown(want, ("library", "tunables"), "alloc")
    library = want.get("library", GLIBC)
    if library not in {GLIBC, *ALLOCATORS}:
        raise SpecError(f"alloc.library: {unknown_value(library, (GLIBC, *ALLOCATORS))}")
