"""The sampler's file is read complete, torn, growing and hostile."""

import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mydyno.sample.probe_file import ProbeFileError, Reader, is_probe_file, read
from unit.sampler_file import HEAD, MAGIC, File, document, frame, payload, unsigned

USER = ("cpu.user", "all", "counter", 0.01)
DIRTY = ("memory.dirty", "", "gauge", 1024.0)


def small():
    file = File().define("host", USER, DIRTY)
    file.tick(0, {USER[:2]: 100, DIRTY[:2]: 7})
    file.tick(1, {USER[:2]: 150})
    file.tick(3, {USER[:2]: 175, DIRTY[:2]: 2}).note(3, "host", "clock")
    return file.tick(4, {}, gone=[DIRTY[:2]]).tick(5, {DIRTY[:2]: 2}).end(5)


def test_values_are_in_base_units_and_nothing_is_invented(tmp_path):
    found = read(small().written(tmp_path))
    assert (found.head.host, found.head.cpus) == ("db1", 2)
    assert list(found.seqs) == [0, 1, 3, 4, 5]
    np.testing.assert_allclose(found.find("cpu.user", "all"), [1.0, 1.5, 1.75, 1.75, 1.75])
    np.testing.assert_allclose(found.find("memory.dirty"), [7168, 7168, 2048, np.nan, 2048])
    np.testing.assert_allclose(found.read_at("memory.dirty"), [0.001, 1.001, 3.001, 4.001, 5.001])
    assert found.find("memory.total") is None
    assert [(n.seq, n.event) for n in found.notes] == [(3, "clock")]
    assert found.end.reason == "signal"
    np.testing.assert_allclose(found.wall_s[0], HEAD["wall_ns"] * 1e-9 + 0.001)


def test_a_file_of_the_sampler_is_known_by_how_it_begins(tmp_path):
    assert is_probe_file(small().written(tmp_path).rename(tmp_path / "host.probe"))
    (tmp_path / "table.csv").write_text("time,value,load\n")
    (tmp_path / "empty").touch()
    assert not any(is_probe_file(tmp_path / n) for n in ("table.csv", "empty", "none", "."))


def test_a_source_that_was_not_read_has_no_values(tmp_path):
    status = ("status.queries", "", "counter", 1.0)
    file = File().define("host", USER).define("server", status)
    file.tick(0, {USER[:2]: 1, status[:2]: 10}, read=("host", "server"))
    file.tick(1, {USER[:2]: 2})
    found = read(file.tick(2, {status[:2]: 30}, read=("host", "server")).written(tmp_path))
    np.testing.assert_allclose(found.find("status.queries"), [10, np.nan, 30])
    np.testing.assert_allclose(found.find("cpu.user", "all"), [0.01, 0.02, 0.02])


def test_a_column_that_comes_later_is_absent_before(tmp_path):
    file = File().define("host", USER).tick(0, {USER[:2]: 1})
    found = read(file.define("host", DIRTY).tick(1, {DIRTY[:2]: 0}).written(tmp_path))
    np.testing.assert_allclose(found.find("memory.dirty"), [np.nan, 0])


def test_differences_wrap_at_64_bits(tmp_path):
    file = File().define("host", USER).tick(0, {USER[:2]: 2**63 - 1}).tick(1, {USER[:2]: -(2**63)})
    found = read(file.written(tmp_path))
    np.testing.assert_allclose(found.find("cpu.user", "all") * 100, [2.0**63, -(2.0**63)])


def test_a_torn_tail_costs_no_more_than_itself(tmp_path):
    content = small().raw
    counts = []
    for size in range(len(content) + 1):
        path = tmp_path / "probe.bin"
        path.write_bytes(content[:size])
        try:
            counts.append(len(read(path).seqs))
        except ProbeFileError:
            counts.append(-1)  # not yet its head
    assert sorted(counts) == counts
    assert set(counts) == {-1, 0, 1, 2, 3, 4, 5}


def test_a_damaged_frame_is_named(tmp_path):
    raw = bytearray(small().raw)
    raw[len(File().define("host", USER, DIRTY).raw) + 12] ^= 1  # in the first tick
    path = tmp_path / "probe.bin"
    path.write_bytes(raw)
    with pytest.raises(ProbeFileError, match=r"probe.bin: the frame at byte .* is damaged"):
        read(path)


