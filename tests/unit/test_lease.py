"""What a lease changes on trial and for good, planned from what was read of a host; no host."""

from contextlib import nullcontext
from dataclasses import replace

import msgspec
import pytest

from mydyno.audit.facts import ServerEvidence
from mydyno.cli import leases
from mydyno.cli.apply import with_persisted
from mydyno.host import Local
from mydyno.host.protocol import Completed
from mydyno.keep.drift import HostFiles, Remount, Scene
from mydyno.keep.kept import Kept, KeptOn
from mydyno.keep.lease import (
    Held,
    Landed,
    Lease,
    LeaseChange,
    LeaseNote,
    kept_leases,
    named_after,
    not_in_force,
    planned,
    undone,
)
from mydyno.keep.refusals import (
    managed_files,
    managers,
    refuse,
    refuse_another,
    refuse_edited,
    refuse_foreign_files,
)
from mydyno.model import RefusedError, SpecError
from mydyno.report.lease import render_leases, render_plan
from mydyno.server.existing import Existing, ServerProcess

UNIT = '[Service]\nExecStart=/bin/sh -c "exec mariadbd $MYSQLD_OPTS"\n'
DIRECT = """[Service]
ExecStart=/usr/sbin/mysqld --old
ExecStart=
ExecStart=/usr/sbin/mysqld \\
  --defaults-file=/etc/my.cnf
"""
HOST = {
    "limits": "Max open files            32768                32768                files",
    "maps": "",
    "unit": "mariadb.service\n",
    "mount": "ext4 rw,relatime",
}
VARIABLES = {
    "max_connections": "151",
    "innodb_log_buffer_size": "16777216",
    "innodb_data_file_path": "ibdata1:12M:autoextend",
    "optimizer_switch": "a=on,b=off",
    "log_bin": "OFF",
}
TARGET = KeptOn(
    "mariadb.service", "/etc/mysql/mariadb.conf.d", "sdc", "/dev/a /data ext4 rw 0 0\n", "/data"
)
OPTIONS = "/etc/mysql/mariadb.conf.d/zz-mydyno.cnf"


def seen(**changes):
    """Return what is read of a server."""
    fields = {
        "name": "db1",
        "flavour": "mariadb",
        "version": (10, 11, 6),
        "text": "10.11.6",
        "variables": VARIABLES,
        "looks": ({}, {}),
        "host": HOST,
    }
    return ServerEvidence(**{**fields, **changes})


def scene(
    texts=None, *, unit=UNIT, dynamic=("max_connections",), values=None, environment=None, **of
):
    """Return what a lease is planned from; `of` are fields of it, and outputs of the host."""
    files = HostFiles(values or {"/proc/sys/vm/swappiness": "60\n"})
    commands = ("mount", "forth"), ("mount", "back")
    remount = Remount("rw,relatime", "rw,noatime", *commands, added=frozenset(of.pop("added", ())))
    shown = {name: of.pop(name) for name in ("maps", "mount", "sysctl_files") if name in of}
    there = seen(host={**HOST, **shown})
    own = environment or {}
    return Scene(there, files, texts or {}, unit, own, frozenset(dynamic), remount, **of)


def kept(**settings):
    """Return a treatment of this host; two underscores are a dot."""
    named = {key.replace("__", "."): value for key, value in settings.items()}
    return Kept(named, ["evidence"], {}, "mariadb", (10, 11, 6), TARGET)


def test_what_can_be_set_online_is_no_restart():
    plan = planned(
        kept(mysqld__max_connections="300", kernel__sysctl__vm__swappiness="1"), {}, scene()
    )
    assert not plan.restart
    assert [(c.kind, c.place, c.before, c.wanted) for c in plan.trial] == [
        ("value", "/proc/sys/vm/swappiness", "60", "1"),
        ("variable", "max_connections", "151", "300"),
    ]
    assert [c.place for c in plan.stored] == [OPTIONS, "/etc/sysctl.d/90-mydyno.conf"]
    assert {row.cost for row in plan.rows} == {"online"}
    shown = render_plan("db1", plan, ["1.31 [1.22..1.41]"], 1800, 80, None)
    assert "no restart" in shown
    assert "evidence: 1.31" in shown


DIRTY = {"/proc/sys/vm/dirty_bytes": "0\n", "/proc/sys/vm/dirty_ratio": "20\n"}
IN_BYTES = {"/proc/sys/vm/dirty_bytes": "8192\n", "/proc/sys/vm/dirty_ratio": "0\n"}


def test_of_a_pair_in_two_units_the_other_one_is_restored_too():
    """The kernel takes no zero for dirty_bytes, so the lease could never be reverted."""
    along = {"kernel.sysctl.vm.dirty_bytes": {"kernel.sysctl.vm.dirty_ratio": ["20"]}}
    plan = planned(
        kept(kernel__sysctl__vm__dirty_bytes="8192"), {}, scene(values=DIRTY, along=along)
    )
    (change,) = plan.trial
    assert (change.place, change.before) == ("/proc/sys/vm/dirty_bytes", "0")
    assert change.along == {"/proc/sys/vm/dirty_ratio": "20"}
    assert plan.along == {"kernel.sysctl.vm.dirty_ratio": "20"}


