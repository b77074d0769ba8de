"""What a host is: facts read before anything changes."""

from mydyno.measure.facts import Facts, facts, schedulers

__all__ = ["Facts", "facts", "schedulers"]
