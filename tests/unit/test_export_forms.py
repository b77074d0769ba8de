"""Each form of `mydyno export` read back by a parser that is not ours, and its inverse."""

import configparser
import json
import re
import shlex

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mydyno.audit.option_files import every, groups
from mydyno.keep.forms import udev
from mydyno.keep.forms.fstab import options
from mydyno.keep.forms.persist import literal
from mydyno.keep.kept import Kept, KeptOn, bundle, form_of, forms
from mydyno.model import SpecError

SETTINGS = {
    "mysqld.innodb_log_file_size": "512M",
    "mysqld.innodb_flush_method": "O_DIRECT",
    "mysqld.innodb_adaptive_hash_index": "OFF",
    "mysqld.init_connect": "SET @a = 'x#y'",
    "mysqld.innodb_max_dirty_pages_pct": "7.5",
    "kernel.sysctl.vm.swappiness": "1",
    "kernel.sysctl.net.core.somaxconn": "8192",
    "kernel.thp": "never",
    "kernel.module.zfs.zfs_txg_timeout": "10",
    "block.scheduler": "mq-deadline",
    "block.iosched.fifo_batch": "1",
    "block.read_ahead_kb": "64",
    "limits.nofile": "65536",
    "limits.memlock": "unlimited",
    "alloc.library": "jemalloc",
    "alloc.tunables": "oversize_threshold:0",
    "env.NOTE": 'a "b" %c',
    "fs.mount": "noatime,commit=60",
    "raid.devices": "4",
}
FIRST = {
    "kernel.sysctl.vm.swappiness": "60",
    "kernel.thp": "always",
    "block.scheduler": "none",
    "block.read_ahead_kb": "128",
}
TABLE = """# a table
UUID=1-2 / ext4 defaults 0 1
UUID=3-4\t/data  xfs   rw,relatime,nodiscard 0 2  # data
#UUID=5 /data ext4 defaults 0 0
"""
TARGET = KeptOn(disk="sdc", fstab=TABLE, mount="/data")
EVIDENCE = ("mydyno: FAST of the campaign c, 2026-11-26", "rw: 1.31 [1.22..1.41] of STOCK")
MYSQL = Kept(SETTINGS, EVIDENCE, FIRST, "mysql", (8, 0, 33), TARGET)
MARIADB = Kept(SETTINGS, EVIDENCE, FIRST, "mariadb", (10, 11, 19), TARGET)
VARIABLES = {k.removeprefix("mysqld."): v for k, v in SETTINGS.items() if k.startswith("mysqld.")}


def taken(text):
    """Return what a tool reads of YAML; Ansible takes what is tagged as no template."""
    return yaml.load(text, Loader)  # noqa: S506 - one tag more than the safe loader


class Loader(yaml.SafeLoader):
    """The safe loader, with Ansible's tag."""


Loader.add_constructor("!unsafe", lambda loader, node: Untouched(loader.construct_scalar(node)))


class Untouched(str):
    """A text that Ansible does not take for a template."""

    __slots__ = ()


def composed(text):
    """Return the service that Compose makes of a file, in which it replaces variables."""
    assert "$" not in text.replace("$$", "")
    return yaml.safe_load(text.replace("$$", "$"))["services"]["db"]


def made(name, kept=MYSQL):
    return bundle(kept, form_of(name))


def texts(files):
    return {file.path: file.text for file in files}


def options_of(text):
    found = every(("f",), {"f": text}, groups("mysql", (8, 0, 33)))
    return {option.name: option.value for option in found}


def test_every_format_of_the_issue_is_there():
    assert set(forms()) >= {
        "mycnf", "persist", "sysctl", "udev", "systemd", "tmpfiles", "fstab", "tuned", "ansible",
        "cloud-init", "docker", "k8s-percona", "k8s-oracle", "k8s-mariadb", "rds", "native",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(forms()))
