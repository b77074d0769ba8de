"""Changes to host settings and real devices: consent, checks, formatting and wiping."""

from mydyno.apply.consent import REFORMAT, consent, consent_reformat
from mydyno.apply.device import DeviceStore, RealDevice, release
from mydyno.apply.empty import holds, require_empty

__all__ = [
    "REFORMAT",
    "DeviceStore",
    "RealDevice",
    "consent",
    "consent_reformat",
    "holds",
    "release",
    "require_empty",
]