def test_it_grows_byte_by_byte():
    reader, seqs = Reader(), []
    raw = small().raw
    for at in range(len(raw)):
        seqs += [row.seq for row in reader.take(raw[at : at + 1])]
    assert seqs == [0, 1, 3, 4, 5]
    assert reader.end.ticks == 6


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "ends before its head"),
        (b"mydyno", "ends before its head"),
        (MAGIC, "ends before its head"),
        (b"mydyno-probe 2\n" + small().raw[15:], "one of another version"),
        (b"\x7fELF and so on", "not a file of mydyno-probe"),
        (MAGIC + frame(b"T", payload(0, 1, {})), "a tick before the head"),
        (MAGIC + document(b"H", HEAD | {"mono_ns": "now"}), "cannot be read"),
        (MAGIC + document(b"H", [1]), "cannot be read"),
        (small().raw + frame(b"T", payload(5, 1, {})), "tick 5 after tick 5"),
        (small().raw + frame(b"T", payload(2**64, 1, {})), "tick 18446744073709551616"),
        (small().raw + frame(b"T", payload(9, 1, {400: 1})), "cannot be read"),
        (small().raw + frame(b"T", payload(9, 1, {1: 1})[:-1]), "cannot be read"),
        (small().raw + frame(b"T", payload(9, 1, {1: 1}) + b"\1"), "cannot be read"),
        (small().raw + frame(b"T", b""), "cannot be read"),
        (small().raw + frame(b"T", unsigned(9) * 4 + unsigned(2**60)), "cannot be read"),
        (small().raw + frame(b"T", b"\xff" * 10**6), "cannot be read"),
        (small().raw + frame(b"T", payload(9, 1, {1: 1}) + bytes(10**6)), "cannot be read"),
        (small().raw + frame(b"N", b"[" * 10**5), "cannot be read"),
        (small().raw + b"T\xff\xff\xff\xff", "is damaged"),
        (small().raw + frame(b"C", b'[{"name": 1}]'), "cannot be read"),
        (small().raw + frame(b"C", b'[{"name": "x", "source": "y"}]'), None),
        (small().raw + frame(b"Z", b"of a later minor version"), None),
    ],
)
def test_a_file_that_is_no_probe_file_is_reported(tmp_path, raw, message):
    path = tmp_path / "probe.bin"
    path.write_bytes(raw)
    if message is None:
        read(path)
        return
    with pytest.raises(ProbeFileError, match=message) as caught:
        read(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(ProbeFileError, match="No such file"):
        read(tmp_path / "none")


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(b"THCNEX"), st.binary(max_size=40)), max_size=6))
def test_garbage_with_right_checksums_raises_nothing_else(frames):
    raw = small().raw + b"".join(frame(bytes([kind]), body) for kind, body in frames)
    reader = Reader()
    try:
        seqs = [row.seq for row in reader.take(raw)]
    except ProbeFileError:
        return
    assert seqs[:5] == [0, 1, 3, 4, 5]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_table_is_read_back(data):
    names = [(f"c{i}", "", "counter", 1.0) for i in range(data.draw(st.integers(1, 20)))]
    numbers = st.one_of(st.integers(-3, 3), st.integers(-(2**50), 2**50))
    file, want, now = File().define("host", *names), [], {}
    for seq in range(data.draw(st.integers(1, 6))):
        present = [name[:2] for name in names if name[:2] in now]
        gone = data.draw(st.lists(st.sampled_from(present), unique=True)) if present else []
        fresh = data.draw(st.dictionaries(st.sampled_from([n[:2] for n in names]), numbers))
        file.tick(seq, fresh, gone=gone)
        now = {key: value for key, value in now.items() if key not in gone} | fresh
        want.append([now.get(name[:2], np.nan) for name in names])
    reader = Reader()
    rows = list(reader.take(file.raw))
    np.testing.assert_array_equal([row.values[1:] for row in rows], want)


@pytest.mark.timed
def test_an_hour_of_a_thousand_columns_is_read_within_a_second(tmp_path):
    chance = random.Random(1)
    names = [(f"c{i}", "", "counter", 1.0) for i in range(999)]
    raw = [File().define("host", *names).raw]
    for seq in range(3600):
        deltas = dict.fromkeys(range(1000), 0) if seq == 0 else {}
        for column in chance.sample(range(1, 1000), 400):
            deltas[column] = chance.randrange(100_000)
        raw.append(frame(b"T", payload(seq, seq * 10**9, deltas | {0: 10**9})))
    path = tmp_path / "probe.bin"
    path.write_bytes(b"".join(raw))
    spent = []
    for _ in range(3):
        began = time.process_time()
        found = read(path)
        spent.append(time.process_time() - began)
    assert found.values.shape == (3600, 1000)
    assert min(spent) < 1.0, spent
