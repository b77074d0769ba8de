"""What campaigns cost besides their loads, as measured on this machine: later plans begin there."""

from contextlib import suppress
from typing import Annotated

import msgspec

from mydyno.journal.register import state_folder, state_place
from mydyno.model import RefusedError

_FILE = "costs.json"
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
_MOST = 200  # campaigns; the oldest are forgotten


class MeasuredCosts(msgspec.Struct, frozen=True):
    """Seconds: `overhead_s` of each trial besides its load, `prepare_s` before the first one."""

    overhead_s: _Seconds
    prepare_s: _Seconds


def remembered(key: str) -> MeasuredCosts | None:
    """Return what the last campaign of this kind cost here, None where there was none.

    `key` describes what costs depend on: host, server, device, data.
    """
    return _all().get(key)


def remember(key: str, costs: MeasuredCosts) -> None:
    """Store what a campaign cost; a plan is no less right where that fails."""
    with suppress(OSError, RefusedError):
        folder = state_folder()
        found = {name: value for name, value in _all().items() if name != key}
        stored = dict([*found.items(), (key, costs)][-_MOST:])
        # in place: a file that a kill has torn counts as none, and a copy beside it would stay
        (folder / _FILE).write_bytes(msgspec.json.encode(stored))


def _all() -> dict[str, MeasuredCosts]:
    with suppress(OSError, msgspec.DecodeError):
        text = (state_place() / _FILE).read_bytes()
        return msgspec.json.decode(text, type=dict[str, MeasuredCosts])
    return {}
