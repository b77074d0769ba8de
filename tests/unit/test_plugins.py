"""Plug-ins of installed distributions: found by their entry points, or refused in one line."""

import sys
from pathlib import Path

import pytest

from mydyno.model import SpecError
from mydyno.model.plugins import with_plugins

GROUP = "mydyno.tests"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution of one module with entry points, for this process only."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)

    def installed(name: str, text: str, **entries: str) -> Path:
        module = name.replace("-", "_")
        (tmp_path / f"{module}.py").write_text(text)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = "\n".join(f"{entry} = {module}:{what}" for entry, what in entries.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}\n")
        return info

    yield installed
    for module in set(sys.modules) - before:
        if module.startswith("plugin_"):
            del sys.modules[module]


def test_an_installed_entry_stands_beside_the_built_in_ones(install):
    install("plugin-a", "ADDED = 7\n", added="ADDED")
    assert with_plugins(GROUP, int, {"own": 1}) == {"own": 1, "added": 7}


def test_without_plugins_the_table_is_the_built_in_one():
    assert with_plugins(GROUP, int, {"own": 1}) == {"own": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise RuntimeError('no\\nluck')\n", "cannot be imported: RuntimeError: no; repair"),
        ("OTHER = 1\n", "cannot be imported: AttributeError: "),
        ("ADDED = 'seven'\n", "plugin_b:ADDED is not a int; repair or uninstall plugin-b"),
    ],
)
def test_a_broken_entry_is_one_line_that_names_its_distribution(install, text, reason):
    install("plugin-b", text, added="ADDED")
    with pytest.raises(SpecError) as caught:
        with_plugins(GROUP, int, {})
    message = str(caught.value)
    assert message.startswith(f"plug-in 'added' in {GROUP}, of plugin-b: ")
    assert reason in message
    assert "\n" not in message


def test_a_name_is_not_taken_twice(install):
    install("plugin-c", "ADDED = 7\n", own="ADDED")
    with pytest.raises(SpecError, match="of plugin-c: the name is taken by mydyno; uninstall one"):
        with_plugins(GROUP, int, {"own": 1})


def test_two_distributions_do_not_share_a_name(install):
    install("plugin-d", "ADDED = 7\n", added="ADDED")
    install("plugin-e", "ADDED = 8\n", added="ADDED")
    with pytest.raises(SpecError, match="of plugin-e: the name is taken by plugin-d"):
        with_plugins(GROUP, int, {})
