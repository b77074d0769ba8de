"""Data sets: snapshots, copies of existing data directories, and restoring before each trial."""

from mydyno.snapshot.store import DirectoryStore, Store, StorePlace, settle

__all__ = ["DirectoryStore", "Store", "StorePlace", "settle"]