def test_a_kept_pair_is_undone_by_the_one_that_is_not_zero():
    first = kept(kernel__sysctl__vm__dirty_bytes="0", kernel__sysctl__vm__dirty_ratio="20")
    along = {"kernel.sysctl.vm.dirty_ratio": {"kernel.sysctl.vm.dirty_bytes": ["8192"]}}
    plan = undone(held(1), first, scene({OPTIONS: "text"}, values=IN_BYTES, along=along))
    (change,) = plan.trial
    assert (change.place, change.wanted) == ("/proc/sys/vm/dirty_ratio", "20")
    assert change.along == {"/proc/sys/vm/dirty_bytes": "8192"}
    assert len(plan.rows) == 2


HUGE = "/sys/kernel/mm/transparent_hugepage/enabled"
FREE, FREE_KEY = "/proc/sys/vm/min_free_kbytes", "kernel.sysctl.vm.min_free_kbytes"


def test_free_memory_that_huge_pages_move_is_restored_after_them():
    """The kernel moves it with each change, so a value that is set before is lost."""
    values = {HUGE: "always madvise [never]\n", FREE: "11264\n"}
    along = {"kernel.thp": {"kernel.sysctl.vm.min_free_kbytes": ["11264"]}}
    settings = {"kernel__thp": "always", "kernel__sysctl__vm__min_free_kbytes": "67584"}
    plan = planned(kept(**settings), {}, scene(values=values, along=along))
    assert [(change.place, change.along) for change in plan.trial] == [
        (HUGE, {FREE: "11264"}),
        (FREE, {}),
    ]


QUEUE = "/sys/block/sdc/queue"


def test_a_scheduler_comes_before_the_queue_that_it_resets_and_all_of_that_is_restored():
    values = {f"{QUEUE}/scheduler": "none [mq-deadline]\n", f"{QUEUE}/nr_requests": "77\n"}
    along = {"block.scheduler": {"block.nr_requests": ["77"], "block.iosched.read_expire": ["321"]}}
    plan = planned(
        kept(block__nr_requests="77", block__scheduler="none"),
        {},
        scene(values=values, along=along),
    )
    assert [change.place for change in plan.trial] == [f"{QUEUE}/scheduler", f"{QUEUE}/nr_requests"]
    assert plan.trial[0].along == {
        f"{QUEUE}/nr_requests": "77",
        f"{QUEUE}/iosched/read_expire": "321",
    }
    assert plan.trial[1].along == {}
    assert plan.along == {"block.nr_requests": "77"}
    in_force = scene(values={**values, f"{QUEUE}/scheduler": "[none] mq-deadline\n"})
    with pytest.raises(SpecError, match="in force there already"):
        planned(kept(block__nr_requests="77", block__scheduler="none"), {}, in_force)


@pytest.mark.parametrize("key", ["net.transport", "link.rate"])
def test_what_is_no_setting_of_a_host_is_no_move_of_its_data(key):
    with pytest.raises(
        RefusedError, match=f"^{key}: cannot be applied to a production host; .* TOML file"
    ):
        refuse(kept(**{key.replace(".", "__"): "x"}), seen())


def of_an_array(scheduler, depth):
    """Return a treatment of two disks, and what is read of them: each one's, in order."""
    wanted = kept(block__scheduler="none", block__read_ahead_kb="64")
    values = {}
    for disk, now in zip(("sdc", "sdd"), scheduler, strict=True):
        queue = f"/sys/block/{disk}/queue"
        values |= {f"{queue}/scheduler": now, f"{queue}/read_ahead_kb": "128"}
    along = {"block.scheduler": {"block.nr_requests": depth}}
    wanted = replace(wanted, target=replace(TARGET, disk="sdc,sdd", serial="ID_WWN=0x5,"))
    return wanted, {}, scene(values=values, along=along)


def test_the_disks_of_an_array_are_set_one_by_one_and_kept_in_one_file():
    plan = planned(*of_an_array(("mq-deadline", "mq-deadline"), ("77", "77")))
    assert [(change.place, change.along) for change in plan.trial] == [
        ("/sys/block/sdc/queue/scheduler", {"/sys/block/sdc/queue/nr_requests": "77"}),
        ("/sys/block/sdd/queue/scheduler", {"/sys/block/sdd/queue/nr_requests": "77"}),
        ("/sys/block/sdc/queue/read_ahead_kb", {}),
        ("/sys/block/sdd/queue/read_ahead_kb", {}),
    ]
    (rules,) = plan.stored
    assert rules.wanted.count('ENV{ID_WWN}=="0x5"') == rules.wanted.count('KERNEL=="sdd"') == 2
    assert plan.along == {"block.nr_requests": "77"}


def test_disks_of_an_array_that_differ_are_refused():
    for there in (("none", "bfq"), ("77", "77")), (("bfq", "bfq"), ("77", "32")):
        with pytest.raises(RefusedError, match="on sdc,sdd; set the disks alike first"):
            planned(*of_an_array(*there))


