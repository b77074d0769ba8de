"""The stack under test: layers observe and plan settings, and one engine applies them."""

from mydyno.stack.converge import (
    LayerPlan,
    Ledger,
    Restoration,
    converge,
    converge_made,
    converge_server,
    refuse_reboot,
    restore,
    restore_made,
)
from mydyno.stack.protocol import (
    Layer,
    Restorable,
    Site,
    StackSettings,
    full_key,
    keys_of,
    spec_key,
    split,
)

__all__ = [
    "Layer",
    "LayerPlan",
    "Ledger",
    "Restorable",
    "Restoration",
    "Site",
    "StackSettings",
    "converge",
    "converge_made",
    "converge_server",
    "full_key",
    "keys_of",
    "refuse_reboot",
    "restore",
    "restore_made",
    "spec_key",
    "split",
]
