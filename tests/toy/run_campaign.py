"""Runs the toys' campaign on a fake host, as `mydyno run` does on a real one.

Called with the spec, the run directory and the folder of the toy server, in a Python that has the
toys installed.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from mydyno.campaign.run_loop import CampaignRun, run
from mydyno.campaign.treatments import Environment
from mydyno.cli.recipes import SpecSource
from mydyno.cli.run_directory import RunFacts, save
from mydyno.host import Local
from mydyno.journal import FileJournal
from mydyno.journal.register import RunDir
from mydyno.server import find
from mydyno.stack.layers import HostPlace, layers
from mydyno.testing import FakeBench, FakeHost, Silent


def thrown(state: Mapping[str, str]) -> Iterator[bytes]:
    rate = 1000 + 10 * int(state["sides"])
    for second in range(1, 30):
        yield f"{second} {rate + second % 3}\n".encode()


def main(spec: str, folder: str, basedir: str) -> None:
    source = SpecSource(Path(spec).read_text(), spec, {})
    server = find(Local(), basedir)
    environment = Environment(2**30, 2, server.flavour, server.version)
    campaign = source.plan(environment)
    files = RunDir(Path(folder))
    save(files, source, RunFacts(spec, {}, environment, "mydyno run", server.text), begun=False)
    journal = FileJournal(files.journal)
    host = FakeHost({"sides": "6"}, thrown)
    layer = layers()["dice"].on_host(HostPlace(("sides",)))
    run(CampaignRun(campaign, FakeBench(host, journal, layer=layer), files, journal, Silent()))
    journal.close()
    assert host.state == {"sides": "6"}, "the host is as it was found"


main(*sys.argv[1:])
