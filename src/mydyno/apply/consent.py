"""Consent for changes to the host and for formatting a device."""

from collections.abc import Iterable, Mapping, Sequence

from mydyno.model import RefusedError, Settings
from mydyno.stack import Layer

HOST = "host"
REFORMAT = "reformat:"


def consent(
    treatments: Mapping[str, Settings], layers: Iterable[Layer], allow: Sequence[str]
) -> None:
    """Raise `RefusedError` for a host-wide setting without consent."""
    foreign = {layer.name for layer in layers if not layer.owned}
    for name, settings in treatments.items():
        for key in settings:
            role, _, rest = key.partition("/")
            if role == "db" and rest.partition(".")[0] in foreign and HOST not in allow:
                raise RefusedError(
                    f"{name}: {rest} is a host-wide setting, not only one of the server under "
                    "test; "
                    "add --allow host to consent (it is restored when the campaign ends)"
                )


def consent_reformat(device: str, allow: Sequence[str]) -> None:
    """Raise `RefusedError` unless the user named exactly this device."""
    if REFORMAT + device not in allow:
        raise RefusedError(
            f"stack.device: {device} would be formatted; add --allow {REFORMAT}{device} to "
            "consent (only an empty device is accepted)"
        )
