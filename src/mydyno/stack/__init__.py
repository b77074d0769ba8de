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
from mydyno.stack.protocol import Layer, Restorable, Site

__all__ = [
    "Layer",
    "LayerPlan",
    "Ledger",
    "Restorable",
    "Restoration",
    "Site",
    "converge",
    "converge_made",
    "converge_server",
    "refuse_reboot",
    "restore",
    "restore_made",
]
