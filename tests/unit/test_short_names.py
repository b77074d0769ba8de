"""Names of a grid's cells are short in tables, and a legend has their values."""

from mydyno.report.names import legend, short_names

GRID = [
    "innodb_io_capacity=200,innodb_flush_method=fsync",
    "innodb_io_capacity=200,innodb_flush_method=O_DIRECT",
    "innodb_io_capacity=2000,innodb_flush_method=O_DIRECT",
]


def test_a_cell_is_named_by_the_numbers_of_its_levels():
    assert list(short_names(["STOCK", *GRID]).values()) == ["STOCK", "a1 b1", "a1 b2", "a2 b2"]
    assert legend(GRID) == [
        "a  innodb_io_capacity: a1 200, a2 2000",
        "b  innodb_flush_method: b1 fsync, b2 O_DIRECT",
    ]


def test_short_names_and_names_of_people_stay():
    names = ["STOCK", "pool=8", "pool=16", "a treatment with quite a long name of its own"]
    assert short_names(names) == dict(zip(names, names, strict=True))
    assert legend(names) == []


def test_a_value_may_have_commas_and_equals_signs():
    names = ["mount=noatime,data=writeback,scheduler=none", "mount=relatime,scheduler=mq-deadline"]
    assert list(short_names(names).values()) == ["a1 b1", "a2 b2"]
    assert legend(names)[0] == "a  mount: a1 noatime,data=writeback, a2 relatime"


def test_a_name_that_a_person_gave_is_never_shadowed():
    assert short_names([*GRID, "a1 b1"])[GRID[0]] == GRID[0]


def test_names_that_hold_one_setting_each_are_no_cells():
    """As an audit names what it proposes: they have no key in common, and stay as they are."""
    names = ["FOUND", "FOUND+general_log=OFF", "FOUND+sort_buffer_size=256K"]
    assert short_names(names) == dict(zip(names, names, strict=True))
    assert legend(names) == []
