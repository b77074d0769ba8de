"""The archive that the image is built from: this system's own apt sources, made wide enough."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mydyno.host import Host
from mydyno.lab.vm.recipe import Recipe
from mydyno.model import Action, SpecError

_FILES = Action(
    (
        *("find", "/etc/apt/sources.list", "/etc/apt/sources.list.d", "-type", "f"),
        *("(", "-name", "*.list", "-o", "-name", "*.sources", ")"),
        *("-exec", "awk", "1", "{}", ";", "-exec", "echo", ";"),
    )
)
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)")
_FIELD = re.compile(r"(?P<name>[\w-]+):\s*(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class AptSource:
    """One archive and one suite of it; `signed_by` is a key file, or empty."""

    uri: str
    suite: str
    signed_by: str = ""

    def line(self, components: Sequence[str]) -> str:
        """Return it in the one-line style of sources.list(5)."""
        options = f"[signed-by={self.signed_by}] " if self.signed_by else ""
        return f"deb {options}{self.uri} {self.suite} {' '.join(components)}"


def parse(text: str) -> Sequence[AptSource]:
    """Return the sources of binary packages in files of either style, joined."""
    found = list(_one_line(text))
    for stanza in re.split(r"\n\s*\n", text):
        found += _deb822(stanza)
    return tuple(dict.fromkeys(found))


def widened(sources: Sequence[AptSource], recipe: Recipe) -> str:
    """Return a sources.list of the recipe's suite and what belongs to it.

    Components are the recipe's, and the later suite is looked for beside the plain one.  Raise
    `SpecError` where this system knows no archive of that suite.
    """
    suites = {recipe.suite, f"{recipe.suite}-updates", f"{recipe.suite}-security", recipe.later}
    here = [source for source in sources if source.suite in suites]
    plain = [source for source in here if source.suite == recipe.suite]
    if not plain:
        raise SpecError(
            f"this system's apt configuration has no archive of Debian {recipe.suite}; name a "
            "file of apt sources that has one with --sources FILE"
        )
    later = [AptSource(s.uri, recipe.later, s.signed_by) for s in plain]
    return "".join(f"{s.line(recipe.components)}\n" for s in dict.fromkeys([*here, *later]))


def known(host: Host) -> str:
    """Return the text of the apt sources of `host`."""
    return host.run(_FILES).stdout.decode(errors="replace")


def _one_line(text: str) -> Iterator[AptSource]:
    for line in text.splitlines():
        if found := _ONE_LINE.match(line.strip()):
            options = dict(o.partition("=")[::2] for o in (found["options"] or "").split())
            yield AptSource(found["uri"], found["suite"], options.get("signed-by", ""))


def _deb822(stanza: str) -> Iterator[AptSource]:
    fields: dict[str, str] = {}
    for line in stanza.splitlines():
        if found := _FIELD.fullmatch(line.strip()):
            fields[found["name"].lower()] = found["value"]
    if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes") == "no":
        return
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            yield AptSource(uri, suite, fields.get("signed-by", ""))
