"""The cells, commands and refusals of the two sysbench adapters."""

import msgspec
import pytest

from mydyno.loads import Target, sysbench, sysbench_fileio, sysbench_oltp
from mydyno.model import SpecError


@pytest.fixture
def target(tmp_path):
    password_file = tmp_path / "client.cnf"
    password_file.write_text("[client]\nuser=u\npassword=secret\n")
    return Target(
        work=tmp_path,
        directory=tmp_path / "files",
        socket="/run/x.sock",
        password_file=password_file,
        database="sbtest",
    )


def oltp(**keys):
    keys = {"script": "oltp_read_write"} | keys
    return sysbench_oltp.cells("rw", msgspec.convert(keys, sysbench_oltp.OltpParams))


def fileio(**keys):
    keys = {"test_mode": "rndrd"} | keys
    return sysbench_fileio.cells("io", msgspec.convert(keys, sysbench_fileio.FileioParams))


def test_each_thread_count_is_a_cell_of_its_own():
    assert [cell.info.name for cell in oltp(threads=[16, 32])] == ["rw/16", "rw/32"]
    assert [cell.info.name for cell in oltp(threads=4)] == ["rw/4"]
    assert [cell.info.name for cell in fileio(threads=[1, 24])] == ["io/1", "io/24"]
    assert {cell.info.response for cell in oltp()} == {"tps"}
    assert {cell.info.response for cell in fileio()} == {"iops"}


def test_the_response_of_the_spec_is_used():
    params = sysbench_oltp.OltpParams("oltp_read_only")
    (cell,) = sysbench_oltp.cells("ro", params, "latency_p99_s")
    assert cell.info.response == "latency_p99_s"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"script": "oltp_read_writ"}, "workloads.rw.script = 'oltp_read_writ'"),
        ({"tables": 0}, "workloads.rw.tables = 0: must be from 1"),
        ({"table_size": 0}, "workloads.rw.table_size = 0"),
        ({"rate": -1}, "workloads.rw.rate = -1"),
        ({"threads": 0}, "workloads.rw.threads = 0"),
        ({"threads": []}, "at least one"),
        ({"threads": [8, 8]}, "each count once"),
        ({"options": {"range-sise": 5}}, "did you mean 'range_size'?"),
        ({"options": {"time": 5}}, "mydyno sets itself"),
        ({"options": {"mysql-password": "x"}}, "mysql_password: unknown option"),
        ({"options": {"random_points": 5}}, "random_points"),
        ({"script": "select_random_points", "tables": 2}, "one table only"),
        ({"script": "bulk_insert", "tables": 2}, "one empty table for each thread"),
    ],
)
def test_a_wrong_key_is_named(keys, words):
    with pytest.raises(SpecError, match=words.replace("?", r"\?")):
        oltp(**keys)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"file_num": 0}, "workloads.io.file_num = 0"),
        ({"fsync_freq": -1}, "fsync_freq"),
        ({"file_total_size": "20 GB"}, "file_total_size = '20 GB'"),
        ({"block_size": "16KiB"}, "block_size"),
        ({"file_num": 128, "file_total_size": "1M", "block_size": "16K"}, "block_size = 16384"),
        (
            {"file_num": 3, "file_total_size": "1M", "extra_flags": ["direct"]},
            "full blocks",
        ),
        ({"options": {"file_rw_ration": 2}}, "did you mean 'file_rw_ratio'"),
        ({"options": {"time": 2}}, "time"),
    ],
)
def test_a_wrong_key_of_fileio_is_named(keys, words):
    with pytest.raises(SpecError, match=words):
        fileio(**keys)


@pytest.mark.parametrize("response", ["qps", ""])
def test_an_unknown_response_is_refused(response):
    if response:
        with pytest.raises(SpecError, match="must be one of tps, reads"):
            sysbench_oltp.cells("rw", sysbench_oltp.OltpParams("oltp_insert"), response)
        with pytest.raises(SpecError, match="must be one of iops"):
            sysbench_fileio.cells("io", sysbench_fileio.FileioParams("rndrd"), response)


def test_unknown_keys_and_modes_do_not_decode():
    with pytest.raises(msgspec.ValidationError, match="table_sizes"):
        oltp(table_sizes=5)
    with pytest.raises(msgspec.ValidationError, match="test_mode"):
        fileio(test_mode="random")


def test_cells_that_use_the_same_rows_share_a_data_key():
    reading, writing = oltp(script="oltp_read_only"), oltp(script="oltp_write_only", threads=9)
    assert reading[0].info.data_key == writing[0].info.data_key
    assert "2x500" in oltp(tables=2, table_size=500)[0].info.data_key


