"""The only module that changes a setting: consent, record, act, observe again; and back."""

from mydyno.apply.apply import apply, recorded, refuse_reboot, rollback
from mydyno.apply.consent import REFORMAT, consent, consent_reformat
from mydyno.apply.device import DeviceStore, RealDevice, release
from mydyno.apply.empty import holds, require_empty

__all__ = [
    "REFORMAT",
    "DeviceStore",
    "RealDevice",
    "apply",
    "consent",
    "consent_reformat",
    "holds",
    "recorded",
    "refuse_reboot",
    "release",
    "require_empty",
    "rollback",
]
