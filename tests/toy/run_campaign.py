"""Runs the toys' campaign on a fake host, as `mydyno run` does on a real one.

Called with the spec and the run directory, in a Python that has the toys installed.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from mydyno.campaign.run_loop import CampaignRun, run
from mydyno.campaign.treatments import Environment
from mydyno.cli.specs import RunFacts, SpecSource, save
from mydyno.journal import FileJournal
from mydyno.journal.rundir import RunDir
from mydyno.stack.layers import HostPlace, layers
from mydyno.testing import FakeBench, FakeHost, Silent


def thrown(state: Mapping[str, str]) -> Iterator[bytes]:
    rate = 1000 + 10 * int(state["sides"])
    for second in range(1, 30):
        yield f"{second} {rate + second % 3}\n".encode()


def main(spec: str, folder: str) -> None:
    source = SpecSource(Path(spec).read_text(), spec, {})
    environment = Environment(2**30, 2)
    campaign = source.plan(environment)
    files = RunDir(Path(folder))
    save(files, source, RunFacts(spec, {}, environment, "mydyno run", ""))
    journal = FileJournal(files.journal)
    host = FakeHost({"sides": "6"}, thrown)
    layer = layers()["dice"].on_host(HostPlace(("sides",)))
    run(CampaignRun(campaign, FakeBench(host, journal, layer=layer), files, journal, Silent()))
    journal.close()
    assert host.state == {"sides": "6"}, "the host is as it was found"


main(*sys.argv[1:])
