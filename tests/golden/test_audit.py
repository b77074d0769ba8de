"""Each rule of an audit on its cases: where it fires, where not, what it lacks, what it proposes.

A case is a file of facts; the message and the proposals are golden.
"""

import json
import os
import tomllib
from datetime import date
from pathlib import Path

import pytest

from mydyno.audit.facts import ServerEvidence, ServerFacts
from mydyno.audit.findings import Remembered, evaluate
from mydyno.audit.memory import Memory
from mydyno.audit.rules import rules
from mydyno.report.findings import message

CASES = Path(__file__).parent / "audit"
EXPECTED = CASES / "expected.json"
TODAY = date(2026, 11, 26)
GONE = "(gone)"
VERSIONS = {
    "mysql": ((5, 6, 14), (5, 7, 22), (8, 0, 33), (8, 4, 1), (9, 7, 4)),
    "mariadb": ((10, 0, 1), (10, 4, 2), (10, 6, 4), (10, 11, 19), (11, 4, 5)),
    "percona": ((5, 6, 22), (5, 7, 20)),
}


def server(name, *, of=True):
    """Return a server that the rule is about, or not about; None where there is none."""
    for flavour, versions in VERSIONS.items():
        for version in reversed(versions):
            if rules()[name].holds_for(flavour, version) == of:
                return ServerEvidence(
                    name="db1",
                    flavour=flavour,
                    version=version,
                    text="",
                    variables={},
                    looks=({}, {}),
                )
    return None


def judged(name, values, before=None, *, of=True, today=TODAY):
    known = ServerFacts(values, (), {}, Memory(0.0, 0.0))
    return evaluate(server(name, of=of), known, {name: rules()[name]}, today, before)


def case(name):
    found = tomllib.loads((CASES / f"{name}.toml").read_text())
    fires = found["fires"]
    others = {
        part: {k: v for k, v in {**fires, **found[part]}.items() if v != GONE}
        for part in ("quiet", "stays")
        if part in found
    }
    return fires, others


def test_each_rule_has_its_cases_and_each_case_its_rule():
    assert {p.stem for p in CASES.glob("*.toml")} == set(rules())
    assert len(rules()) >= 60


def test_messages_and_proposals_are_those_expected():
    seen = {}
    for name in sorted(rules()):
        (one,) = judged(name, case(name)[0]).findings
        seen[name] = {
            "message": message(one.message),
            "proposals": {p.name: p.settings for p in one.proposals},
        }
    if os.environ.get("MYDYNO_GOLDEN") == "write":
        EXPECTED.write_text(json.dumps(seen, indent=1, ensure_ascii=False) + "\n")
    assert seen == json.loads(EXPECTED.read_text())


@pytest.mark.parametrize("name", sorted(rules()))
def test_a_rule_fires_in_its_case_only(name):
    fires, others = case(name)
    assert [one.rule for one in judged(name, fires).findings] == [name]
    quiet = judged(name, others["quiet"])
    assert quiet.findings == ()
    assert quiet.unevaluated == ()
    if server(name, of=False):
        other = judged(name, fires, of=False)
        assert (other.findings, other.unevaluated, other.evaluated) == ((), (), 0)


@pytest.mark.parametrize("name", sorted(rules()))
def test_a_rule_without_facts_is_not_evaluated(name):
    fires, _ = case(name)
    rule = rules()[name]
    either = "has(" in rule.when.text or " or " in rule.when.text  # the other one may do
    for gone in (fires.keys() & rule.when.names) - {"fact.watched", "fact.uptime"}:
        found = judged(name, {k: v for k, v in fires.items() if k != gone})
        if not either:
            assert [one.needs for one in found.unevaluated] == [gone]
            assert found.findings == ()
    if rule.rule.watch_s:
        found = judged(name, {**fires, "fact.watched": 2.0})
        assert found.unevaluated[0].needs == f"{rule.rule.watch_s:.0f} s of watching"


@pytest.mark.parametrize("name", sorted(n for n, r in rules().items() if r.until))
def test_a_rule_that_fired_stays_until_its_end(name):
    _, others = case(name)
    assert judged(name, others["stays"]).findings == ()
    fired = {name: Remembered("2026-11-01")}
    (one,) = judged(name, others["stays"], fired).findings
    assert one.since == "2026-11-01"
    assert judged(name, others["quiet"], fired).findings == ()


def test_a_proposal_moves_by_steps_only():
    fires, _ = case("redo-small")
    first = judged("redo-small", fires)
    kept = {
        "redo-small": Remembered("2026-11-01", [p.settings for p in first.findings[0].proposals])
    }
    proposed = set()
    for change in (0.8, 0.9, 1.0, 1.1, 1.25):
        moved = {
            **fires,
            "rate.innodb_os_log_written": fires["rate.innodb_os_log_written"] * change,
        }
        (one,) = judged("redo-small", moved, kept).findings
        proposed.add(one.proposals[0].name)
    assert proposed == {first.findings[0].proposals[0].name}
    moved = {**fires, "rate.innodb_os_log_written": fires["rate.innodb_os_log_written"] * 3}
    (one,) = judged("redo-small", moved, kept).findings
    assert one.proposals[0].name not in proposed


def test_an_expired_rule_is_a_note():
    fires, _ = case("redo-small")
    (one,) = judged("redo-small", fires, today=date(2030, 1, 1)).findings
    assert (one.kind, one.expired, one.proposals) == ("note", True, ())


def test_every_rule_worth_a_test_proposes_treatments():
    for name, rule in rules().items():
        (one,) = judged(name, case(name)[0]).findings
        assert (rule.rule.kind == "test") == bool(one.proposals), name
        assert rule.rule.kind == "test" or rule.rule.fix, name
