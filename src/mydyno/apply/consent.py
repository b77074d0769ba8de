"""What reaches beyond things mydyno made needs the user's word (DESIGN section 12)."""

from collections.abc import Iterable, Mapping, Sequence

from mydyno.model import RefusedError, Settings
from mydyno.stack import Layer

HOST = "host"
REFORMAT = "reformat:"


def consent(
    treatments: Mapping[str, Settings], layers: Iterable[Layer], allow: Sequence[str]
) -> None:
    """Raise `RefusedError` for a setting of the whole host that nobody allowed."""
    foreign = {layer.name for layer in layers if not layer.owned}
    for name, settings in treatments.items():
        for key in settings:
            role, _, rest = key.partition("/")
            if role == "db" and rest.partition(".")[0] in foreign and HOST not in allow:
                raise RefusedError(
                    f"{name}: {rest} changes the whole host, not only the server under test; "
                    "add --allow host to consent (it is put back when the campaign ends)"
                )


def consent_reformat(device: str, allow: Sequence[str]) -> None:
    """Raise `RefusedError` unless the user named this very device."""
    if REFORMAT + device not in allow:
        raise RefusedError(
            f"stack.device: {device} would be formatted; add --allow {REFORMAT}{device} to "
            "consent (it is refused all the same unless it is empty)"
        )