def test_each_form_carries_what_it_claims_and_names_the_rest(name):
    found = made(name)
    assert found.carried
    assert sorted([*found.carried, *found.left_out]) == sorted(SETTINGS)
    assert "raid.devices" in found.left_out
    joined = "\n".join(texts(found.write).values())
    for key in found.carried:
        value = SETTINGS[key]
        shown = {
            "unlimited": ("infinity", "-1"),
            "512M": ("536870912", "512M"),
            "OFF": ("0", "OFF"),
        }
        plain = re.split(r"[\"'#%,]", value)[0] or value
        assert any(text in joined for text in shown.get(value, (plain,))), (key, joined)
    assert found.inverse
    if name not in {"fstab", "rds", "k8s-mariadb"}:
        assert "FAST of the campaign" in joined


def test_option_files_are_read_as_written():
    (file,) = made("mycnf").write
    assert file.path == "/etc/mysql/mysql.conf.d/zz-mydyno.cnf"
    assert options_of(file.text) == VARIABLES
    assert made("mycnf", MARIADB).write[0].path == "/etc/mysql/mariadb.conf.d/zz-mydyno.cnf"
    assert options_of(made("mycnf").inverse[0].text) == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [("127.0.0.1", "'127.0.0.1'"), ("1.5G", "1610612736"), ("0.25", "0.25"), ("8K", "8192")],
)
def test_a_word_that_begins_with_a_digit_is_a_word(value, text):
    assert literal("a", value) == text


def test_persisted_variables_have_sizes_as_numbers():
    (file,) = made("persist").write
    lines = [line for line in file.text.splitlines() if not line.startswith("--")]
    assert lines == [
        "SET PERSIST_ONLY innodb_log_file_size = 536870912;",
        "SET PERSIST_ONLY innodb_flush_method = 'O_DIRECT';",
        "SET PERSIST_ONLY innodb_adaptive_hash_index = OFF;",
        "SET PERSIST_ONLY init_connect = 'SET @a = ''x#y''';",
        "SET PERSIST_ONLY innodb_max_dirty_pages_pct = 7.5;",
    ]
    assert made("persist").inverse[0].text.count("RESET PERSIST IF EXISTS") == len(VARIABLES)
    with pytest.raises(SpecError, match="has no SET PERSIST"):
        made("persist", MARIADB)


def test_values_of_the_kernel_and_their_first_ones():
    (write,), (inverse,) = (
        texts(f).values() for f in (made("sysctl").write, made("sysctl").inverse)
    )
    assert re.findall(r"^([\w.]+) = (.+)$", write, re.MULTILINE) == [
        ("vm.swappiness", "1"), ("net.core.somaxconn", "8192"),
    ]  # fmt: skip
    assert re.findall(r"^([\w.]+) = (.+)$", inverse, re.MULTILINE) == [("vm.swappiness", "60")]
    assert "net.core.somaxconn: the run recorded no first value" in inverse
    lines = [line.split() for line in made("tmpfiles").write[0].text.splitlines() if line[0] == "w"]
    assert [(line[1], line[-1]) for line in lines] == [
        ("/sys/kernel/mm/transparent_hugepage/enabled", "never"),
        ("/sys/module/zfs/parameters/zfs_txg_timeout", "10"),
    ]


def test_the_binary_log_is_switched_by_an_option_without_a_value():
    """In an option file, log_bin = OFF is a binary log of that name."""
    for value, option in (
        ("OFF", "skip_log_bin"),
        ("1", "log_bin"),
        ("/logs/b", "log_bin = /logs/b"),
    ):
        kept = Kept({"mysqld.log_bin": value}, flavour="mysql", version=(8, 0, 33))
        assert made("mycnf", kept).write[0].text == f"[mysqld]\n{option}\n"
        service = yaml.safe_load(made("docker", kept).write[0].text)["services"]["db"]
        assert service["command"] == [f"--{option.replace(' = ', '=')}"]


