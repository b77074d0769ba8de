"""The limits that a load can meet, one file each; an entry point `mydyno.limits` adds one.

Thresholds without a source are judgements; `make bench-diagnose-real` shows how often
they are right.
"""
