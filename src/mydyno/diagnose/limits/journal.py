"""Commits wait for the filesystem's journal: another writer, or metadata of growing files."""

from mydyno.diagnose.account import JOURNAL
from mydyno.diagnose.suspects import Limit, share

LIMIT = Limit(
    "journal",
    "the filesystem's journal",
    (JOURNAL,),
    signs=(share(0.1, JOURNAL),),
    doses=("disk.flush_latency",),
)
