"""Pages that load nothing: the templates' environment, and the policy that forbids the rest."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

import jinja2

from mydyno.report import storage, units, verdicts


def policy(style: str, scripts: Sequence[str]) -> str:
    """Return a content security policy: no loading, and only these texts by their hashes."""
    return "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src {_hash(style)}",
            f"script-src {' '.join(_hash(script) for script in scripts)}",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


@cache
def environment() -> jinja2.Environment:
    """Return the templates: autoescaped, without control characters, strict on names."""
    made = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: text(f"template/{name}")),
        autoescape=True,
        finalize=lambda shown: units.legible(shown) if type(shown) is str else shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["prose"] = units.prose
    made.globals |= {"storage": storage, "units": units, "verdicts": verdicts}
    return made


@cache
def text(path: str) -> str:
    """Return a file of this package."""
    return (files("mydyno.report") / path).read_text(encoding="utf-8")


def _hash(inlined: str) -> str:
    """Return a source expression that allows exactly this inline text."""
    digest = hashlib.sha256(inlined.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
