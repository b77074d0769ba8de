"""Which treatments use the lab link, and the rate that a share of a load's traffic gives."""

from collections.abc import Iterable, Mapping

from mydyno.model import Settings, SpecError
from mydyno.stack import link
from mydyno.stack.net import LAB

ADDRESS, RATE = "db/net.address", "db/link.rate"


def uses_lab_link(settings: Settings) -> bool:
    """Return whether a treatment's load uses the lab link."""
    return settings.get(ADDRESS) == LAB


def refuse_bad_rates(treatments: Mapping[str, Settings], place: str) -> None:
    """Raise `SpecError` for an invalid rate, or one of a treatment without the lab link."""
    for name, settings in treatments.items():
        rate = settings.get(RATE)
        if rate is None:
            continue
        if not uses_lab_link(settings):
            raise SpecError(
                f'{place}: {name}: link.rate applies to the lab link only; add "net.address" = '
                f'"{LAB}"'
            )
        if (share := link.share(rate)) is None:
            link.normal(rate)
        elif not share:
            raise SpecError(f"{place}: {name}: link.rate = {rate!r}: must be above 0")


def traffic_key(settings: Settings, workload: str) -> str:
    """Return the key of a load's traffic, which depends on all settings except the rate."""
    rest = " ".join(f"{k}={v}" for k, v in sorted(settings.items()) if k != RATE)
    return f"traffic of {workload} with {rest}"


def resolved(settings: Settings, workload: str, measured: Mapping[str, float]) -> Settings:
    """Return the settings with a share of traffic as a rate; left out if not measured yet."""
    share = link.share(settings.get(RATE, ""))
    if share is None:
        return settings
    rest = {key: value for key, value in settings.items() if key != RATE}
    bytes_per_s = measured.get(traffic_key(settings, workload))
    return {**rest, RATE: link.text(bytes_per_s * share * 8)} if bytes_per_s else rest


def unmeasured(
    treatments: Iterable[Settings], workloads: Iterable[str], measured: Mapping[str, float]
) -> dict[str, tuple[Settings, str]]:
    """Return the traffic that is not measured yet, by key: settings and workload."""
    return {
        key: ({k: v for k, v in settings.items() if k != RATE}, workload)
        for settings in treatments
        if link.share(settings.get(RATE, "")) is not None
        for workload in workloads
        if (key := traffic_key(settings, workload)) not in measured
    }
