"""Data sets: snapshots, copies of existing data directories, and restoring before each trial."""

from mydyno.snapshot.store import DirectoryStore, Store

__all__ = ["DirectoryStore", "Store"]