def test_tunables_are_those_of_the_allocator_in_force():
    plan = planned(
        kept(alloc__tunables="narenas:2"), {}, scene(maps="jemalloc", running={"LD_PRELOAD": "j"})
    )
    (change,) = plan.trial
    assert 'Environment="MALLOC_CONF=narenas:2"\n' in change.wanted
    assert "GLIBC_TUNABLES" not in change.wanted
    assert [row.key for row in plan.rows] == ["alloc.tunables"]
    assert "MALLOC_CONF=narenas:2" in plan.stored[0].wanted


def test_kept_tunables_are_undone_although_a_file_still_sets_them():
    there = scene({OPTIONS: "text"}, maps="jemalloc", running={"MALLOC_CONF": "narenas:2"})
    plan = undone(held(1), kept(alloc__tunables=""), there)
    assert "UnsetEnvironment=MALLOC_CONF\n" in plan.trial[0].wanted
    assert not_in_force(plan.rows, kept(alloc__tunables=""), scene(maps="jemalloc")) == []


def test_one_restart_takes_all_variables_along():
    plan = planned(
        kept(
            mysqld__max_connections="300",
            mysqld__innodb_log_buffer_size="32M",
            limits__nofile="65536",
        ),
        {},
        scene(environment={"MYSQLD_OPTS": "--theirs"}),
    )
    (change,) = plan.trial
    assert plan.restart
    assert "MYDYNO_LEASE=l-1\n" in named_after("l-1", change).wanted
    assert change.place == "/run/systemd/system/mariadb.service.d/zzz-mydyno-trial.conf"
    assert change.before is None
    assert change.wanted == (
        "[Service]\nEnvironment=MYDYNO_LEASE=@\nLimitNOFILE=65536\n"
        'Environment="MYSQLD_OPTS=--theirs --max_connections=300 --innodb_log_buffer_size=32M"\n'
    )


def test_a_unit_that_starts_the_server_itself_gets_its_last_command_with_the_options():
    plan = planned(kept(mysqld__innodb_log_buffer_size="32M"), {}, scene(unit=DIRECT))
    assert plan.trial[0].wanted == (
        "[Service]\nEnvironment=MYDYNO_LEASE=@\nExecStart=\n"
        "ExecStart=/usr/sbin/mysqld    --defaults-file=/etc/my.cnf --innodb_log_buffer_size=32M\n"
    )


def test_a_unit_that_starts_a_script_is_refused():
    unit = "[Service]\nExecStart=/opt/start-db.sh\n"
    with pytest.raises(RefusedError, match="takes no options from a drop-in"):
        planned(kept(mysqld__innodb_log_buffer_size="32M"), {}, scene(unit=unit))


def test_a_value_that_would_split_is_refused():
    with pytest.raises(RefusedError, match="cannot be given to the server's unit"):
        planned(kept(mysqld__innodb_data_file_path="a b"), {}, scene())


def test_a_first_value_that_no_undo_could_give_to_the_unit_is_refused_before_it_is_kept():
    there = replace(scene(), seen=seen(variables={"ft_stopword_file": "/a b"}))
    with pytest.raises(RefusedError, match=r"'/a b' cannot be given to the server's unit"):
        planned(kept(mysqld__ft_stopword_file="/words"), {}, there)


def test_options_that_a_drop_in_would_not_reach_are_refused_before_the_restart():
    """Those of an EnvironmentFile= win over Environment=, and wait for no start of ours."""
    wanted = kept(mysqld__innodb_log_buffer_size="32M")
    there = scene(running={"MYSQLD_OPTS": "--theirs"})
    with pytest.raises(RefusedError, match=r"mariadb.service: the server's MYSQLD_OPTS is not"):
        planned(wanted, {}, there)
    of_a_lease = {**there.running, "MYDYNO_LEASE": "l-1"}
    for good in (
        replace(there, environment=there.running),
        replace(there, running=of_a_lease),
    ):
        assert planned(wanted, {}, good).restart


def test_the_binary_log_is_switched_and_not_named():
    plan = planned(kept(mysqld__log_bin="ON"), {}, scene())
    assert '--log_bin"' in plan.trial[0].wanted
    assert plan.stored[0].wanted.endswith("[mysqld]\nlog_bin\n")
    with pytest.raises(RefusedError, match="need the log that there is"):
        refuse(kept(mysqld__log_bin="OFF"), seen(variables={"log_bin": "ON"}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"mysqld__max_connections": "151"}, "in force there already"),
        ({"mysqld__optimizer_switch": "B=OFF"}, "in force there already"),
        ({"kernel__sysctl__vm__nothing": "1"}, "cannot be read"),
    ],
)
def test_what_changes_nothing_or_cannot_be_read_is_an_error(settings, words):
    with pytest.raises(SpecError, match=words):
        planned(kept(**settings), {}, scene())


POOL = {
    "innodb_buffer_pool_size": str(48 << 30),
    "innodb_buffer_pool_chunk_size": str(128 << 20),
    "innodb_buffer_pool_instances": "8",
    "innodb_io_capacity": "1000",
    "innodb_io_capacity_max": "2000",
    "innodb_doublewrite": "DETECT_ONLY",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("innodb_buffer_pool_size", "8G"),
        ("innodb_io_capacity", "5000"),
        ("innodb_doublewrite", "1"),
    ],
)
def test_a_value_is_in_force_where_it_is_or_the_server_has_rounded_it(name, value):
    """A pool that was raised to 48G and is to be 8G again is not undone by doing nothing."""
    there = replace(scene(dynamic=POOL), seen=seen(variables=POOL))
    wanted = kept(**{f"mysqld__{name}": value})
    (row,) = planned(wanted, {}, there).rows
    assert not_in_force([row], wanted, there)


