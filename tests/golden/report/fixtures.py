"""Seeded results to report on: a demo's ladder, no winner, many treatments, and hostile text."""

import random
from pathlib import Path

import msgspec
from digests import small
from msgspec.structs import replace
from simulate import campaign, distribution, gauges, row

from mydyno.model import Finding
from mydyno.stats.result import ChangeView, Comparison, Ends, Result, Row, TrialView

_CHANGES = {
    "KERN": [
        ChangeView("db/block.scheduler", "mq-deadline", "none", "online", "same"),
        ChangeView("db/block.read_ahead_kb", "128", "16", "online", "same"),
        ChangeView("db/block.rq_affinity", "1", "2", "online", "same"),
        ChangeView("db/fs.mount", "relatime,rw", "lazytime,noatime,rw", "remount", "same"),
    ],
    "MYSQL": [
        ChangeView(
            "db/mysqld.innodb_buffer_pool_size", "134217728", "536870912", "restart", "same"
        ),
        ChangeView("db/mysqld.innodb_log_file_size", "100663296", "1073741824", "restart", "same"),
        ChangeView("db/mysqld.innodb_flush_neighbors", "1", "0", "online", "same"),
        ChangeView("db/mysqld.innodb_io_capacity", "200", "1000", "online", "same"),
        ChangeView("db/mysqld.innodb_flush_method", "fsync", "O_DIRECT", "restart", "same"),
    ],
    "JE": [ChangeView("db/alloc.library", "glibc", "jemalloc", "restart", "same")],
}
_SAME_HOST = (
    "The load ran on the same host as the server: give it a host of its own "
    '(load = "ssh://…") before quoting these numbers.'
)
_FACTS = {
    "Host": {
        "kernel": "6.1.0-18-amd64",
        "processor": "2 of AMD EPYC 7763",
        "memory": "7.8 GiB",
        "transparent huge pages": "madvise",
    },
    "Server": {
        "build": "MariaDB 10.11.6-MariaDB-0+deb12u1",
        "basedir": "/usr",
        "own option file": "trials/*/my.cnf",
    },
    "Device": {
        "lab": "loop, one disk of class azure-p15",
        "cap": "1100 IOPS, 125 MB/s, burst bucket empty",
        "filesystem": "ext4, 4 KiB blocks",
    },
    "Load": {
        "tool": "sysbench 1.0.20",
        "client library": "libmariadb 3.3.8",
        "TLS": "off",
        "transport": "unix socket",
    },
}


def ladder() -> Result:
    """Return the demo's own campaign: four rungs, three blocks of a minute, and a clear winner."""
    rng = random.Random(20240207)
    truth = {"STOCK": 371.0, "KERN": 384.0, "MYSQL": 655.0, "ALL": 711.0}
    trials = campaign(rng, truth, ("rw/16",), blocks=3, span_s=(60, 120))
    rows = _ladder_rows(trials)
    return Result(
        _comparison(
            "demo",
            "STOCK",
            {"rw/16": "ALL"},
            rows,
            sentence="ALL does 1.92 times the work of STOCK under rw/16 (95 % interval 1.71 to "
            "2.15), with half the p99 latency, at the same durability: adopt it.",
            said=[_SAME_HOST],
        ),
        "What do the device's queue, my.cnf and jemalloc each buy, alone and together?",
        "mydyno run demo --set campaign.seed=20240207 -o runs/demo",
        "2024-02-07 14:32 UTC",
        "Fixed: 60 s of warm-up, then a window of 60 s, 3 randomised blocks with STOCK in each; "
        "before each trial the data set is put back from its golden copy by dropping the overlay.",
        "A loop device with the caps of one azure-p15 disk, burst credits empty, stood in for the "
        "real one. Ratios carry over to such a disk; absolute numbers need not.",
        trials,
        {
            "STOCK": [],
            "KERN": _CHANGES["KERN"],
            "MYSQL": _CHANGES["MYSQL"],
            "ALL": [*_CHANGES["KERN"], *_CHANGES["MYSQL"], *_CHANGES["JE"]],
        },
        [distribution(name, "rw/16", 16 / tps, round(tps * 180)) for name, tps in truth.items()],
        _FACTS,
        3,
        0.03,
    )


def _ladder_rows(trials) -> list[Row]:
    rows = [
        row("STOCK", "rw/16", trials, None, "baseline"),
        row("KERN", "rw/16", trials, (1.03, 0.985, 1.078), "inconclusive", (0.98, 0.91, 1.06)),
        row("MYSQL", "rw/16", trials, (1.77, 1.62, 1.93), "adopt", (0.55, 0.49, 0.62)),
        row("ALL", "rw/16", trials, (1.92, 1.71, 2.15), "adopt", (0.51, 0.44, 0.58)),
    ]
    rows[1].findings.append(
        _recorded(
            "Three blocks could tell a ratio of 1.07 from 1, not less: "
            "add blocks to tell smaller ones."
        )
    )
    return rows


