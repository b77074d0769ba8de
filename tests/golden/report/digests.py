"""Seeded digests to make pages of: a shop's morning in windows, hostile text, and nothing."""

import math
import random

_JOIN = (
    "select o.id, o.total, c.name from orders o join customers c on c.id = o.customer "
    "where o.placed >= ? and o.placed < ? and c.region in(?+) order by o.placed desc limit ?"
)
_STATEMENTS = (  # verb, fingerprint, events, middle in s, spread, rows examined a call
    ("select", "select c from sbtest1 where id=?", 4.0e5, 0.0021, 0.5, 1),
    ("select", "select c from sbtest1 where id between ? and ?", 9.0e4, 0.0062, 0.6, 100),
    (
        "select",
        _JOIN,
        1800,
        0.81,
        0.9,
        48_211,
    ),
    ("update", "update sbtest1 set k=k+? where id=?", 9.1e4, 0.0049, 0.8, 1),
    ("commit", "commit", 9.0e4, 0.0066, 0.9, 0),
    ("insert", "insert into sbtest1 (id, k, c, pad) values(?+)", 8.7e4, 0.0039, 0.7, 0),
    ("delete", "delete from sbtest1 where id=?", 8.7e4, 0.0041, 0.7, 1),
    ("call", "call nightly_rollup(?)", 3, 41.7, 0.2, 9_400_000),
    ("select", "select sleep(?)", 12, 1.0, 0.01, 0),
    ("admin", "administrator command: Ping", 5200, 0.00004, 0.3, 0),
)


def shop(windows: int = 60) -> dict[str, object]:
    """Return ten classes of statements over an hour, some of them rare and slow."""
    rng = random.Random(5)
    classes = [_class(rng, i, about) for i, about in enumerate(_STATEMENTS)]
    classes.sort(key=lambda c: -c["metrics"]["query_time_s"]["sum"])
    return _digest(classes, [_window(rng, classes, i) for i in range(windows)])


def hostile() -> dict[str, object]:
    """Return a digest whose every text tries to leave its place."""
    rng = random.Random(6)
    bad = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>\"'`\x1b[2J"
    text = f"select '{bad}' \u202etxet desrever\u202c {'x' * 3000}"
    made = _class(rng, 1, (bad, text, 7, 0.3, 1, 5))
    names = {bad: 3, "": 2, "a" * 300: 1, "…": 1}
    made |= {"users": names, "hosts": names, "databases": names, "flags": {bad: 1}}
    made["metrics"][f"{bad}_s"] = made["metrics"]["lock_time_s"]
    made["example"] = {
        "query": f"{bad}\n{bad} \ud800 {'y' * 30_000}",
        "query_time_s": 1.5,
        "at": bad,
    }
    found = _digest([made], [_window(rng, [made], 0)])
    found["windows"].append({"start": bad, "end": bad, "events": 1, "classes": []})
    found["summary"]["files"] = [{"name": bad, "bytes": 1}]
    found["summary"]["oddities"] = {"forged_headers": 3, "cut_events": 0}
    return found


def small() -> dict[str, object]:
    """Return three classes in three windows: little enough to be read as a golden page."""
    complete = shop(windows=3)
    classes = complete["classes"][:3]
    for each in classes:
        for metric in each["metrics"].values():
            metric["histogram"] = metric["histogram"][::6]
    return complete | {"classes": classes}


def nothing() -> dict[str, object]:
    """Return the digest of an empty log."""
    return {"digest": 1, "summary": {"events": 0, "classes": 0}, "classes": [], "windows": []}


def _digest(classes, windows):
    def total(name):
        return sum(c["metrics"][name]["sum"] for c in classes)

    spent = total("query_time_s")
    for each in classes:
        each["share"] = each["metrics"]["query_time_s"]["sum"] / spent
    summary = {
        "events": sum(c["events"] for c in classes),
        "events_weighted": sum(c["events"] for c in classes),
        "query_time_s": round(spent, 6),
        "lock_time_s": round(total("lock_time_s"), 6),
        "rows_sent": int(total("rows_sent")),
        "rows_examined": int(total("rows_examined")),
        "classes": len(classes),
        "bytes": 318_412_001,
        "first_seen": "2026-03-02T08:00:00.000000Z",
        "last_seen": "2026-03-02T08:59:59.812000Z",
        "files": [{"name": "slow.log", "bytes": 318_412_001}],
        "oddities": {"forged_headers": 0, "cut_events": 1},
        "filtered": 0,
    }
    return {"digest": 1, "summary": summary, "classes": classes, "windows": windows}


def _class(rng, number, about):
    verb, text, events, middle_s, spread, examined = about
    events = int(events)
    return {
        "id": f"{rng.getrandbits(64):016X}",
        "fingerprint": text,
        "verb": verb,
        "events": events,
        "events_weighted": events,
        "first_seen": "2026-03-02T08:00:01Z",
        "last_seen": f"2026-03-02T08:{59 - number}:58Z",
        "metrics": {
            "query_time_s": _metric(rng, events, middle_s, spread),
            "lock_time_s": _metric(rng, events, middle_s / 60, spread),
            "rows_sent": _plain(events, min(examined, 20)),
            "rows_examined": _plain(events, examined),
            "bytes_sent_bytes": _plain(events, 212),
        },
        "flags": {"full_scan": events} if examined > 1000 else {},
        "users": {"shop": events - events // 9, "batch": events // 9},
        "hosts": {"10.0.4.17": events},
        "databases": {"shop": events},
        "example": {
            "query": text.replace("?+", "1, 2, 3").replace("?", "17"),
            "query_time_s": round(middle_s * math.exp(3 * spread), 6),
            "at": "2026-03-02T08:31:07.120000Z",
        },
    }


def _metric(rng, events, middle_s, spread):
    drawn = sorted(middle_s * math.exp(rng.gauss(0, spread)) for _ in range(min(events, 4000)))
    scale, wide = events / len(drawn), 1.047
    found: dict[int, int] = {}
    for value in drawn:
        place = math.floor(math.log(value) / math.log(wide))
        found[place] = found.get(place, 0) + 1
    at = [drawn[int(p * (len(drawn) - 1))] for p in (0.5, 0.95, 0.99)]
    mean = sum(drawn) / len(drawn)
    return {
        "count": events,
        "sum": mean * events,
        "mean": mean,
        "min": drawn[0],
        "max": drawn[-1],
        **dict(zip(("p50", "p95", "p99"), at, strict=True)),
        "histogram": [
            [wide**k, wide ** (k + 1), max(round(n * scale), 1)] for k, n in sorted(found.items())
        ],
    }


def _plain(events, each):
    same = dict.fromkeys(("mean", "min", "max", "p50", "p95", "p99"), each)
    return {"count": events, "sum": events * each, **same, "histogram": []}


def _window(rng, classes, minute):
    parts = []
    for c in classes:
        wave = 1 + 0.5 * math.sin(minute / 9) + rng.gauss(0, 0.08)
        spent = max(c["metrics"]["query_time_s"]["sum"] / 60 * wave, 0.0)
        parts.append({"id": c["id"], "events": c["events"] // 60, "query_time_s": spent})
    return {
        "start": f"2026-03-02T08:{minute:02}:00.000000Z",
        "end": f"2026-03-02T08:{minute + 1:02}:00.000000Z"
        if minute < 59
        else "2026-03-02T09:00:00Z",
        "events": sum(p["events"] for p in parts),
        "query_time_s": sum(p["query_time_s"] for p in parts),
        "classes": parts,
    }