def test_a_pool_that_was_rounded_up_to_chunks_is_in_force():
    there = replace(scene(dynamic=POOL), seen=seen(variables=POOL))
    with pytest.raises(SpecError, match="in force there already"):
        planned(kept(mysqld__innodb_buffer_pool_size="48642M"), {}, there)


def test_a_bound_rises_before_what_it_bounds_and_falls_after_it():
    there = replace(scene(dynamic=POOL), seen=seen(variables=POOL))
    for own, most in (("5000", "9000"), ("200", "400")):
        wanted = kept(mysqld__innodb_io_capacity=own, mysqld__innodb_io_capacity_max=most)
        names = [one.place for one in planned(wanted, {}, there).trial]
        assert (names[0] == "innodb_io_capacity_max") == (own == "5000")


PAGES = {"innodb_max_dirty_pages_pct": "50", "innodb_max_dirty_pages_pct_lwm": "20"}


def test_a_lower_bound_falls_before_what_it_bounds_and_rises_after_it():
    there = replace(scene(dynamic=PAGES), seen=seen(variables=PAGES))
    for most, least in (("90", "60"), ("10", "5")):
        settings = dict(zip(PAGES, (most, least), strict=True))
        wanted = kept(**{f"mysqld__{name}": value for name, value in settings.items()})
        names = [one.place for one in planned(wanted, {}, there).trial]
        assert (names[0] == "innodb_max_dirty_pages_pct_lwm") == (most == "10")


def test_a_bound_that_the_server_would_move_is_restored_with_what_it_bounds():
    first, along = "mysqld.innodb_io_capacity_max", {}
    along["mysqld.innodb_io_capacity"] = {first: ["2000"]}
    there = replace(scene(dynamic=POOL, along=along), seen=seen(variables=POOL))
    plan = planned(kept(mysqld__innodb_io_capacity="20K"), {}, there)
    assert [(one.place, one.before, one.wanted) for one in plan.trial] == [
        ("innodb_io_capacity_max", "2000", "40960"),
        ("innodb_io_capacity", "1000", "20480"),
    ]
    assert plan.along == {first: "2000"}
    assert [row.key for row in plan.rows] == ["mysqld.innodb_io_capacity"]


def test_free_memory_stays_with_huge_pages_that_somebody_has_set_since():
    values = {"/sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"}
    values["/proc/sys/vm/min_free_kbytes"] = "524288"
    along = {"kernel.thp": {"kernel.sysctl.vm.min_free_kbytes": ["524288"]}}
    first = kept(kernel__thp="never", kernel__sysctl__vm__min_free_kbytes="11264")
    top = noted(LeaseNote({"kernel.thp": "madvise"}))
    plan = undone(top, first, scene({OPTIONS: "text"}, values=values, along=along))
    assert plan.trial == []
    assert plan.left == {"kernel.thp": "always"}


@pytest.mark.parametrize(
    ("now", "left"), [("67584", {}), ("11264", {}), ("90000", {FREE_KEY: "90000"})]
)
def test_free_memory_that_somebody_has_set_since_huge_pages_moved_it_stays(now, left):
    values = {HUGE: "always [madvise] never\n", FREE: f"{now}\n"}
    along = {"kernel.thp": {FREE_KEY: [now]}}
    first = kept(kernel__thp="never", kernel__sysctl__vm__min_free_kbytes="11264")
    moving = [LeaseChange("value", HUGE, "never", "madvise", along={FREE: "11264"})]
    landed = [Landed("madvise", {FREE: "67584"})]
    top = noted(LeaseNote({"kernel.thp": "madvise"}), trial=moving, landed=landed)
    plan = undone(top, first, scene({OPTIONS: "text"}, values=values, along=along))
    assert plan.left == left
    wanted = left.get(FREE_KEY, "11264")  # set again also where it is so: huge pages move it
    assert [(one.place, one.wanted) for one in plan.trial] == [(HUGE, "never"), (FREE, wanted)]


def test_free_memory_that_the_kernel_computed_anew_has_its_first_value_again():
    """Somebody has set huge pages back: what the kernel made of that is nobody's choice."""
    values = {HUGE: "always madvise [never]\n", FREE: "11264\n"}
    first = kept(kernel__thp="never", kernel__sysctl__vm__min_free_kbytes="8192")
    moving = [LeaseChange("value", HUGE, "never", "madvise", along={FREE: "8192"})]
    note = LeaseNote({"kernel.thp": "madvise"})
    top = noted(note, trial=moving, landed=[Landed("madvise", {FREE: "67584"})])
    along = {"kernel.thp": {FREE_KEY: ["11264"]}}
    plan = undone(top, first, scene({OPTIONS: "text"}, values=values, along=along))
    assert plan.left == {}
    assert [(one.place, one.wanted) for one in plan.trial] == [(FREE, "8192")]


