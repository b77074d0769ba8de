"""Warnings are reported once for all that they are about."""

from types import SimpleNamespace

from mydyno.model import Finding, FindingPlace
from mydyno.report.verdicts import warned


def compared(rows, own=()):
    return SimpleNamespace(
        findings=[recorded(text) for text in own],
        treatments=[SimpleNamespace(name=n, workload="rw", findings=f) for n, f in rows.items()],
    )


def recorded(text):
    return Finding("recorded", {"text": text})


def lost(trial, error, status="failed"):
    return Finding(
        "trial-failed", {"error": error, "status": status}, FindingPlace("", "rw", trial)
    )


def test_trials_that_end_alike_are_reported_once():
    found = warned(
        compared(
            {
                "A": [lost(n, "refused\n  no space") for n in (3, 5, 7)],
                "B": [lost(4, "refused\n  no space")],
            }
        )
    )
    assert found == [("A, rw: trials 4, 6 and 8; B, rw: trial 5", "failed: refused\n  no space")]


def test_numbers_that_differ_are_reported_each():
    found = warned(
        compared({"A": [lost(1, "69 % more", "void")], "B": [lost(2, "23 % more", "void")]})
    )
    assert found == [("A, rw", "trial 2 void: 69 % more"), ("B, rw", "trial 3 void: 23 % more")]


def test_other_ends_are_reported_by_themselves_and_the_same_words_once():
    none = recorded("no verdict")
    found = warned(
        compared({"A": [lost(1, "x"), lost(2, "x", "void"), none], "B": [none]}, own=["busy"])
    )
    assert found == [
        ("", "busy"),
        ("A, rw; B, rw", "no verdict"),
        ("A, rw", "trial 2 failed: x"),
        ("A, rw", "trial 3 void: x"),
    ]


def test_of_many_the_first_few_are_named():
    found = warned(compared({name: [recorded("no verdict")] for name in "ABCDEFG"}))
    assert found == [("A, rw; B, rw; C, rw; D, rw and 3 more", "no verdict")]


def waived(guard, ratio):
    figures = {"guard": guard, "ratio": ratio, "low": 0.5, "high": 2.0}
    return Finding("guard-waived", figures, FindingPlace("", "rw"))


def test_alike_warnings_of_several_treatments_are_one_with_their_range():
    found = warned(
        compared(
            {
                "A": [waived("tps_logsd", 0.7)],
                "B": [waived("tps_logsd", 4.4)],
                "C": [waived("x", 3)],
            }
        )
    )
    assert [who for who, _ in found] == ["A, rw; B, rw", "C, rw"]
    assert found[0][1].startswith("tps_logsd: 0.70 to 4.40 times the baseline's; reported only")
    assert found[1][1].startswith("x: 3.00 times the baseline's [0.50..2.00]; reported only")


def test_early_windows_are_one_warning_with_the_signs_of_the_first():
    early = [
        Finding("early-window", {"filled": part}, FindingPlace("A", "rw")) for part in (0.1, 0.2)
    ]
    ((who, message),) = warned(compared({"A": early[:1], "B": early[1:]}))
    assert who == "A, rw; B, rw"
    assert "the first of them: the buffer pool was filling: 10 %" in message
    assert message.endswith("which runs the winner for so long")
