"""Statistics and decisions: pure functions from finished trials to verdicts."""
