"""The verdicts of a campaign with the messages that users see."""

from mydyno import stats
from mydyno.report.words import in_words
from mydyno.stats.result import Comparison


def compare(*args) -> Comparison:
    """Return what `mydyno.stats.compare` finds, in words."""
    return in_words(stats.compare(*args))
