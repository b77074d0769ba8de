"""What a host is: facts read before anything changes."""

from mydyno.measure.facts import Facts, cores_busy, facts, schedulers

__all__ = ["Facts", "cores_busy", "facts", "schedulers"]
