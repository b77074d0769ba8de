"""The stack under test: layers that observe and plan, and the one actor that converges them."""

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