def sampled(blocks: int = 1, span_s: tuple[int, int] = (8, 24)) -> Result:
    """Return a campaign whose trials a sampler watched; one had no server to ask."""
    rng = random.Random(11)
    truth = {"STOCK": 371.0, "MYSQL": 655.0, "ALL": 711.0}
    trials = campaign(rng, truth, ("rw/16",), blocks=blocks, span_s=span_s)
    trials = [replace(t, gauges=gauges(rng, t)) for t in trials]
    if blocks == 1:
        deaf = [c for c in trials[-1].gauges if not c.name.startswith("innodb.")]
        trials[-1] = replace(trials[-1], gauges=deaf)
    whole = ladder()
    rows = [
        row("STOCK", "rw/16", trials, None, "baseline"),
        row("MYSQL", "rw/16", trials, (1.77, 1.62, 1.93), "adopt", (0.55, 0.49, 0.62)),
        row("ALL", "rw/16", trials, (1.92, 1.71, 2.15), "adopt", (0.51, 0.44, 0.58)),
    ]
    compared = _comparison("watched", "STOCK", {"rw/16": "ALL"}, rows, sentence="Adopt ALL.")
    return replace(
        whole, comparison=compared, trials=trials, changes={}, distributions=[], blocks=blocks
    )


def no_winner() -> Result:
    """Return an A/A campaign: no p99, no changes, no facts, a workload without threads."""
    rng = random.Random(7)
    truth = {"STOCK": 1204.0, "COPY": 1204.0, "AGAIN": 1204.0}
    trials = campaign(rng, truth, ("select",), blocks=2, span_s=(4, 24), tail=False)
    rows = [
        row("STOCK", "select", trials, None, "baseline"),
        row("COPY", "select", trials, (1.004, 0.989, 1.019), "equivalent"),
        row("AGAIN", "select", trials, (0.993, 0.978, 1.009), "equivalent"),
    ]
    return Result(
        _comparison(
            "same",
            "STOCK",
            {"select": None},
            rows,
            sentence="Leave it alone: no treatment is better than STOCK. "
            "This campaign could have told a difference of 1.9 %.",
        ),
        "",
        "mydyno run same.toml -o runs/same",
        "2024-02-08 09:00 UTC",
        "",
        "",
        trials,
        {},
        [],
        {},
        2,
        0.10,
    )


def failing() -> Result:
    """Return a campaign with a winner, a treatment that failed, and one that is unstable."""
    rng = random.Random(11)
    truth = {"STOCK": 1000.0, "POOL": 1150.0, "LARGE": 1300.0, "IO": 1200.0}
    trials = campaign(rng, truth, ("rw",), blocks=4, span_s=(4, 24), tail=True)
    lost = {("LARGE", 0), ("LARGE", 1), ("LARGE", 3), ("IO", 2)}
    trials = [_lost(t) if (t.treatment, t.block) in lost else t for t in trials]
    rows = [
        row("STOCK", "rw", trials, None, "baseline"),
        row("POOL", "rw", trials, (1.152, 1.121, 1.184), "adopt"),
        replace(row("LARGE", "rw", trials, None, "failed"), ends=Ends(trials=4, failed=3)),
        replace(
            row("IO", "rw", trials, (1.201, 1.165, 1.238), "unstable"),
            ends=Ends(trials=4, stalled=1),
        ),
    ]
    compared = _comparison(
        "failing", "STOCK", {"rw": "POOL"}, rows, sentence="POOL gives 1.15 times the throughput."
    )
    told = ("Which pool serves best?", "mydyno run failing.toml", "2024-02-08 09:00 UTC", "", "")
    return Result(compared, *told, trials, {}, [], {}, 4, 0.03)


