"""A treatment to keep, and the forms that write it: one file each in `forms`, found by name."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules

from mydyno.keep import forms as package
from mydyno.model import SpecError, one_line, unknown_value
from mydyno.model.plugins import with_plugins
from mydyno.stack.flavours import flavours

_NAME = re.compile(r"[\w.:/-]+")  # some become a path below /proc or /sys
KEPT = "kept.json"  # what an export holds for `verify`


@dataclass(frozen=True, slots=True)
class KeptOn:
    """The host that is to keep it: what only its operator knows.

    `disk` is the data's disk as in ``/sys/block``, `serial` what udev knows it by in every boot, as
    in ``ID_WWN=0x5000c500``; of an array its members, with commas.  `fstab` is the text of its
    ``/etc/fstab``, `mount` where the data's filesystem is mounted.  `unit` and `include` are the
    server's unit and the folder of its option files, as Debian names them unless they are given.
    """

    unit: str = ""
    include: str = ""
    disk: str = ""
    fstab: str = ""
    mount: str = ""
    serial: str = ""

    @property
    def disks(self) -> list[tuple[str, str]]:
        """Return each disk's name and serial; raise `SpecError` for more of one than the other."""
        names = self.disk.split(",") if self.disk else []
        serials = self.serial.split(",") if self.serial else [""] * len(names)
        if len(names) != len(serials):
            raise SpecError(f"serial={self.serial}: give one for each of disk={self.disk}")
        return list(zip(names, serials, strict=True))


@dataclass(frozen=True, slots=True)
class Kept:
    """A treatment's settings, keys as in a spec, and the `evidence` for it, a line each.

    `first` holds the value that each had before, where the run recorded one.
    """

    settings: Mapping[str, str]
    evidence: Sequence[str] = ()
    first: Mapping[str, str] = field(default_factory=dict)
    flavour: str = "mariadb"
    version: tuple[int, ...] = ()
    target: KeptOn = KeptOn()

    def of(self, layer: str) -> dict[str, str]:
        """Return the settings of a layer by bare key; raise `SpecError` for one with a line break.

        Every form is lines, and the rest of such a value would be a setting of its own.
        """
        found = {k: v for k, v in self.settings.items() if k.startswith(f"{layer}.")}
        if bad := [key for key in found if not _NAME.fullmatch(key) or ".." in key]:
            raise SpecError(f"{bad[0]!r}: is not the name of a setting")
        return {k.removeprefix(f"{layer}."): _printable(k, v) for k, v in found.items()}

    def only(self, keys: Sequence[str]) -> "Kept":
        """Return it with these settings only."""
        return replace(self, settings={k: self.settings[k] for k in keys})

    def before(self, key: str) -> str:
        """Return the value that a setting had before, or ``""``."""
        return _printable(key, self.first.get(key, ""))

    @property
    def unit(self) -> str:
        """Return the server's systemd unit."""
        return self.target.unit or flavours()[self.flavour].usual.unit

    @property
    def include(self) -> str:
        """Return the folder of the server's option files."""
        return self.target.include or flavours()[self.flavour].usual.include

    def heading(self, mark: str = "#") -> list[str]:
        """Return the evidence as comment lines."""
        return [f"{mark} {_printable('evidence', line)}" for line in self.evidence]


def _printable(place: str, value: str) -> str:
    """Return a value of printable characters; raise `SpecError` for another.

    YAML has more line breaks than option files have, and refuses control characters.
    """
    if not one_line(place, value).isprintable():
        raise SpecError(f"{place}: the value has a control character; write it without")
    return value


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file of a form: its `path` below the output folder, or on the host where it begins with /.

    `reload` is the command after which a running host uses it; ``restart`` of the server where it
    is empty and the form needs one.
    """

    path: str
    text: str
    reload: tuple[str, ...] = ()


Write = Callable[[Kept], Sequence[KeptFile]]


@dataclass(frozen=True, slots=True)
class Form:
    """A format: the keys that it can carry, its files, and the files of its inverse.

    `use` is the command that applies them.  `refusal` is why this treatment or target cannot be
    written at all, or ``""``.
    """

    name: str
    title: str
    carries: Callable[[str], bool]
    write: Write
    inverse: Write
    use: str
    refusal: Callable[[Kept], str] = lambda _: ""


def forms() -> Mapping[str, Form]:
    """Return the forms by name, those of plug-ins too."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    built_in = {name: import_module(f"{package.__name__}.{name}").FORM for name in names}
    by_name = {form.name: form for form in built_in.values()}
    return with_plugins("mydyno.forms", Form, by_name)


def form_of(name: str) -> Form:
    """Return a form; raise `SpecError` for an unknown name."""
    known = forms()
    if name not in known:
        raise SpecError(f"--format: {unknown_value(name, known, 'format')}")
    return known[name]


@dataclass(frozen=True, slots=True)
class Bundle:
    """A written treatment: its files, those of its inverse, and the keys that it cannot carry."""

    form: Form
    write: Sequence[KeptFile]
    inverse: Sequence[KeptFile]
    carried: Sequence[str]
    left_out: Sequence[str]


def bundle(kept: Kept, form: Form) -> Bundle:
    """Return a treatment in a form; raise `SpecError` where nothing of it can be carried."""
    carried = [key for key in kept.settings if form.carries(key)]
    left_out = [key for key in kept.settings if not form.carries(key)]
    if not carried:
        raise SpecError(
            f"{form.name}: carries none of {', '.join(left_out) or 'no settings'}; choose another "
            "--format"
        )
    part = kept.only(carried)
    if refusal := form.refusal(part):
        raise SpecError(f"{form.name}: {refusal}")
    return Bundle(form, form.write(part), form.inverse(part), carried, left_out)


NO_DISK = "settings of a disk need its name: add --target disk=sdc, as in /sys/block"


def block(text: str, indent: int) -> list[str]:
    """Return a text as the lines of YAML's block scalar."""
    return [f"{' ' * indent}{line}".rstrip() for line in text.splitlines()]


def scalar(value: str | Sequence[str]) -> str:
    """Return a text, or a list of them, for YAML; JSON's escapes of pairs mean others there."""
    return json.dumps(value, ensure_ascii=False)


def prefixed(*prefixes: str) -> Callable[[str], bool]:
    """Return whether a key begins with one of these."""
    return lambda key: key.startswith(prefixes)
