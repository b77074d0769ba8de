"""Which treatments cross the lab's link, and what a share of a load's traffic comes to there."""

from collections.abc import Iterable, Mapping

from mydyno.model import Settings, SpecError
from mydyno.stack import link
from mydyno.stack.net import LAB

ADDRESS, RATE = "db/net.address", "db/link.rate"


def uses_lab_link(settings: Settings) -> bool:
    """Return whether a treatment's load comes over the lab's link."""
    return settings.get(ADDRESS) == LAB


def refuse_bad_rates(treatments: Mapping[str, Settings], place: str) -> None:
    """Raise `SpecError` for a rate that cannot be, or of a link that the treatment is not on."""
    for name, settings in treatments.items():
        rate = settings.get(RATE)
        if rate is None:
            continue
        if not uses_lab_link(settings):
            raise SpecError(
                f'{place}: {name}: link.rate is the lab\'s link\'s: add "net.address" = "{LAB}"'
            )
        if (share := link.share(rate)) is None:
            link.normal(rate)
        elif not share:
            raise SpecError(f"{place}: {name}: link.rate = {rate!r}: nothing would get through")


def traffic_key(settings: Settings, workload: str) -> str:
    """Return the name of a load's traffic: it depends on all settings but the rate."""
    rest = " ".join(f"{k}={v}" for k, v in sorted(settings.items()) if k != RATE)
    return f"traffic of {workload} with {rest}"


def resolved(settings: Settings, workload: str, measured: Mapping[str, float]) -> Settings:
    """Return the settings with a share of the traffic made a rate; left out if not measured yet."""
    share = link.share(settings.get(RATE, ""))
    if share is None:
        return settings
    rest = {key: value for key, value in settings.items() if key != RATE}
    bytes_per_s = measured.get(traffic_key(settings, workload))
    return {**rest, RATE: link.text(bytes_per_s * share * 8)} if bytes_per_s else rest


def unmeasured(
    treatments: Iterable[Settings], workloads: Iterable[str], measured: Mapping[str, float]
) -> dict[str, tuple[Settings, str]]:
    """Return what traffic is still to be measured, by its name: settings and workload."""
    return {
        key: ({k: v for k, v in settings.items() if k != RATE}, workload)
        for settings in treatments
        if link.share(settings.get(RATE, "")) is not None
        for workload in workloads
        if (key := traffic_key(settings, workload)) not in measured
    }
