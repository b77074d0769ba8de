"""Golden copies of data sets, what they may begin with, and how each trial gets one back."""

from mydyno.dataset.directory import DirectoryStore
from mydyno.dataset.store import Store

__all__ = ["DirectoryStore", "Store"]
