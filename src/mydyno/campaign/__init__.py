"""A campaign: its spec, its design, its preflight checks, its testbed and the trial loop."""
