"""Warnings are told once for all that they are about."""

from types import SimpleNamespace

from mydyno.report.verdicts import warned


def compared(rows, own=()):
    return SimpleNamespace(
        warnings=list(own),
        treatments=[SimpleNamespace(name=n, workload="rw", warnings=w) for n, w in rows.items()],
    )


def test_trials_that_end_alike_are_told_once():
    told = warned(
        compared(
            {
                "A": [f"trial {n} failed: refused\n  no space" for n in (3, 5, 7)],
                "B": ["trial 4 failed: refused\n  no space"],
            }
        )
    )
    assert told == [("A, rw: trials 3, 5 and 7; B, rw: trial 4", "failed: refused\n  no space")]


def test_numbers_that_differ_are_told_each():
    told = warned(compared({"A": ["trial 1 void: 69 % more"], "B": ["trial 2 void: 23 % more"]}))
    assert told == [("A, rw", "trial 1 void: 69 % more"), ("B, rw", "trial 2 void: 23 % more")]


def test_other_ends_are_told_by_themselves_and_the_same_words_once():
    told = warned(
        compared(
            {"A": ["trial 1 failed: x", "trial 2 void: x", "no verdict"], "B": ["no verdict"]},
            own=["busy"],
        )
    )
    assert told == [
        ("", "busy"),
        ("A, rw; B, rw", "no verdict"),
        ("A, rw", "trial 1 failed: x"),
        ("A, rw", "trial 2 void: x"),
    ]


def test_of_many_the_first_few_are_named():
    told = warned(compared({name: ["no verdict"] for name in "ABCDEFG"}))
    assert told == [("A, rw; B, rw; C, rw; D, rw and 3 more", "no verdict")]