def test_of_a_pair_in_two_units_the_inverse_has_the_one_that_was_set():
    """The kernel takes no zero for either."""
    first = {"kernel.sysctl.vm.dirty_bytes": "0", "kernel.sysctl.vm.dirty_ratio": "20"}
    kept = Kept({"kernel.sysctl.vm.dirty_bytes": "8192"}, first=first)
    assert made("sysctl", kept).inverse[0].text == "vm.dirty_ratio = 20\n"
    assert "\nvm.dirty_ratio=20\n" in made("tuned", kept).inverse[0].text


def test_udev_sets_the_scheduler_before_its_tunables():
    (file,) = made("udev").write
    assert re.findall(r'ATTR\{queue/([\w/]+)\}="([\w-]+)"', file.text) == [
        ("scheduler", "mq-deadline"), ("read_ahead_kb", "64"), ("iosched/fifo_batch", "1"),
    ]  # fmt: skip
    assert file.text.count('KERNEL=="sdc"') == 3
    there = KeptOn(disk="sdc", serial="ID_WWN=0x5000c5009a")
    (file,) = made("udev", Kept({"block.scheduler": "none"}, target=there)).write
    assert 'ENV{DEVTYPE}=="disk", ENV{ID_WWN}=="0x5000c5009a", ATTR' in file.text
    assert "sdc" not in file.text  # another disk may have that name after a boot
    with pytest.raises(SpecError, match="as udevadm info does"):
        made("udev", Kept({"block.scheduler": "none"}, target=KeptOn(disk="sdc", serial='A=*"')))
    for disk in ("", 'a", RUN+="x', "sdc,"):
        with pytest.raises(SpecError, match="sdc"):
            made("udev", Kept({"block.scheduler": "none"}, target=KeptOn(disk=disk)))
    two = KeptOn(disk="sdc,sdd", serial="ID_WWN=0x5000c5009a")
    with pytest.raises(SpecError, match="one for each of disk=sdc,sdd"):
        made("udev", Kept({"block.scheduler": "none"}, target=two))
    with pytest.raises(SpecError, match="cannot stand"):
        made("udev", Kept({"block.scheduler": 'none", RUN+="x'}, target=TARGET))


@pytest.mark.parametrize(
    ("shown", "serial"),
    [
        ("ID_SERIAL=A_1\nID_WWN=0x5\nID_WWN_WITH_EXTENSION=0x5f\n", "ID_WWN_WITH_EXTENSION=0x5f"),
        ("DEVNAME=/dev/sdc\nID_SERIAL=vol0a-1\n", "ID_SERIAL=vol0a-1"),
        ("ID_SERIAL=QEMU HARDDISK*\n", ""),
        ("DEVNAME=/dev/loop0\n", ""),
    ],
)
def test_a_disk_is_known_by_what_lasts_over_a_boot(shown, serial):
    assert udev.serial(shown) == serial


def test_a_drop_in_has_limits_and_environment():
    (file,) = made("systemd").write
    assert file.path == "/etc/systemd/system/mysql.service.d/zz-mydyno.conf"
    lines = file.text.splitlines()
    assert "LimitNOFILE=65536" in lines
    assert "LimitMEMLOCK=infinity" in lines
    words = [shlex.split(line.partition("=")[2])[0] for line in lines if line.startswith("Env")]
    assert [word.replace("%%", "%") for word in words] == [
        'NOTE=a "b" %c', "LD_PRELOAD=libjemalloc.so.2", "MALLOC_CONF=oversize_threshold:0",
    ]  # fmt: skip


def test_an_allocator_that_must_not_be_there_is_taken_out():
    kept = Kept({"alloc.library": "glibc", "alloc.tunables": ""})
    lines = made("systemd", kept).write[0].text.splitlines()
    gone = ("GLIBC_TUNABLES", "MALLOC_CONF", "LD_PRELOAD")
    assert [line for line in lines if "=" in line] == [f"UnsetEnvironment={n}" for n in gone]