def test_of_a_pair_that_somebody_has_set_since_neither_is_changed():
    """The first value of the other one would make zero of theirs."""
    values = {"/proc/sys/vm/dirty_bytes": "16384\n", "/proc/sys/vm/dirty_ratio": "0\n"}
    first = kept(kernel__sysctl__vm__dirty_bytes="0", kernel__sysctl__vm__dirty_ratio="20")
    moved = {"/proc/sys/vm/dirty_ratio": "20"}
    moving = [LeaseChange("value", "/proc/sys/vm/dirty_bytes", "0", "8192", along=moved)]
    note = LeaseNote({"kernel.sysctl.vm.dirty_bytes": "8192"})
    top = noted(note, trial=moving, landed=[Landed("8192", {"/proc/sys/vm/dirty_ratio": "0"})])
    along = {"kernel.sysctl.vm.dirty_ratio": {"kernel.sysctl.vm.dirty_bytes": ["16384"]}}
    plan = undone(top, first, scene({OPTIONS: "text"}, values=values, along=along))
    assert plan.trial == []
    assert plan.left == {"kernel.sysctl.vm.dirty_bytes": "16384"}


def test_a_queue_goes_with_its_scheduler_whatever_its_disks_have():
    """A depth that one scheduler takes another may refuse, and disks may have several."""
    queues = [f"/sys/block/{disk}/queue" for disk in ("sdc", "sdd")]
    values = {f"{queue}/scheduler": "none [mq-deadline]\n" for queue in queues}
    values |= {f"{queues[0]}/nr_requests": "256\n", f"{queues[1]}/nr_requests": "64\n"}
    first = kept(block__scheduler="none", block__nr_requests="62")
    first = replace(first, target=replace(TARGET, disk="sdc,sdd", serial="c,d"))
    moving = [
        LeaseChange(
            "value", f"{q}/scheduler", "none", "mq-deadline", along={f"{q}/nr_requests": "62"}
        )
        for q in queues
    ]
    landed = [
        Landed("mq-deadline", {f"{q}/nr_requests": depth})
        for q, depth in zip(queues, ("256", "64"), strict=True)
    ]
    top = noted(LeaseNote({"block.scheduler": "mq-deadline"}), trial=moving, landed=landed)
    along = {"block.scheduler": {"block.nr_requests": ["256", "64"]}}
    plan = undone(top, first, scene({OPTIONS: "text"}, values=values, along=along))
    assert plan.left == {}
    assert {one.wanted for one in plan.trial} == {"none", "62"}


@pytest.mark.parametrize("now", ["40000", "60000"])
def test_a_bound_that_somebody_has_set_since_it_was_moved_stays(now):
    there = {**POOL, "innodb_io_capacity": "20000", "innodb_io_capacity_max": now}
    seen_there = replace(scene({OPTIONS: "text"}, dynamic=POOL), seen=seen(variables=there))
    moving = [LeaseChange("variable", "innodb_io_capacity_max", "2000", "40000")]
    note = LeaseNote({"mysqld.innodb_io_capacity": "20000"})
    top = noted(note, trial=moving, landed=[Landed("40000")])
    first = kept(mysqld__innodb_io_capacity="200", mysqld__innodb_io_capacity_max="2000")
    plan = undone(top, first, seen_there)
    is_ours = now == "40000"
    assert plan.left == ({} if is_ours else {"mysqld.innodb_io_capacity_max": now})
    bound = ["innodb_io_capacity_max"] if is_ours else []
    assert [change.place for change in plan.trial] == ["innodb_io_capacity", *bound]


def test_a_bound_stays_with_a_variable_that_somebody_has_set_since_it_was_kept():
    now = {**POOL, "innodb_io_capacity": "7000", "innodb_io_capacity_max": "40000"}
    there = replace(scene({OPTIONS: "text"}, dynamic=POOL), seen=seen(variables=now))
    top = noted(LeaseNote({"mysqld.innodb_io_capacity": "20000"}))
    first = kept(mysqld__innodb_io_capacity="200", mysqld__innodb_io_capacity_max="2000")
    plan = undone(top, first, there)
    assert plan.trial == []
    assert plan.left == {"mysqld.innodb_io_capacity": "7000"}


LATER = "!includedir /etc/mysql/mariadb.conf.d\n[mysqld]\nmax_connections=500\n"


def test_what_would_win_over_the_file_that_keeps_it_is_named():
    wanted = kept(mysqld__max_connections="300")
    read = {"start": ("/etc/my.cnf",), "files": {"/etc/my.cnf": LATER}}
    with pytest.raises(RefusedError, match=r"/etc/my.cnf:3: is read after .*zz-mydyno.cnf"):
        planned(wanted, {}, replace(scene(), seen=seen(**read)))
    first, *rest = LATER.splitlines()
    read["files"] = {"/etc/my.cnf": "\n".join([*rest, first])}
    assert planned(wanted, {}, replace(scene(), seen=seen(**read))).rows
    with pytest.raises(RefusedError, match="gives --max_connections in its command"):
        planned(wanted, {}, scene(unit=f"{DIRECT.rstrip()} --max-connections=9\n"))


