"""Data sets: snapshots, copies of existing data directories, and restoring before each trial."""

from mydyno.dataset.directory import DirectoryStore
from mydyno.dataset.store import Store

__all__ = ["DirectoryStore", "Store"]
