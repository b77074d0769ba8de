"""From a spec's words to its hosts, as far as none has to be reached."""

import pytest

from mydyno.campaign.spec import decode
from mydyno.cli.benches import bench_hosts
from mydyno.host import Local
from mydyno.lab.vm.values import VmSpec
from mydyno.model import SpecError

VM = '[campaign]\nname = "a b"\n[stack]\n'


def hosts(text):
    return bench_hosts(decode(text, "x.toml"), "x.toml")


def test_without_a_word_all_is_here():
    found = hosts("")
    assert isinstance(found.db, Local)
    assert found.load == found.db


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('host = "ssh://box"\ndevice = { lab = "vm" }', "remove them"),
        ('load = "local"\ndevice = { lab = "vm" }', "remove them"),
        ('device = { lab = "vm", chunk = "64K" }', 'chunk: valid with lab = "loop" only'),
        ('device = { lab = "vm", credits = "full" }', "stack.device.credits"),
        ('device = { lab = "vm", size = "big" }', "stack.device.size"),
    ],
)  # fmt: skip
def test_an_impossible_machine_is_refused_before_it_boots(text, message):
    with pytest.raises(SpecError, match=r"x\.toml.*" + message.replace("(", r"\(")):
        hosts(VM + text)


def test_a_machine_is_made_as_its_table_specifies(monkeypatch):
    asked = []
    monkeypatch.setattr("mydyno.cli.benches._booted", lambda spec: asked.append(spec) or Local())
    hosts(VM + 'device = { lab = "vm", disks = 3, size = "1G", class = "azure-p15" }')
    assert asked == [VmSpec("a-b", 3, 1 << 30, "azure-p15", "6.1")]