@pytest.mark.parametrize(
    "keys",
    [
        {"tables": 2},
        {"table_size": 5},
        {"options": {"auto-inc": False}},
        {"options": {"create_secondary": "off"}},
        {"options": {"rand-type": "uniform"}},
        {"script": "bulk_insert"},
        {"script": "oltp_insert", "options": {"auto_inc": False}},
    ],
)
def test_what_shapes_the_rows_shapes_the_data_key(keys):
    assert oltp(**keys)[0].info.data_key != oltp()[0].info.data_key


def test_what_does_not_shape_the_rows_leaves_the_data_key():
    assert (
        oltp(options={"range_size": 5, "mysql_ssl": True})[0].info.data_key
        == oltp()[0].info.data_key
    )
    assert oltp(options={"auto-inc": True})[0].info.data_key == oltp(
        options={"auto_inc": True})[0].info.data_key  # fmt: skip


def test_bulk_insert_has_a_table_for_each_thread():
    four, eight = oltp(script="bulk_insert", threads=[4, 8])
    assert four.info.data_key != eight.info.data_key


def test_fileio_modes_share_their_files():
    assert (
        fileio()[0].info.data_key
        == fileio(test_mode="seqwr", block_size="4K", threads=9)[0].info.data_key
    )
    assert fileio()[0].info.data_key != fileio(file_num=8)[0].info.data_key


def test_the_load_is_endless_seeded_and_reports_every_second(target):
    (cell,) = oltp(tables=3, rate=50, options={"skip-trx": True, "range_size": 5})
    argv = cell.run(target, 7, {"LD_PRELOAD": "/x.so"}).argv
    assert argv[:4] == ("env", "LD_PRELOAD=/x.so", "MYDYNO_SCRIPT=oltp_read_write", "LC_ALL=C")
    assert set(argv) >= {
        "--tables=3", "--table-size=10000", "--rate=50", "--rand-seed=7", "--skip_trx=on",
        "--range_size=5", "--time=0", "--events=0", "--report-interval=1", "run",
    }  # fmt: skip


@pytest.mark.parametrize("seed", [0, 2**31 - 1, 2**63])
def test_the_seed_is_never_the_one_that_means_the_clock(target, seed):
    argv = oltp()[0].run(target, seed, {}).argv
    (given,) = (int(word.partition("=")[2]) for word in argv if word.startswith("--rand-seed="))
    assert 0 < given < 2**31


def test_no_argument_holds_the_user_or_the_password(target):
    (cell,) = oltp()
    actions = [*cell.prepare(target), cell.run(target, 1, {}), *cell.describe()]
    words = " ".join(word for action in actions for word in action.argv)
    assert "secret" not in words
    assert not any(action.stdin for action in actions)


def test_tables_are_dropped_before_they_are_made(target):
    commands = [action.argv[-1] for action in oltp()[0].prepare(target)]
    assert commands == ["cleanup", "prepare", "settle"]


def test_fileio_runs_in_the_target_directory_with_the_spec_options(target):
    (cell,) = fileio(extra_flags=["direct", "dsync"], options={"file-io-mode": "async"})
    argv = cell.run(target, 3, {"A": "b"}).argv
    assert argv[:5] == ("env", "-C", str(target.directory), "A=b", "LC_ALL=C")
    assert set(argv) >= {
        "--file-extra-flags=direct,dsync", "--file_io_mode=async", "--file-block-size=16384",
        "--file-fsync-freq=0", "--rand-seed=3", "--time=0",
    }  # fmt: skip


def test_every_bundled_script_has_options():
    for script in sysbench.SCRIPTS:
        assert "db_ps_mode" in sysbench.known(script)


REPORT = (
    b"sysbench 1.0.20 (using system LuaJIT 2.1.0)\n"
    b"[ 1s ] reads: 31.25 MiB/s writes: 0.00 MiB/s fsyncs: 0.00/s latency (ms,99%): 2.568\n"
)


@pytest.mark.parametrize(
    ("options", "threads"),
    [
        ({}, 16),
        ({"file_io_mode": "mmap"}, 16),
        ({"file_io_mode": "async"}, 0),
        ({"file_merged_requests": 8}, 0),
    ],
)
def test_the_threads_of_files_count_where_each_waits_for_each_request(options, threads):
    (cell,) = fileio(threads=16, options=options)
    ((interval,),) = [list(cell.parse(REPORT.splitlines(keepends=True)))]
    assert (interval.values["iops"], interval.threads) == (2000, threads)
    if not threads:
        params = sysbench_fileio.FileioParams("rndrd", options=options)
        with pytest.raises(SpecError, match="must be one of iops"):
            sysbench_fileio.cells("io", params, "latency_mean_s")
