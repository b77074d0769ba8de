"""A campaign: its spec, its design, its preflight, and the loop of trials."""
