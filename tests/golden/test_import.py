"""Logs of other people's runs, and what each is read as.

A case is a folder ``import/<case>`` with `input.txt`, `origin.txt` (where the bytes come from) and
`want.json`, which ``MYDYNO_GOLDEN=write`` writes.
"""

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from golden.rewrite import hold
from mydyno.logs import read

HERE = Path(__file__).parent / "import"
CASES = sorted(p.parent.name for p in HERE.glob("*/input.txt"))
# what may stand between other logs: complete, and with nothing above it that could be its own
REFUSED = {"empty", "binary", "containers-mixed"}
CUT = {"truncated", "truncated-json", "fio-truncated", "article"}
NEIGHBOURS = {"fio-3.33-terse-5"}  # a terse line next to another has a caveat
COMPLETE = sorted(set(CASES) - REFUSED - CUT - NEIGHBOURS)


def raw(case):
    return (HERE / case / "input.txt").read_bytes()


def figures(values):
    return {name: float(f"{value:.9g}") for name, value in sorted(values.items())}


def facts(log):
    return {
        "runs": [
            {
                "name": r.name,
                "traits": dict(sorted(r.traits.items())),
                "response": r.response,
                **({"job": r.job} if r.job else {}),
                "lines": [r.span[0] + 1, r.span[1] + 1],
                "totals": figures(r.totals),
                "intervals": [[i.t_s, figures(i.values)] for i in r.intervals]
                if r.reported
                else [],
                "doubts": [f"{d.line + 1}: {d.text}" for d in r.caveats],
            }
            for r in log.readings
        ],
        "rejected": [f"{d.line + 1}: {d.text}" for d in log.rejected],
        "unfounded": [f"{d.line + 1}: {d.text}" for d in log.unsupported],
        "lines": log.lines,
        "strange": [n + 1 for n in log.unparsed][:20],
    }


@pytest.mark.parametrize("case", CASES)
def test_a_log_is_read_as_recorded(case):
    assert (HERE / case / "origin.txt").read_text().strip()
    try:
        found = facts(read(raw(case)))
    except ValueError as problem:
        found = {"error": str(problem)}
    hold(HERE / case / "want.json", json.dumps(found, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("case", sorted(set(CASES) - REFUSED))
def test_what_is_saved_of_a_run_reads_the_same_again(case):
    """A trial's raw output is an excerpt; reading it again must give the run again."""
    for reading in read(raw(case)).readings:
        (again,) = read(reading.raw).readings
        for part in ("name", "traits", "response", "totals", "intervals"):
            assert getattr(again, part) == getattr(reading, part)


def essence(log):
    return [
        (r.name, dict(r.traits), r.response, dict(r.totals), tuple(r.intervals), len(r.caveats))
        for r in log.readings
    ]


def clock(number):
    return f"04:{number // 60 % 60:02}:{number % 60:02}"


AROUND = {  # what loggers, shells and editors make of a line
    "crlf": lambda _, line: f"{line}\r",
    "colour": lambda _, line: f"\x1b[32m{line}\x1b[0m",
    "title": lambda _, line: f"\x1b]0;me@db1\x07\x1b[?2004h{line}",
    "trailing": lambda _, line: f"{line}   ",
    "quoted": lambda _, line: f"> {line}",
    "ts": lambda n, line: f"Nov 25 {clock(n)} {line}",
    "ts -s": lambda n, line: f"{clock(n)} {line}",
    "journalctl": lambda n, line: f"Nov  5 {clock(n)} db1 bench.sh[4242]: {line}",
    "journalctl iso": lambda n, line: f"2026-11-25T{clock(n)}+0000 db1 bench.sh[42]: {line}",
    "docker": lambda n, line: f"2026-11-25T{clock(n)}.123456789Z {line}",
    "docker file": lambda _, line: json.dumps({"log": f"{line}\n"}, separators=(",", ":")),
    "compose": lambda n, line: f"\x1b[36msysbench-1  |\x1b[0m {clock(n)} {line}",
    "kubectl": lambda _, line: f"[pod/bench-x7/sysbench] {line}",
}
PLAIN = ("sysbench-1.0-oltp-intervals", "sysbench-1.0-fileio-rndrw", "sysbench-0.4.12-oltp",
         "sysbench-tpcc", "fio-3.33-clients", "fio-3.33-clients-json", "fio-3.33-terse",
         "mysqlslap-engines")  # fmt: skip


@pytest.mark.parametrize("case", PLAIN)
@pytest.mark.parametrize("name", sorted(AROUND))
def test_what_stands_around_each_line_changes_nothing(name, case):
    lines = raw(case).decode().splitlines()
    text = "".join(f"{AROUND[name](n, line)}\n" for n, line in enumerate(lines))
    assert essence(read(text.encode())) == essence(read(raw(case)))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.sampled_from(COMPLETE), min_size=1, max_size=4))
@example(["fio-3.33-terse", "fio-3.33-normal-terse"])  # jobs of the same names end just above
def test_logs_after_each_other_are_what_they_are_one_by_one(cases):
    parts = [raw(case).rstrip(b"\n") + b"\n" for case in cases]
    one_by_one = [run for part in parts for run in essence(read(part))]
    assert essence(read(b"".join(parts))) == one_by_one


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(CASES), st.data())
def test_a_damaged_log_crashes_nothing(case, data):
    """Some bytes are cut out or written over; the reader returns, or reports that it is no text."""
    content = raw(case)
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 200)))
    junk = data.draw(st.binary(max_size=30))
    damaged = content[:start] + junk + content[end:]
    try:
        log = read(damaged)
    except ValueError:
        return
    for reading in log.readings:
        assert reading.totals[reading.response] >= 0
        assert reading.intervals


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
def test_junk_crashes_nothing(junk):
    try:
        log = read(junk)
    except ValueError:
        return
    assert not log.readings


@pytest.mark.parametrize("end", [b"\r\n", b"\r\r\n"])
@pytest.mark.parametrize("case", ["sysbench-1.0-oltp-intervals", "fio-3.33-randwrite"])
def test_line_ends_of_another_system_change_nothing(case, end):
    assert essence(read(raw(case).replace(b"\n", end))) == essence(read(raw(case)))


@pytest.mark.parametrize("coding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings_change_nothing(coding):
    text = raw("sysbench-0.5-oltp").decode()
    assert essence(read(text.encode(coding))) == essence(read(text.encode()))


def test_a_log_within_a_quotation_is_found():
    quoted = b"".join(b"> " + line + b"\n" for line in raw("sysbench-0.5-oltp").splitlines())
    assert essence(read(quoted)) == essence(read(raw("sysbench-0.5-oltp")))


def test_passwords_are_not_saved():
    for case in ("article", "sysbench-0.4.12-oltp", "sysbench-tpcc"):
        log = read(raw(case))
        saved = b"".join(r.raw for r in log.readings)
        assert b"***" in saved
        for secret in (b"geheim", b"secret", b"password=tpcc"):
            assert secret not in saved
