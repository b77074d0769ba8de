"""Findings are values: `stats` has no words for users, and `report` has words for each code."""

import ast
import re
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.model import Finding, FindingPlace, Outcome, SpecError, Trial, TrialStatus, Window
from mydyno.report.words import _MADE, _MESSAGES, in_words, words
from mydyno.stats import Rule, checks
from mydyno.stats.checks import CampaignEvidence, Check, TrialEvidence, mark_invalid
from mydyno.stats.result import Comparison
from worded import compare

STATS = Path(checks.__file__).parent
RULE = Rule("c", "A", {"w": "tps"}, guards={})
_CODE = re.compile(r"[a-z]+(-[a-z]+)+|zeros")


def literals(path):
    """Yield the texts of a module that are no docstring and no message of an exception."""
    tree = ast.parse(path.read_text())
    skipped = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        constant = isinstance(node, ast.Constant) and id(node) not in skipped
        if constant and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("path", sorted(STATS.glob("*.py")), ids=lambda p: p.name)
def test_stats_has_no_sentence_for_a_user(path):
    assert [text for text in literals(path) if len(text.split()) > 3] == []


def test_each_code_has_words():
    """What a finding's code or reason looks like is a code, and so has a message."""
    texts = {text for path in STATS.glob("*.py") for text in literals(path)}
    codes = {text for text in texts if _CODE.fullmatch(text)}
    verdicts_and_checks = {"no-steady-state", "guard-unevaluated", "lost-trials"}
    missing = codes - _MESSAGES.keys() - _MADE.keys() - verdicts_and_checks
    assert missing == set()


def test_a_finding_of_an_unknown_code_is_listed_with_its_figures():
    found = Finding("toy/odd-seed", {"seeds": 3, "share": 0.25, "names": ["A", "B"]})
    assert words(found) == "toy/odd-seed: seeds 3, share 0.25, names A, B"
    assert words(Finding("toy/odd")) == "toy/odd"


def test_a_check_of_another_package_voids_trials_and_warns(monkeypatch):
    def second(trial):
        place = FindingPlace(trial.outcome.trial.treatment, "w", trial.outcome.trial.id)
        return Finding("toy-second", place=place) if trial.outcome.trial.id == 1 else None

    toys = (
        Check("toy-second", TrialEvidence, second),
        Check("toy-count", CampaignEvidence, lambda c: Finding("toy", {"n": len(c.outcomes)})),
    )
    monkeypatch.setattr(checks, "registry", lambda: (*checks.CHECKS, *toys))
    some = [Outcome(Trial(i, "A", "w", i, 1), TrialStatus.OK, Window(0, 60)) for i in range(3)]
    rule = Rule("c", "A", {}, guards={})
    assert [o.status.value for o in mark_invalid(some, rule)] == ["ok", "void", "ok"]
    assert "toy: n 3" in compare(some, RULE, "A").warnings


@pytest.fixture
def entries(monkeypatch):
    """Return a list of entry points that the installed distributions are made to have."""
    found: list[EntryPoint] = []
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: found)
    checks.registry.cache_clear()
    yield found
    checks.registry.cache_clear()


def test_an_installed_check_is_in_the_registry(entries, monkeypatch):
    toy = Check("toy", CampaignEvidence, lambda _: Finding("toy"))
    monkeypatch.setitem(sys.modules, "toy_check", SimpleNamespace(TOY=toy))
    entries.append(EntryPoint("toy", "toy_check:TOY", checks.GROUP))
    assert checks.registry()[-1] is toy
    assert len(checks.registry()) == len(checks.CHECKS) + 1


def test_an_installed_check_cannot_replace_one_of_ours(entries):
    entries.append(EntryPoint("cpu-steal", "json:dumps", checks.GROUP))
    with pytest.raises(SpecError, match="the name is taken by mydyno"):
        checks.registry()


@pytest.mark.parametrize("won", [True, False])
def test_the_soak_is_in_the_sentence_of_a_winner_only(won):
    figures = {"responses": ["tps"], "baseline": "A", "workloads": 1, "trials": 3}
    winner = Finding("winner", figures | {"ratio": 1.2, "low": 1.1, "high": 1.3}, FindingPlace("B"))
    first = winner if won else Finding("none-better", {"baseline": "A"})
    soak = Finding("soak-short", place=FindingPlace("B", "w"))
    about = ("c", "tps", "A", 1.0, None, {}, [])
    found = in_words(Comparison(*about, conclusion=[first, soak]))
    assert found.soak == words(soak)
    assert found.sentence == (f"{words(winner)} {words(soak)}" if won else words(first))


@pytest.mark.parametrize(
    ("most", "end"),
    [
        (1.08, "A gain of 8.0 % or more is ruled out."),
        (1.0002, "A gain of 0.1 % or more is ruled out."),
        (4459.4, "Its trials are too few to rule out a tenfold gain; run more blocks."),
    ],
)
def test_a_difference_that_no_user_looks_for_is_not_given_in_per_cent(most, end):
    found = words(Finding("none-better", {"baseline": "A", "most": most}))
    assert found == f"Keep the baseline: no treatment is significantly better than A. {end}"


def test_the_sentence_has_the_response_in_words():
    figures = {"responses": ["latency_p99_s"], "baseline": "A", "workloads": 1, "trials": 3}
    found = Finding("winner", figures | {"ratio": 0.8, "low": 0.7, "high": 0.9}, FindingPlace("B"))
    assert words(found).startswith("B gives 0.80 times the p99 latency of A")
