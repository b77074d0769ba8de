"""The lab link of a campaign: made, calibrated at each rate before it is used, removed."""

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.campaign.bench import Bench, TrialInput
from mydyno.campaign.trial import start_load
from mydyno.host import Running
from mydyno.journal import MeasuredValue, measured
from mydyno.lab import LabLink, measure_round_trip, measure_throughput
from mydyno.loads import Workload
from mydyno.model import Action, HostError, Interval, Trial
from mydyno.stack import Site, converge
from mydyno.stack.link import (
    DELAY,
    RATE,
    UNLIMITED,
    Link,
    bytes_per_s,
    delay_us,
    resolved,
    unmeasured,
    uses_lab_link,
)
from mydyno.stack.protocol import StackSettings
from mydyno.testbed.bench_setup import BenchSetup

_WARM_S, _MEASURED_S = 5.0, 10.0  # of a load whose traffic is measured
_TOLERANCE = 0.05  # ratio: measured throughput against the rate
_LATE, _LATE_US = 1.25, 300.0  # of a round trip: what a busy host adds
_MEGABIT = 1e6 / 8


@dataclass(slots=True)
class CalibratedLink:
    """The link, the layer that sets its rate, and its measurements as facts."""

    link: LabLink
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def layer(self) -> Link:
        """Return the layer that sets the link's rate."""
        state = self.link.state
        wire = self.link.wire
        return Link(state.device, state.link, state.peer, wire.folder if wire else None)

    def settings(
        self, setup: BenchSetup, settings: StackSettings, workload: Workload
    ) -> StackSettings:
        """Return a treatment's settings with a share of traffic as a rate."""
        return resolved(settings, workload.info.name, measured(setup.log.journal.events()))

    def prepare(self, setup: BenchSetup, bench: Bench) -> None:
        """Measure the traffic that rates are shares of, and the throughput at each rate."""
        known = measured(setup.log.journal.events())
        treatments = setup.campaign.treatments.values()
        for name, (settings, workload) in unmeasured(
            treatments, setup.campaign.workloads, known
        ).items():
            value = self._traffic(setup, bench, settings, setup.campaign.workloads[workload])
            setup.log.journal.append(MeasuredValue(name, value))
        for name, value in measured(setup.log.journal.events()).items():
            self._report(
                setup, name.partition(" with ")[0], f"{_mbit(value)}, on the unlimited link"
            )
        for rate in dict.fromkeys((UNLIMITED, *self._rates(setup))):
            self._calibrate(setup, rate)
        delays = (s.of("link").get("delay") for s in treatments if uses_lab_link(s))
        for delay in dict.fromkeys(filter(None, delays)):
            self._calibrate_delay(setup, delay)
        self.facts["network"] = self.link.state.network
        (setup.log.files.facts / "lab link.json").write_text(json.dumps(self.facts, indent=1))

    def _rates(self, setup: BenchSetup) -> list[str]:
        """Return every rate of the campaign."""
        rates = (
            self.settings(setup, settings, workload).of("link").get("rate", UNLIMITED)
            for settings in setup.campaign.treatments.values()
            if uses_lab_link(settings)
            for workload in setup.campaign.workloads.values()
        )
        return list(rates)

    def _calibrate(self, setup: BenchSetup, rate: str) -> None:
        """Measure the throughput at a rate; raise `HostError` if it exceeds the rate."""
        converge(Site("db", setup.host, (self.layer,)), {RATE: rate}, setup.log.ledger, -1)
        found = measure_throughput(self.link)
        both = f"{_mbit(found.to_load)} to the load, {_mbit(found.from_load)} from it"
        self._report(setup, f"link at {rate}, measured", both)
        if rate == UNLIMITED:
            return
        cap = bytes_per_s(rate)
        if max(found.to_load, found.from_load) > cap * (1 + _TOLERANCE):
            raise HostError(
                f"lab link: exceeds its rate of {rate}: {both}; report this as a defect of mydyno"
            )
        if min(found.to_load, found.from_load) < cap * (1 - _TOLERANCE):
            setup.log.say(
                f"warning: the lab link is below its rate of {rate}: {both}; the host is busy, so "
                "results at this rate are too low; run again when it is idle"
            )

    def _calibrate_delay(self, setup: BenchSetup, delay: str) -> None:
        """Measure the round trip at a delay; raise `HostError` if it is shorter."""
        converge(Site("db", setup.host, (self.layer,)), {DELAY: delay}, setup.log.ledger, -1)
        found_us, wanted_us = measure_round_trip(self.link) * 1e6, delay_us(delay)
        self._report(setup, f"link with a delay of {delay}, round trip", f"{found_us:,.0f} us")
        if found_us < wanted_us:
            raise HostError(
                f"lab link: its round trip of {found_us:,.0f} us is shorter than its delay of "
                f"{delay}; report this as a defect of mydyno"
            )
        if found_us > wanted_us * _LATE + _LATE_US:
            setup.log.say(
                f"warning: the lab link's round trip of {found_us:,.0f} us is long for a delay of "
                f"{delay}; the host is busy; run again when it is idle"
            )

    def _report(self, setup: BenchSetup, name: str, value: str) -> None:
        self.facts[name] = value
        setup.log.say(f"{name}: {value}")

    def _traffic(
        self, setup: BenchSetup, bench: Bench, settings: StackSettings, workload: Workload
    ) -> float:
        """Return a load's bytes per second in the busier direction, from a short run."""
        folder = setup.made("traffic")
        trial = Trial(-1, "", workload.info.name, 0, 1)
        inputs = TrialInput(trial, settings, workload, folder)
        under = bench.trial(inputs)
        running = start_load(inputs, under.ready(), under, folder)
        try:
            return self._rate(running, workload)
        except (HostError, ValueError) as error:
            words = (folder / "load.err").read_text(errors="replace").strip()[-400:]
            raise HostError(f"{workload.info.name}: {error} {words}") from error
        finally:
            running.stop()
            with suppress(HostError):
                under.collect()

    def _rate(self, running: Running, workload: Workload) -> float:
        first: tuple[float, Mapping[str, int]] | None = None
        for item in workload.parse(running.lines()):
            if not isinstance(item, Interval) or item.t_s < _WARM_S:
                continue
            first = first or (time.monotonic(), self._bytes())
            if item.t_s >= _WARM_S + _MEASURED_S:
                passed_s, now = time.monotonic() - first[0], self._bytes()
                return max(now[way] - first[1][way] for way in now) / passed_s
        raise HostError("the load ended before its traffic was measured")

    def _bytes(self) -> Mapping[str, int]:
        place = Path("/sys/class/net") / self.link.state.device / "statistics"
        files = {way: str(place / f"{way}_bytes") for way in ("rx", "tx")}
        done = self.link.host.run(Action(("cat", *files.values()))).check()
        return dict(zip(files, map(int, done.stdout.split()), strict=True))


def _mbit(bytes_per_second: float) -> str:
    return f"{bytes_per_second / _MEGABIT:,.1f} Mbit/s"