def many() -> Result:
    """Return twenty treatments under two workloads, with failures and weaker durability."""
    rng = random.Random(20)
    names = ["as-found", *(f"{a}+{b}" for a in _PARTS[:4] for b in _PARTS[4:])][:19]
    names.append("innodb-flush-log-at-trx-commit-2-and-more"[:40])
    truth = {n: 24_000 * (1 + 0.06 * rng.gauss(0, 1)) for n in names}
    truth["as-found"], truth[names[-1]] = 24_000.0, 41_000.0
    works = ("rw/16", "write_only/32")
    trials = campaign(rng, truth, works, blocks=2, span_s=(4, 14))
    trials = [_lost(t) if t.treatment == names[3] and t.block else t for t in trials]
    rows = [row for work in works for row in _many_rows(work, truth, trials)]
    failed = next(i for i, r in enumerate(rows) if r.name == names[3])
    rows[failed] = Row(
        names[3], works[0], "failed", "same", 1, None, None, {}, findings=[_recorded("It failed.")]
    )
    winner = next(n for n in names[1:-1] if truth[n] / truth["as-found"] * 0.95 > 1)
    changed = [ChangeView("db/mysqld.sync_binlog", "1", "0", "online", "weaker")]
    spots = [distribution(n, w, 16 / truth[n], 240_000) for w in works for n in names[:6]]
    return Result(
        _comparison(
            "many",
            "as-found",
            dict.fromkeys(works, winner),
            rows,
            sentence=f"{winner} is the best of 19 treatments at the same durability.",
        ),
        "Which pair?",
        "mydyno run many.toml",
        "2024-02-09 10:00 UTC",
        "Fixed: 4 s of warm-up, a window of 10 s.",
        "",
        trials,
        dict.fromkeys(names[1:], changed),
        spots,
        {"Host": {"kernel": "6.8.0"}},
        2,
        0.03,
    )


def _many_rows(work, truth, trials) -> list[Row]:
    first, *names = truth
    rows = [row(first, work, trials, None, "baseline")]
    for name in names:
        ratio = truth[name] / truth[first]
        low, high = ratio * 0.95, ratio * 1.06
        said = "adopt" if low > 1 else "reject" if high < 1.03 else "inconclusive"
        said = "unstable" if name == names[3] else said
        tail = (1 / ratio, 0.93 / ratio, 1.08 / ratio)
        made = row(name, work, trials, (ratio, low, high), said, tail)
        rows.append(replace(made, durability="weaker" if name == names[-1] else "same"))
    return rows


def hostile() -> Result:
    """Return one block with text that tries to leave its place: markup, scripts, escapes."""
    rng = random.Random(3)
    script = "<script>document.title='owned'</script>"
    bad = "</script><img src=x onerror=alert(1)>"
    truth = {"STOCK": 90.0, bad: 95.0}
    trials = campaign(rng, truth, ("a\"b'/<b>",), blocks=1, span_s=(2, 12))
    trials.append(
        _lost(trials[-1], f"mysqld: \x1b[31mred\x1b[0m {script} {{{{ 7*7 }}}}\n]]>--><!--")
    )
    work = trials[0].workload
    rows = [
        row("STOCK", work, trials, None, "baseline"),
        row(bad, work, trials, None, "inconclusive"),
    ]
    rows[1].findings.append(
        _recorded(f"One block gives no verdict {script}: run at least 3 blocks.")
    )
    return Result(
        _comparison(
            script,
            "STOCK",
            {work: None},
            rows,
            sentence=f"One block gives no verdict on {bad}.",
            said=[f"{script} & co"],
        ),
        script,
        f"mydyno run '{script}' && echo \"&amp;\"",
        "now\x1b[2J",
        script,
        script,
        trials,
        {bad: [ChangeView(f"db/mysqld.{script}", "<i>", "&lt;", script, "weaker")]},
        [distribution(bad, work, 0.1, 12)],
        {script: {script: script}},
        1,
        0.03,
    )


CASES = {
    f.__name__.replace("_", "-"): f for f in (ladder, sampled, no_winner, failing, many, hostile)
}

_PARTS = (
    "kyber",
    "bfq",
    "none",
    "mq-deadline",
    "xfs",
    "ext4",
    "jemalloc",
    "huge-pages",
    "tcmalloc",
)


def _comparison(name, baseline, winners, rows, *, sentence, said=()) -> Comparison:
    winner, spent = next(iter(winners.values())), 390.0 * len(rows)
    return Comparison(
        name,
        "tps",
        baseline,
        spent,
        winner,
        winners,
        rows,
        sentence,
        findings=[*map(_recorded, said)],
    )


def _recorded(text: str) -> Finding:
    return Finding("recorded", {"text": text})


def _lost(trial: TrialView, error: str = "") -> TrialView:
    said = error or (
        "mysqld did not start: [ERROR] InnoDB: Cannot allocate memory for the buffer pool\n"
        "[ERROR] Plugin 'InnoDB' init function returned error.\n[ERROR] Aborting"
    )
    return TrialView(
        trial.id, trial.treatment, trial.workload, trial.block, "failed", said, (0.0, 0.0), {}, []
    )


def write(folder: Path) -> None:
    """Write what the golden pages are made of; run this file to make the stored ones anew."""
    for name, make in CASES.items():
        place = folder / name
        place.mkdir(exist_ok=True)
        (place / "result.json").write_bytes(msgspec.json.encode(make()) + b"\n")
    place = folder / "digest"
    place.mkdir(exist_ok=True)
    (place / "digest.json").write_bytes(msgspec.json.encode(small()) + b"\n")


if __name__ == "__main__":
    write(Path(__file__).parent)
