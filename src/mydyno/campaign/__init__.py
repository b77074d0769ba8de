"""A campaign: its spec, its plan, its design, the trial and the loop of trials."""
