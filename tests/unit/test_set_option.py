"""`--set KEY=VALUE`: which key of a spec it means."""

import pytest

from mydyno.campaign.spec import decode, scaled
from mydyno.model import SpecError

SPEC = """
[campaign]
question = "?"
[stack]
server = "none"
[treatments.A]
[treatments.B]
"mysqld.max_connections" = 100
[treatments."C+D"]
[workloads.w]
tool = "command"
argv = ["true"]
"""


def setting(key: str, value: str, treatment: str = "B"):
    return dict(decode(SPEC, "x.toml", {key: value}).treatments[treatment])


@pytest.mark.parametrize(
    "key", ['treatments.B."mysqld.max_connections"', "treatments.B.mysqld.max_connections"]
)
def test_a_setting_is_one_key_quoted_or_not(key):
    assert setting(key, "200") == {"mysqld.max_connections": 200}


@pytest.mark.parametrize("key", ['treatments.B."mysqld.back_log"', "treatments.B.mysqld.back_log"])
def test_a_setting_that_was_not_there_is_added(key):
    assert setting(key, '"9"') == {"mysqld.max_connections": 100, "mysqld.back_log": "9"}


def test_names_may_have_signs_that_toml_would_quote():
    assert setting("treatments.C+D.mysqld.back_log", "7", "C+D") == {"mysqld.back_log": 7}


def test_a_new_treatment_is_added():
    assert setting("treatments.E.mysqld.back_log", "7", "E") == {"mysqld.back_log": 7}


def test_false_removes_a_table():
    assert "B" not in decode(SPEC, "x.toml", {"treatments.B": "false"}).treatments


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ('treatments."B', "not a key"),
        ("campaign.question.x", "question is a value, not a table"),
        ("x", "unknown key 'x'"),
    ],
)
def test_a_wrong_key_is_named(key, reason):
    with pytest.raises(SpecError, match=reason):
        decode(SPEC, "x.toml", {key: "1"})


def test_a_size_gives_values_of_any_type():
    """They were written as JSON, so that a table became the text of it."""
    more = """
[scale.small]
"workloads.w.env" = { "A B" = "x = \\"1\\" é \\u007f" }
"workloads.w.argv" = ["true", "é"]
"design.blocks" = 3
"protocol.preload" = false
"""
    text = SPEC + more
    spec = decode(text, "x.toml", scaled(text, "x.toml", "small"))
    assert spec.workloads["w"]["env"] == {"A B": 'x = "1" é \x7f'}
    assert spec.workloads["w"]["argv"] == ["true", "é"]
    assert (spec.design.blocks, spec.protocol.preload) == (3, False)
