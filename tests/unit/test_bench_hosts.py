"""From a spec's words to its hosts, as far as none has to be reached."""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from mydyno.campaign.spec import decode
from mydyno.cli.benches import bench_hosts
from mydyno.cli.lab import down, list_
from mydyno.cli.rollback import Done, _sweep
from mydyno.host import Local
from mydyno.model import HostError, SpecError
from mydyno.testbed.labs import lab_kind, refuse_unmanaged, unmanaged
from mydyno_vm.lab import LAB, machine_of
from mydyno_vm.values import VmSpec

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
        ('device = { lab = "vm", credits = "some" }', "credits: 'some': write empty"),
        ('device = { lab = "vm", size = "big" }', "stack.device.size"),
        ('device = { lab = "vm", memory = "100M" }', "stack.device.memory: from 1024M to"),
        ('device = { lab = "vm", memory = "9T" }', "stack.device.memory: from 1024M to"),
    ],
)  # fmt: skip
def test_an_impossible_machine_is_refused_before_it_boots(text, message):
    with pytest.raises(SpecError, match=r"x\.toml.*" + message.replace("(", r"\(")):
        hosts(VM + text)


def test_a_machine_is_made_as_its_table_specifies():
    text = VM + 'device = { lab = "vm", disks = 3, size = "1G", class = "azure-p15" }'
    asked = machine_of(decode(text, "x.toml"), "x.toml")
    same = replace(asked, memory=2 << 30, cores=2)
    assert same == VmSpec("a-b", 3, 1 << 30, "azure-p15", "6.1")
    assert asked.memory >= 2 << 30
    sized = text.replace(" }", ', memory = "3G", cores = 4, credits = 0.5 }')
    asked = machine_of(decode(sized, "x.toml"), "x.toml")
    assert (asked.memory, asked.cores, asked.credits) == (3 << 30, 4, 0.5)


INSTALL = (
    r"run make setup-vm in a checkout, or pip install --find-links DIR 'mydyno\[vm\]' "
    r"with the folder that mydyno's wheel was in"
)


@pytest.fixture
def without_vm(monkeypatch, tmp_path):
    """Leave out every plug-in; return the folder of the records of machines, with one of them."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    monkeypatch.setattr("mydyno.testbed.labs.state_place", lambda: tmp_path)
    record = tmp_path / "vms" / "box.json"
    record.parent.mkdir()
    record.write_text("{}")
    return record


@pytest.mark.usefixtures("without_vm")
def test_without_its_distribution_a_vm_lab_is_refused_with_what_to_install():
    with pytest.raises(SpecError, match=rf'^x\.toml: stack\.device: lab = "vm": .*; {INSTALL}$'):
        hosts(VM + 'device = { lab = "vm" }')


def test_an_unknown_lab_is_refused_with_those_there_are():
    with pytest.raises(SpecError, match=r'lopo.: write "loop" or "vm"'):
        hosts(VM + 'device = { lab = "lopo" }')


def test_what_a_vm_lab_has_left_is_named_by_a_rollback_without_its_distribution(without_vm):
    """If it fails, a machine stays and rollback reports that nothing is left."""
    with pytest.raises(HostError, match=f"^{without_vm}: .*; {INSTALL}, then run this again$"):
        refuse_unmanaged(Local())
    without_vm.unlink()
    assert refuse_unmanaged(Local()) == ()


@pytest.mark.usefixtures("without_vm")
def test_a_rollback_asks_for_machines_on_this_host(monkeypatch):
    for step in ("sweep", "sweep_links"):
        monkeypatch.setattr(f"mydyno.cli.rollback.{step}", lambda _: ())
    done = Done()
    _sweep(Local(), done)
    assert len(done.failed) == 1
    assert "box.json" in done.failed[0]


def test_a_machine_is_not_removed_as_if_it_were_a_lab_disk(without_vm, capsys):
    with pytest.raises(SpecError, match=f"^{without_vm}: .*; {INSTALL}$"):
        down("box")
    list_()
    shown = capsys.readouterr()
    assert "no labs" not in shown.out
    assert f"{without_vm}: a machine that cannot be checked" in shown.err


@pytest.mark.parametrize("command", [("boot", "box", "--kernel", "6.1"), ("build",)])
def test_without_its_distribution_a_command_of_machines_names_it(command):
    """The commands are chosen when they are loaded, so a fresh Python loads them."""
    program = (
        "import importlib.metadata as m, sys; m.entry_points = lambda **_: ()\n"
        "from mydyno.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "lab", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"mydyno: lab {command[0]}: .*; {INSTALL}\n", done.stderr)


def test_with_its_distribution_the_vm_lab_is_found():
    assert lab_kind("vm") is LAB
    assert unmanaged() == {}
