"""Man pages, wheel and packages hold what the commands and lists have, and no file is forgotten."""

import importlib.util
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mydyno.cli import COMMANDS, application
from mydyno.lab.loop_lab import binary
from mydyno.sample import probe_binary

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
FAMILIES = ("dnf", "zypper", "pacman", "apk")


def script(name):
    """Import a script of packaging/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, PACKAGING / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def shared():
    if not (probe_binary() and binary()):
        pytest.skip("mydyno-probe and mydyno-disk are not built")
    return script("man").files()


def plain(page):
    """Return the text of a page of ours, without roff."""
    page = page.replace(r"\-", "-").replace(r"\(aq", "'").replace(r"\(ga", "`").replace(r"\e", "\\")
    return page.replace(r"\&", "")


def helped(words):
    return CliRunner().invoke(application(words), [*words, "--help"]).output


def test_every_command_and_every_option_is_in_its_page(shared):
    found = script("man").commands()
    assert {words[0] for words in found if words} == set(COMMANDS)
    for words in set(found) - {("digest",)}:  # it ends as mydyno-probe, which the next test reads
        page = plain(shared[f"man/man1/{'-'.join(('mydyno', *words))}.1"])
        options = set(re.findall(r"--[a-z][a-z-]+", helped(words)))
        assert "--help" in options
        assert {one for one in options if one not in page} == set(), words


def test_every_option_of_the_programs_is_in_their_page(shared):
    digest = plain(shared["man/man1/mydyno-digest.1"])
    assert "--order-by" in digest
    assert "--html" in digest
    for path in (probe_binary(), binary()):
        page = plain(shared[f"man/man1/{Path(path).name}.1"])
        top = subprocess.run([path, "--help"], capture_output=True, text=True, check=True).stdout
        below = re.findall(r"^  ([a-z-]+)  ", top.partition("Commands:")[2], re.MULTILINE)
        for one in {*below} - {"help"}:
            argv = [path, one, "--help"]
            text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
            options = re.findall(r"--[a-z][a-z-]+", text)
            assert not [option for option in options if option not in page], (path, one)


def test_pages_have_the_form_of_man_pages(shared):
    for name, page in shared.items():
        if name.startswith("man/"):
            assert page.startswith(".TH "), name
            assert "\n.SH NAME\n" in page, name
            strange = [
                x for x in page.splitlines() if re.match(r"[.'](?!TH|SH|TP|PP|B |BR |nf|fi)", x)
            ]
            assert not strange, name


def test_completions_ask_the_command(shared):
    made = {name: text for name, text in shared.items() if not name.startswith("man/")}
    assert len(made) == 3
    assert all("_MYDYNO_COMPLETE" in text for text in made.values())


def test_the_wheel_takes_programs_pages_and_completions(shared):
    """Each folder of shared files is one that the wheel takes, at the same place."""
    taken = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    assert taken.pop("bin") == ["src/mydyno/bin/*"]
    assert {f"share/{Path(name).parent}" for name in shared} == set(taken)
    assert all(patterns == [f"target/{place}/*"] for place, patterns in taken.items())


@pytest.fixture
def tree(tmp_path):
    for name in ("usr/share/man/man1/mydyno.1.gz", "usr/share/zsh/site-functions/_mydyno"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "usr/lib/mydyno/bin").mkdir(parents=True)
    return tmp_path


@pytest.mark.parametrize("kind", ["deb", "rpm"])
def test_what_a_package_holds_is_there(tree, kind):
    found = script("packages").config(tree, "amd64", "3.11", kind)
    held = [one for one in found["contents"] if one.get("type") not in {"symlink", "dir"}]
    sources = [Path(one["src"]) for one in held]
    sources += map(Path, found["scripts"].values())
    assert [str(path) for path in sources if not path.exists()] == []
    links = {one["dst"] for one in found["contents"] if one.get("type") == "symlink"}
    names = ("mydyno", "mydyno-probe", "mydyno-disk", "mydyno-guard")
    assert links == {f"/usr/bin/{name}" for name in names}
    assert any("3.11" in one for one in found["depends"])


def test_the_deb_recommends_what_setup_installs():
    found = script("packages").config(Path("/nowhere"), "arm64", "3.13", "deb")
    named = " ".join([*found["recommends"], *found["suggests"]])
    for line in (PACKAGING / "apt.txt").read_text().splitlines():
        name = re.match(r"(?:\? )?([a-z0-9.+-]+)", line)
        if name and name[1] not in {"python3-venv", "gcc", "libc6-dev"}:
            assert name[1] in named


def test_every_needed_package_has_its_name_elsewhere():
    needed = {
        name.split("|")[0]
        for line in (PACKAGING / "apt.txt").read_text().splitlines()
        if (name := line.partition("#")[0].strip()) and not name.startswith("?")
    }
    for family in FAMILIES:
        assert needed <= script("packages").other_names(family).keys()


@pytest.mark.parametrize("family", FAMILIES)
def test_without_apt_the_names_of_the_packages_are_printed(tmp_path, family):
    """A system without apt, with another family's tool: its command, and no attempt."""
    for name in ("bash", "sed", "dirname", "cut", "sort", "head", "id", "grep", "tr", "awk"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    (tmp_path / family).write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / family).chmod(0o755)
    argv = ["/usr/bin/bash", PACKAGING / "setup.sh", "run"]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={"PATH": str(tmp_path)}
    )
    assert done.returncode == 4
    lines = done.stderr.splitlines()
    assert lines[0].startswith("mydyno: apt-get is not here; ")
    assert re.match(rf"  (sudo )?{family} ", lines[1])
    names = script("packages").other_names(family)
    assert {names["fio"], names["cargo"], names["python3-venv"]} <= {*lines[1].split()}


@pytest.mark.skipif(not binary(), reason="mydyno-disk is not built")
def test_the_table_of_classes_may_be_cut_by_its_reader():
    back, front = os.pipe()
    os.close(back)
    argv = [binary(), "classes"]
    cut = subprocess.run(argv, stdout=front, stderr=subprocess.PIPE, check=False)
    os.close(front)
    assert (cut.returncode, cut.stderr) == (0, b"")
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(b"mydyno-disk: standard output: ")