def test_what_the_servers_process_was_given_wins_over_files_too():
    wanted = kept(mysqld__max_connections="300")
    there = scene(words=["/usr/sbin/mariadbd", "--max-connections=9"])
    with pytest.raises(RefusedError, match="gives --max_connections in its command"):
        planned(wanted, {}, there)
    assert planned(wanted, {}, replace(there, running={"MYDYNO_LEASE": "l-1"})).rows


def test_a_sysctl_that_a_later_file_sets_to_another_value_is_named():
    wanted, path = kept(kernel__sysctl__vm__swappiness="1"), "/etc/sysctl.d/99-sysctl.conf"
    row = f"{path}\tvm/swappiness\t%s\t60\n"
    with pytest.raises(RefusedError, match=f"^{path}: is read after /etc/sysctl.d/90-mydyno.conf"):
        planned(wanted, {}, scene(sysctl_files=row % 30))
    for good in (row % 1, (row % 30).replace("99-", "10-"), (row % 30).replace("swappi", "happi")):
        assert planned(wanted, {}, scene(sysctl_files=good)).rows


def test_a_text_that_differs_is_not_taken_for_the_same():
    assert planned(kept(mysqld__innodb_data_file_path="ibdata1:1G"), {}, scene()).rows


def test_files_hold_all_that_is_kept_and_only_forms_that_change_are_written():
    already = {"mysqld.sort_buffer_size": "1M", "limits.nofile": "65536"}
    plan = planned(kept(mysqld__max_connections="300"), already, scene())
    (file,) = plan.stored
    assert "sort_buffer_size = 1M" in file.wanted
    assert "max_connections = 300" in file.wanted


def test_a_mount_is_remounted_and_its_line_edited():
    plan = planned(kept(fs__mount="noatime"), {}, scene({"/etc/fstab": TARGET.fstab}))
    assert plan.trial[0] == LeaseChange(
        "mount", "/data", "rw,relatime", "rw,noatime", ["mount", "forth"], ["mount", "back"]
    )
    assert plan.stored[0].before == TARGET.fstab
    assert plan.stored[0].wanted == "/dev/a /data ext4 rw,noatime 0 0\n"
    assert plan.rows[0].cost == "remount"


def test_an_option_that_a_kept_mount_added_is_taken_away_with_it():
    """All first options are there beside it, so that nothing seems to be left to do."""
    there = scene({OPTIONS: "text"}, mount="ext4 rw,relatime,discard", added=["discard"])
    first, top = kept(fs__mount="relatime,rw"), noted(LeaseNote({"fs.mount": "discard"}))
    plan = undone(top, first, there)
    assert [(change.kind, change.place) for change in plan.trial] == [("mount", "/data")]
    assert plan.left == {}
    assert not_in_force(plan.rows, first, there)
    assert (
        not_in_force(plan.rows, first, scene(mount="ext4 rw,relatime,seclabel", added=["discard"]))
        == []
    )


@pytest.mark.parametrize(
    ("key", "error", "words"),
    [
        ("raid.level", RefusedError, "cannot be changed on a host that is in use"),
        ("fs.type", RefusedError, "cannot be changed on a host that is in use"),
        ("kernel.release", RefusedError, "cannot be changed on a host that is in use"),
        ("mysqld.nothing", SpecError, "has no such variable"),
    ],
)
def test_what_no_lease_can_change_is_refused(key, error, words):
    with pytest.raises(error, match=words):
        refuse(replace(kept(), settings={key: "1"}), seen())


def test_a_persisted_variable_is_refused():
    persisted = seen(origins={"max_connections": ("persisted", "/var/lib/mysql/mysqld-auto.cnf")})
    with pytest.raises(RefusedError, match="RESET PERSIST max_connections"):
        refuse(kept(mysqld__max_connections="300"), persisted)


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("datadir", "use mydyno move$"),
        ("innodb_undo_directory", "change it on a copy of the data$"),
        ("innodb_page_size", "change it on a copy of the data$"),
        ("keyring_file_data", "change it on a copy of the data$"),
    ],
)
def test_other_files_are_not_put_on_trial(name, step):
    """A revert would start the server on the old ones: every commit of the trial was lost."""
    with pytest.raises(RefusedError, match=f"without what was committed on trial; {step}"):
        refuse(kept(**{f"mysqld__{name}": "x"}), seen(variables={name: "/old"}))


REDO = {"innodb_redo_log_capacity": "104857600"}


def test_a_redo_log_of_the_old_options_is_not_shrunk_by_a_revert():
    wanted = kept(mysqld__innodb_redo_log_capacity="8G")
    status = {"Innodb_redo_log_capacity_resized": str(4 << 30)}
    follows = seen(variables=REDO, looks=({}, status))
    with pytest.raises(RefusedError, match="SET GLOBAL innodb_redo_log_capacity = 4294967296 "):
        refuse(wanted, follows)
    with pytest.raises(RefusedError, match="innodb_redo_log_capacity = its size in bytes first"):
        refuse(wanted, seen(variables=REDO))
    refuse(wanted, seen(variables=REDO, looks=({}, dict.fromkeys(status, "104857600"))))
    set_there = {"innodb_redo_log_capacity": ("dynamic", "")}
    refuse(wanted, msgspec.structs.replace(follows, origins=set_there))  # it is being resized


