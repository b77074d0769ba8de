"""Keeping a verdict: treatments as files of others' tools, with inverses; and production."""
