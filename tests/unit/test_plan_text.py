"""What `plan` prints: where the files would be, sizes as people write them, one answer on costs."""

import msgspec

from mydyno.campaign.treatments import Environment
from mydyno.cli.benches import Built
from mydyno.cli.plan import _place, _text, of
from mydyno.cli.recipes import SpecSource
from mydyno.host import Local
from mydyno.sample import Facts

SPEC = """
[treatments.STOCK]
[treatments.BIG]
"mysqld.innodb_buffer_pool_size" = "50%"
"mysqld.sort_buffer_size" = 1048576
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_only"
"""


def built(more=""):
    environment = Environment(8 << 30, 2, "mariadb", (10, 11))
    source = SpecSource(SPEC + more, "x.toml", {})
    facts = Facts(8 << 30, 2, {})
    campaign = source.plan(environment)
    made = Built(campaign, environment, Local(), facts, "mariadbd 10.11", "", (), lambda _: None)
    return made, source


def text(more="", place=""):
    found = of(*built(more))
    return _text(msgspec.structs.replace(found, place=place))


def test_sizes_have_units():
    shown = text()
    assert "mysqld.innodb_buffer_pool_size = 4 GiB   (restart)" in shown
    assert "mysqld.sort_buffer_size = 1 MiB   (restart)" in shown


def test_a_server_that_keeps_running_is_changed_online():
    shown = text('[design]\nkind = "switchback"\nbudget = "1h"\n')
    assert "mysqld.sort_buffer_size = 1 MiB   (online)" in shown


def test_the_files_are_named():
    assert "files       runs/x/work (ext4 on /dev/sda1" in text(
        place="runs/x/work (ext4 on /dev/sda1"
    )


def test_on_an_existing_server_the_data_are_in_a_database_of_it():
    made, _ = built('[stack]\nserver = "existing:/root/.my.cnf"\n')
    assert _place(made) == (
        "database mydyno_bench of that server: 1 data set, dropped when the campaign ends"
    )
