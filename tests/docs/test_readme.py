"""The README is short, its commands exist, and its picture and links are there."""

import re
from pathlib import Path

from mydyno.campaign.plan import plan
from mydyno.campaign.spec import decode
from mydyno.campaign.treatments import Environment
from mydyno.cli import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_readme_is_short():
    assert (ROOT / "README.md").read_text().count("\n") < 200


def test_links_lead_somewhere():
    links = [(p, t) for p in PAGES for t in re.findall(r"\]\(([^)#:]+)\)", p.read_text())]
    assert [(p.name, t) for p, t in links if not (p.parent / t).exists()] == []


def test_commands_that_are_shown_exist():
    shown = set()
    for page in PAGES:
        shown |= set(re.findall(r"(?:^|[`$] ?|\n    )mydyno ([a-z]+)", page.read_text()))
    assert shown <= set(COMMANDS), shown - set(COMMANDS)


def test_make_targets_that_are_shown_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        shown = set(re.findall(r"`make ([a-z-]+)`", page.read_text()))
        assert shown <= targets, (page, shown - targets)


def test_no_page_names_a_path_of_one_machine():
    for page in PAGES:
        assert not re.search(r"(?<![\w./])/(work|home|root)/", page.read_text()), page


def test_the_spec_that_is_shown_is_one():
    """The spec of the README is planned as written, its relative value resolved."""
    (text,) = re.findall(r"```toml\n(.+?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    campaign = plan(
        decode(text, "mine.toml"), text, "mine.toml", Environment(1 << 33, 4, "mysql", (8,))
    )
    assert campaign.rule.baseline == "stock"
    assert list(campaign.treatments) == ["stock", "pool", "jemalloc"]
    assert campaign.treatments["pool"] == {"db/mysqld.innodb_buffer_pool_size": str(1 << 32)}
    assert list(campaign.workloads) == ["rw/16", "rw/32"]