def test_one_line_of_fstab_changes_and_its_inverse_is_the_table():
    found = made("fstab")
    before, after = TABLE.splitlines(), found.write[0].text.splitlines()
    changed = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert changed == [
        ("UUID=3-4\t/data  xfs   rw,relatime,nodiscard 0 2  # data",
         "UUID=3-4\t/data  xfs   rw,nodiscard,noatime,commit=60 0 2  # data"),
    ]  # fmt: skip
    assert found.inverse[0].text == TABLE
    with pytest.raises(SpecError, match="no line of fstab"):
        made("fstab", Kept({"fs.mount": "noatime"}, target=KeptOn(fstab=TABLE, mount="/dat")))


@pytest.mark.parametrize(
    ("present", "wanted", "result"),
    [
        ("defaults", "noatime", "noatime"),
        ("rw,barrier=1,atime", "nobarrier,relatime", "rw,barrier=1,nobarrier,relatime"),
        ("discard", "nodiscard", "nodiscard"),
        ("commit=5,ro", "commit=60", "ro,commit=60"),
    ],
)
def test_options_of_a_mount_replace_their_opposites(present, wanted, result):
    if "barrier" in present:
        result = "rw,nobarrier,relatime"
    assert options(present, wanted) == result


def test_tuned_has_an_ini_file_and_a_profile_of_before():
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.read_string(made("tuned").write[0].text)
    assert dict(parser["sysctl"]) == {"vm.swappiness": "1", "net.core.somaxconn": "8192"}
    assert dict(parser["disk"]) == {"devices": "sdc", "elevator": "mq-deadline", "readahead": "64"}
    assert parser["vm"]["transparent_hugepages"] == "never"
    parser.read_string(made("tuned").inverse[0].text)
    assert parser["vm"]["transparent_hugepages"] == "always"


@pytest.mark.parametrize("part", ["write", "inverse"])
def test_playbooks_write_the_native_files(part):
    native = texts(getattr(made("native"), part))
    (file,) = getattr(made("ansible"), part)
    (play,) = taken(file.text)
    copies = [t["ansible.builtin.copy"] for t in play["tasks"] if "ansible.builtin.copy" in t]
    assert {c["dest"]: c["content"] for c in copies} == native
    names = {handler["name"] for handler in play["handlers"]}
    notified = {name for task in play["tasks"] for name in task.get("notify", [])}
    assert notified == names
    assert "Restart mysql.service" in names
    data = yaml.safe_load(getattr(made("cloud-init"), part)[0].text)
    assert {f["path"]: f["content"] for f in data["write_files"]} == native
    assert data["runcmd"][-1] == ["systemctl", "try-restart", "mysql.service"]


def test_a_container_has_options_limits_and_environment():
    (file,) = made("docker").write
    service = yaml.safe_load(file.text)["services"]["db"]
    assert service["command"] == [f"--{name}={value}" for name, value in VARIABLES.items()]
    assert service["ulimits"] == {"nofile": 65536, "memlock": -1}
    assert service["sysctls"] == {"net.core.somaxconn": "8192"}
    assert service["environment"]["NOTE"] == 'a "b" %c'
    names = ("core.rmem_max", "core.somaxconn", "ipv4.tcp_mem", "ipv4.tcp_syncookies")
    carried = [n for n in names if form_of("docker").carries(f"kernel.sysctl.net.{n}")]
    assert carried == ["core.somaxconn", "ipv4.tcp_syncookies"]  # of a network namespace


@pytest.mark.parametrize(
    ("name", "path"), [("k8s-percona", ("pxc", "configuration")), ("k8s-oracle", ("mycnf",))]
)
def test_operators_get_an_option_file(name, path):
    spec = yaml.safe_load(made(name).write[0].text)["spec"]
    for key in path:
        spec = spec[key]
    assert options_of(spec) == VARIABLES
    config = yaml.safe_load(texts(made("k8s-mariadb").write)["configmap.yml"])
    assert options_of(config["data"]["my.cnf"]) == VARIABLES


