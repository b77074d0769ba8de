"""The stack under test: layers that observe and plan, and never write."""

from mydyno.stack.protocol import Layer, Site

__all__ = ["Layer", "Site"]
