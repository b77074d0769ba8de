"""Checks and spelling of a tool's options, as a spec gives them."""

from collections.abc import Collection, Mapping

from mydyno.model import SpecError, unknown_value

Options = Mapping[str, str | int | float | bool]


def normal(options: Options) -> dict[str, str | int | float | bool]:
    """Return the options with underscores in their names, as ``file_rw_ratio``."""
    return {name.replace("-", "_"): value for name, value in options.items()}


def check_names(options: Options, known: Collection[str], place: str) -> None:
    """Raise `SpecError` at `place` for a name that is not known, with the nearest one that is."""
    for name in normal(options):
        if name not in known:
            problem = unknown_value(name, known, "option", listed=False)
            own = "" if "did you mean" in problem else ", or one that mydyno sets itself; remove it"
            raise SpecError(f"{place}.{name}: {problem}{own}")


def check_range(place: str, value: float, low: float, high: float) -> None:
    """Raise `SpecError` at `place` unless `low` <= `value` <= `high`."""
    if not low <= value <= high:
        raise SpecError(f"{place} = {value:g}: must be from {low:g} to {high:g}")


def check_response(place: str, response: str, metrics: Collection[str]) -> None:
    """Raise `SpecError` at `place` unless the tool reports a metric of the name `response`."""
    if response not in metrics:
        raise SpecError(f"{place}.response = {response!r}: must be one of {', '.join(metrics)}")


def thread_counts(place: str, threads: int | list[int]) -> list[int]:
    """Return the thread counts, each once; raise `SpecError` at `place` if they make no sense."""
    counts = [threads] if isinstance(threads, int) else threads
    for count in counts:
        check_range(f"{place}.threads", count, 1, 65536)
    if not counts or len(set(counts)) < len(counts):
        raise SpecError(f"{place}.threads = {counts}: give each count once, and at least one")
    return counts


def words(options: Options, on: str, off: str) -> tuple[str, ...]:
    """Return ``--name=value`` for each option; true and false are spelt `on` and `off`."""
    spelt = {True: on, False: off}
    return tuple(
        f"--{name}={spelt[value] if isinstance(value, bool) else value}"
        for name, value in sorted(options.items())
    )