def test_parameter_groups_have_plain_numbers():
    found = texts(made("rds").write)
    values = {p["ParameterName"]: p["ParameterValue"] for p in json.loads(found["parameters.json"])}
    assert values["innodb_log_file_size"] == "536870912"
    assert values["innodb_adaptive_hash_index"] == "0"
    pairs = re.findall(r'name         = "(\w+)"\n    value        = (".*")', found["parameters.tf"])
    assert {name: json.loads(value) for name, value in pairs} == values


def test_nothing_that_is_written_can_become_another_line():
    cpus = ("cpus.allowed", "cgroup.cpu", "cgroup.period")
    for key in ("mysqld.a", "kernel.sysctl.a", "env.A", "kernel.thp", "block.scheduler", *cpus):
        with pytest.raises(SpecError, match="line break"):
            made("native", Kept({key: "1\nb = 2"}, target=TARGET))
    with pytest.raises(SpecError, match="line break"):
        made("mycnf", Kept({"mysqld.a": "1"}, ("a\nb",)))


@given(st.text(max_size=30))
def test_any_value_of_a_variable_is_read_back_or_refused(value):
    kept = Kept({"mysqld.init_connect": value}, flavour="mysql")
    if not value.isprintable():
        with pytest.raises(SpecError, match="init_connect"):
            made("native", kept)
        return
    service = composed(made("docker", kept).write[0].text)
    assert service["command"] == [f"--init_connect={value}"]
    option = made("mycnf", kept).write[0].text
    assert yaml.safe_load(made("k8s-oracle", kept).write[0].text)["spec"]["mycnf"] == option
    (play,) = taken(made("ansible", kept).write[0].text)
    assert play["tasks"][1]["ansible.builtin.copy"]["content"] == option


TEMPLATES = "{{ lookup('pipe', 'id') }} ${HOME} $$ ${f:exec:/bin/id} 'x'"


def test_a_value_that_looks_like_a_template_is_a_value():
    """A run directory of somebody else must not run commands on who exports from it."""
    settings = {"mysqld.init_connect": TEMPLATES, "env.A": TEMPLATES, "cpus.allowed": TEMPLATES}
    kept = Kept(settings | {"limits.nofile": "$A"})
    for part in ("write", "inverse"):
        (play,) = taken(getattr(made("ansible", kept), part)[0].text)
        contents = [t["ansible.builtin.copy"]["content"] for t in play["tasks"][1::2]]
        assert {type(text) for text in contents} == {Untouched}
    service = composed(made("docker", kept).write[0].text)
    assert service["command"] == [f"--init_connect={TEMPLATES}"]
    assert service["environment"] == {"A": TEMPLATES}
    assert (service["cpuset"], service["ulimits"]) == (TEMPLATES, {"nofile": "$A"})


def test_tuned_gets_no_value_that_it_would_replace():
    asked, before = {"kernel.thp": "never"}, {"kernel.thp": TEMPLATES}
    for kept in (Kept({"kernel.thp": TEMPLATES}), Kept(asked, first=before)):
        with pytest.raises(SpecError, match=r"tuned: kernel\.thp = .*replaces \$\{\.\.\.\}"):
            made("tuned", kept)


@pytest.mark.parametrize("value", ["SET NAMES 'utf8mb4'", "'", r"a\b"])
def test_a_parameter_group_has_words_as_they_are(value):
    (first, _) = made("rds", Kept({"mysqld.init_connect": value})).write
    assert [one["ParameterValue"] for one in json.loads(first.text)] == [value]


def test_what_cannot_be_carried_is_refused_with_the_next_step():
    with pytest.raises(SpecError, match=r"carries none of raid\.devices; choose another"):
        made("native", Kept({"raid.devices": "4"}))
    with pytest.raises(SpecError, match="did you mean 'mycnf'"):
        form_of("mycnff")
