"""A sampler's file without a campaign: its figures as text and JSON, and one page."""

import json
import subprocess

import pytest

from command_line import shown
from mydyno.cli.machine import machine
from mydyno.report.machine import render_machine
from mydyno.sample import probe_binary


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    """Return a real file of two seconds of this machine."""
    path = tmp_path_factory.mktemp("probe") / "host.bin"
    argv = [probe_binary(), "sample", "--out", str(path), "--interval", "100ms", "--duration", "2s"]
    subprocess.run(argv, check=True)
    return path


def test_inspect_shows_its_length_and_what_the_machine_did(sample):
    done = shown("inspect", sample)
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert ": 2 s from 20" in first
    assert first.endswith(" ticks")
    named = {line.strip().partition("  ")[0]: line for line in lines}
    assert "busy" in named["Processors"]
    assert "average" in named["Dirty pages of the page cache"]


def test_its_json_has_numbers_in_base_units(sample):
    found = json.loads(shown("inspect", sample, "--json").stdout)
    assert found["duration_s"] == pytest.approx(2, abs=0.3)
    assert found["interval_s"] == 0.1
    assert found["ticks"] + found["missed"] == pytest.approx(21, abs=1)
    modes = ("user", "system", "irq", "iowait", "steal", "idle")
    cores = sum(found["means"][f"cpu.{mode}"] for mode in modes)
    assert cores == pytest.approx(found["processors"], rel=0.2)
    assert found == json.loads(shown("report", sample, "--json").stdout)


def test_report_writes_a_page_beside_it(sample):
    done = shown("report", sample, "-o", sample.with_name("page.html"))
    assert done.returncode == 0, done.stderr
    page = sample.with_name("page.html").read_text()
    assert 'id="panel-cpu"' in page
    assert "<script" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_names_of_a_file_are_escaped(sample):
    found, curves = machine(sample)
    found = type(found)(**{f: getattr(found, f) for f in found.__struct_fields__} | {"host": "<b>"})
    assert "<b>:" not in render_machine(found, curves)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "ends before its head"),
        (b"PNG\r\n\x00\xff", "mydyno-probe sample"),
        (b"mydyno-probe 1\n", "ends before its head"),
    ],
)
@pytest.mark.parametrize("command", ["inspect", "report"])
def test_another_file_is_a_wrong_request(tmp_path, content, words, command):
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    done = shown(command, path)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_missing_file_is_a_wrong_request(tmp_path):
    assert shown("inspect", tmp_path / "none.bin").returncode == 2
    assert shown("report", tmp_path / "none.bin").returncode == 2


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
def test_the_file_of_a_killed_sampler_is_shown(sample, tmp_path, cut):
    raw = sample.read_bytes()
    path = tmp_path / "cut.bin"
    path.write_bytes(raw[: int(len(raw) * cut)])
    done = shown("inspect", path)
    assert done.returncode == 0 or "holds no tick" in done.stderr
    assert done.returncode or "killed" in done.stdout