class Shown:
    """A host that shows an output where a command has a word of it; no file is there."""

    name = "db1"

    def __init__(self, outputs):
        self.outputs = outputs

    def run(self, action, *, timeout_s=60.0):
        text = f"{' '.join(action.argv)} {(action.stdin or b'').decode()}"
        found = next((out for word, out in self.outputs.items() if word in text), "")
        return Completed(action, int(action.argv[0] == "test"), found.encode(), b"")


def existing(flavour="mariadb", version=(10, 11, 6), **outputs):
    """Return a server on a host that shows these outputs."""
    process = ServerProcess(1, "mariadbd", ["--given"])
    return Existing(Shown(outputs), ("client",), flavour, version, "", "", "/data", process)


def test_a_variable_that_was_persisted_since_the_start_is_refused():
    """Its origin is DYNAMIC, or that of the start, until the server reads its file again."""
    there = existing("mysql", (8, 0, 33), persisted_variables="max_connections\n")
    dynamic = seen(origins={"max_connections": ("dynamic", "")})
    wanted = kept(mysqld__max_connections="300")
    refuse(wanted, dynamic)
    with pytest.raises(RefusedError, match="RESET PERSIST max_connections"):
        refuse(wanted, with_persisted(there, dynamic))
    assert with_persisted(existing(persisted_variables="no such table\n"), dynamic) == dynamic


def test_what_moves_along_is_read_with_a_host():
    there = existing(
        **{"grep -sH": f"{HUGE}:always [madvise] never\n{FREE}:67584\n", "show -p": "A=b\n"}
    )
    wanted = kept(kernel__thp="never", mysqld__innodb_io_capacity="20000")
    look = seen(variables=POOL)
    found = leases.scene_of(there, look, wanted, wanted)
    assert found.along == {
        "kernel.thp": {"kernel.sysctl.vm.min_free_kbytes": ["67584"]},
        "mysqld.innodb_io_capacity": {"mysqld.innodb_io_capacity_max": ["2000"]},
    }
    assert (found.words, found.environment) == (["--given"], {"A": "b"})
    least = {"innodb_max_dirty_pages_pct": "5", "innodb_io_capacity": "300"}
    low = kept(**{f"mysqld__{name}": value for name, value in least.items()})
    pages = seen(variables={**POOL, **PAGES})
    lwm = {"mysqld.innodb_max_dirty_pages_pct_lwm": ["20"]}
    found = leases.scene_of(there, pages, low, low)
    assert found.along == {"mysqld.innodb_max_dirty_pages_pct": lwm}


def test_an_undo_remounts_with_the_first_options_and_no_other():
    """What an operator has added since stays, as do options that a newer kernel shows."""
    shown = "rw,nosuid,relatime,discard"
    now = f'{{"filesystems": [{{"fstype": "ext4", "options": "{shown}", "target": "/d"}}]}}'
    there = existing(**{"--json": now, "--mountpoint": f"{shown}\n"})
    first, top = kept(fs__mount="relatime,rw"), noted(LeaseNote({"fs.mount": "discard"}))
    remount = leases.scene_of(there, seen(), first, first, top.lease).remount
    assert (remount.before, remount.added) == (shown, {"discard"})
    assert (remount.forth[-2], remount.back[-2]) == (
        "remount,nodiscard,nosuid,relatime,rw",
        "remount,discard,nosuid,relatime,rw",
    )
    assert leases.scene_of(there, seen(), first, first).remount.added == frozenset()


@pytest.mark.parametrize("change", ["nothing", "file", "folder", "link"])
def test_a_guard_that_others_can_change_is_not_run(tmp_path, monkeypatch, change):
    guard = tmp_path / "mydyno-guard"
    guard.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho '[]'\n")
    guard.chmod(0o777 if change == "file" else 0o755)
    tmp_path.chmod(0o777 if change == "folder" else 0o755)
    if change == "link":
        guard = tmp_path / "link"
        guard.symlink_to("/bin/true")
    monkeypatch.setattr(leases, "GUARD", str(guard))
    if change == "nothing":
        assert leases.leases_of(Local()) == []
        return
    with pytest.raises(RefusedError, match=r"root would run it, and .* can "):
        leases.leases_of(Local())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("runs", [True, False])
def test_a_guard_is_replaced_by_one_that_runs_there_and_by_no_other(tmp_path, monkeypatch, runs):
    """The one that is there may have leases to end."""
    tmp_path.chmod(0o755)
    guard, ours = tmp_path / "mydyno-guard", tmp_path / "ours"
    guard.write_text("#!/bin/sh\necho '[]'\n")
    ours.write_text(f"#!/bin/sh\n{'exit 0' if runs else 'exit 126'}\n")
    guard.chmod(0o755)
    monkeypatch.setattr(leases, "GUARD", str(guard))
    monkeypatch.setattr(leases, "packaged_program", lambda _: str(ours))
    with nullcontext() if runs else pytest.raises(RefusedError, match="another processor"):
        leases.install_guard(Local())
    assert guard.read_text() == (ours.read_text() if runs else "#!/bin/sh\necho '[]'\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mydyno-guard", "ours"]


