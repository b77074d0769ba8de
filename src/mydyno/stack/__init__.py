"""The stack under test: layers observe and plan settings, and one engine applies them."""

from mydyno.stack.converge import Ledger, Restoration, converge, refuse_reboot, restore
from mydyno.stack.protocol import Layer, Restorable, Site

__all__ = [
    "Layer",
    "Ledger",
    "Restorable",
    "Restoration",
    "Site",
    "converge",
    "refuse_reboot",
    "restore",
]
