"""CPUs of server and load: lists, what is apart, what is refused, how commands are pinned."""

import pytest

from mydyno.host import Local, ask
from mydyno.keep.forms import docker, systemd
from mydyno.keep.kept import Kept
from mydyno.model import SpecError
from mydyno.stack.cpus import Cpus, apart, cpus, listed, online, parse_cpus, pinned, validate
from mydyno.stack.launch_file import Server
from mydyno.stack.protocol import split


@pytest.mark.parametrize(
    ("text", "numbers", "canonical"),
    [
        ("0", {0}, "0"),
        ("0-3,8", {0, 1, 2, 3, 8}, "0-3,8"),
        (" 2, 0-1", {0, 1, 2}, "0-2"),
        ("7,5", {5, 7}, "5,7"),
        ("4-5,4", {4, 5}, "4-5"),
    ],
)
def test_a_list_of_cpus_is_read_and_written_as_the_kernel_does(text, numbers, canonical):
    assert cpus("allowed", text) == numbers
    assert listed(cpus("allowed", text)) == canonical


@pytest.mark.parametrize("text", ["", "a", "0-", "-1", "3-1", "0,,1", "4096", "0x1", "²", "1-2-3"])
def test_what_is_no_list_of_cpus_is_refused_by_its_key(text):
    with pytest.raises(SpecError, match=r"cpus\.allowed = "):
        validate(split({"load/cpus.allowed": text}), {})


def test_another_key_is_refused_with_the_one_there_is():
    with pytest.raises(SpecError, match=r"cpus\.allowed"):
        validate(split({"db/cpus.alowed": "0"}), {})


@pytest.mark.parametrize(("role", "shown"), [("db", "cpus.allowed"), ("load", "load/cpus.allowed")])
def test_a_cpu_that_the_host_does_not_have_is_refused_with_those_it_has(role, shown):
    settings = split({f"{role}/cpus.allowed": "0-5"})
    with pytest.raises(SpecError, match=f"^{shown} = '0-5': no CPU 2-5 .* write some of 0-1$"):
        validate(settings, {role: frozenset((0, 1))})
    validate(settings, {})  # a machine that is not made yet
    assert ask(Local(), online()) >= frozenset((0,))


def test_server_and_load_are_apart_where_both_have_cpus_and_share_none():
    both = {"db/cpus.allowed": "0", "load/cpus.allowed": "1-2"}
    assert apart(split(both)) == {"server": {0}, "load": {1, 2}}
    assert apart(split({**both, "load/cpus.allowed": "0-2"})) == {}
    assert apart(split({"db/cpus.allowed": "0"})) == {}
    assert apart(split({})) == {}


def test_a_command_runs_on_the_cpus_of_its_role():
    settings = split({"load/cpus.allowed": "1,2"})
    assert pinned(settings, "load", ("sysbench", "run")) == (
        "taskset",
        "-c",
        "1-2",
        "sysbench",
        "run",
    )
    assert pinned(settings, "db", ("mysqld",)) == ("mysqld",)


def test_the_layer_writes_its_file_and_reads_what_the_process_may_use(tmp_path):
    layer = Cpus(Server(tmp_path / "cpus", tmp_path / "pid", tmp_path / "my.cnf"))
    (change,) = layer.plan({}, {"allowed": "1,0"})
    assert (change.key, change.after, change.action.stdin) == ("allowed", "0-1", b"allowed=0-1\n")
    running = b"own\tallowed=0-1\nrunning\t\nstatus\tName:\tmysqld\nstatus\tCpus_allowed_list:\t1\n"
    assert parse_cpus(running) == {"allowed": "1", "owned": "allowed"}  # a CPU that is not there
    assert parse_cpus(b"own\tallowed=0-1\n")["allowed"] == "0-1"
    assert parse_cpus(b"running\t\nstatus\tCpus_allowed_list:\t0-1\n") == {}
    (back,) = layer.plan({"allowed": "0-1", "owned": "allowed"}, {})
    assert (back.before, back.after) == ("0-1", "inherited")


def test_it_is_kept_as_a_unit_and_a_container_say_it():
    kept = Kept({"cpus.allowed": "0-3"})
    assert systemd.limits(kept) == {"CPUAffinity": "0-3"}
    (file,) = docker.FORM.write(kept)
    assert '    cpuset: "0-3"' in file.text or "    cpuset: 0-3" in file.text