def noted(note, trial=(), landed=()):
    """Return a kept lease with a note, its changes, and what these became."""
    one = held(1, landed=[*landed])
    lease = msgspec.structs.replace(one.lease, note=note, trial=[*trial])
    return msgspec.structs.replace(one, lease=lease)


def held(number, state="kept", undoes="", **fields):
    """Return a lease of a host."""
    stored = [LeaseChange("file", OPTIONS, None, "text")]
    lease = Lease(
        id=f"l-{number}",
        host="db1",
        who="ada@desk",
        why="why",
        seconds=60,
        unit="",
        client=[],
        restart=False,
        trial=[],
        stored=stored,
        undoes=undoes,
        note=LeaseNote(),
    )
    return Held(lease, state, 0, 60, **fields)


def test_what_is_kept_is_a_stack():
    all_held = [held(1), held(2, "reverted"), held(3), held(4, undoes="l-3")]
    assert [one.lease.id for one in kept_leases(all_held)] == ["l-1"]
    shown = render_leases("db1", all_held, 0.0)
    assert "    undone\n" in shown
    assert "kept; undoes l-3" in shown
    assert render_leases("db1", [], 0.0) == "db1: no lease\n"


def test_an_export_that_was_copied_is_not_overwritten():
    refuse_foreign_files({OPTIONS: None, "/etc/fstab": "x"}, [])
    refuse_foreign_files({OPTIONS: "text"}, [held(1)])
    with pytest.raises(RefusedError, match="an export was copied"):
        refuse_foreign_files({OPTIONS: "text"}, [held(1, "reverted")])


def test_a_kept_file_that_an_operator_has_edited_is_not_replaced():
    """By the latest lease that wrote it; one that was left at its confirm is the operator's."""
    stored = [LeaseChange("file", OPTIONS, "text", "later")]
    lease = msgspec.structs.replace(held(2).lease, stored=stored)
    later = msgspec.structs.replace(held(2), lease=lease)
    edited = [LeaseChange("file", OPTIONS, "text and more", "new")]
    with pytest.raises(RefusedError, match=f"^{OPTIONS}: somebody has changed it since"):
        refuse_edited(edited, [held(1)])
    with pytest.raises(RefusedError, match="somebody has changed it since"):
        refuse_edited([msgspec.structs.replace(edited[0], before="text")], [held(1), later])
    refuse_edited(edited, [held(1, left=[OPTIONS])])
    refuse_edited([msgspec.structs.replace(edited[0], before="later")], [held(1), later])
    refuse_edited([LeaseChange("file", "/etc/new", None, "new")], [held(1)])


def test_a_host_keeps_the_settings_of_one_disk():
    first = kept(block__read_ahead_kb="128")
    note = LeaseNote({"block.read_ahead_kb": "512"}, target=replace(TARGET, disk="sdb", serial="b"))
    one = held(1)
    there = msgspec.structs.replace(
        one, lease=msgspec.structs.replace(one.lease, note=note, unit=TARGET.unit)
    )
    refuse_another(kept(mysqld__max_connections="300"), [there])
    refuse_another(replace(first, target=note.target), [there])
    with pytest.raises(RefusedError, match="l-1 keeps settings of sdb; roll it back first"):
        refuse_another(first, [there])
    other = msgspec.structs.replace(there.lease, unit="mariadb@two.service")
    with pytest.raises(RefusedError, match="keeps settings of mariadb@two"):
        refuse_another(first, [msgspec.structs.replace(there, lease=other)])


def test_a_kept_file_that_was_edited_is_not_restored():
    first = kept(mysqld__max_connections="200")
    plan = undone(held(1), first, scene({OPTIONS: "text"}))
    assert [(c.before, c.wanted) for c in plan.stored] == [("text", None)]
    assert plan.trial[0].wanted == "200"
    with pytest.raises(RefusedError, match="somebody has changed it"):
        undone(held(1), first, scene({OPTIONS: "text and more"}))
    assert undone(held(1, left=[OPTIONS]), first, scene({OPTIONS: "theirs"})).stored == []
    assert undone(held(1), first, scene({})).stored == []  # its first text was restored by hand


def test_what_is_not_in_force_afterwards_is_named():
    plan = planned(kept(mysqld__max_connections="300"), {}, scene())
    wrong = not_in_force(plan.rows, kept(mysqld__max_connections="300"), scene())
    assert wrong == ["mysqld.max_connections: is 151, 300 was wanted"]


def test_managers_are_found():
    assert managers(seen()) == []
    there = seen(
        variables={**VARIABLES, "wsrep_on": "ON", "group_replication_group_name": "a-b"},
        host={**HOST, "managers": "orchestrator\nkubepods\n"},
    )
    names = ["Galera", "group replication", "Orchestrator", "an operator of Kubernetes"]
    assert managers(there) == names
    assert managed_files(seen(files={"/etc/my.cnf": "# Ansible managed\n", "/b": ""})) == [
        "/etc/my.cnf"
    ]
