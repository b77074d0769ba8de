"""Host facts before any change, and samples of host and server while a load runs."""

from mydyno.sample.facts import Facts, cores_busy, facts
from mydyno.sample.sampler import NOT_BUILT, Sampling, complaint, probe_binary

__all__ = ["NOT_BUILT", "Facts", "Sampling", "complaint", "cores_busy", "facts", "probe_binary"]
