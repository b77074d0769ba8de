"""What `export` writes, read by the tools that it is for; `make test-keep` installs them."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from integration.server_steps import Bench, open_folder
from mydyno.keep.kept import Kept, KeptOn, bundle, form_of

pytestmark = [pytest.mark.root, pytest.mark.mysqld]
SETTINGS = {
    "mysqld.innodb_log_buffer_size": "32M",
    "mysqld.sort_buffer_size": "512K",
    "mysqld.innodb_flush_neighbors": "0",
    "mysqld.init_connect": "SET @a = 'x#y'",
    "kernel.sysctl.vm.swappiness": "1",
    "kernel.thp": "never",
    "block.scheduler": "none",
    "block.read_ahead_kb": "64",
    "limits.nofile": "65536",
    "limits.memlock": "unlimited",
    "alloc.library": "jemalloc",
    "env.NOTE": 'a "b" %c',
    "fs.mount": "noatime",
}
FIRST = {"kernel.sysctl.vm.swappiness": "60", "kernel.thp": "always", "block.scheduler": "kyber"}
ON = KeptOn(disk="sdc", fstab="tmpfs /run tmpfs nosuid 0 0\n", mount="/run")
KEPT = Kept(SETTINGS, ("mydyno: FAST of the campaign c",), FIRST, "mysql", (8, 0, 33), ON)
PARTS = ("write", "inverse")
ROOT = Path(__file__).parents[2]


def written(folder, name, part, kept=KEPT):
    """Write a form's files below a folder and return them."""
    found = []
    for file in getattr(bundle(kept, form_of(name)), part):
        path = folder / file.path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text)
        found.append(path)
    return found


def ran(*argv):
    """Run a tool of the system; it must succeed and complain of nothing."""
    if not shutil.which(str(argv[0])):
        pytest.fail(f"{argv[0]} is missing: run make test-keep")
    done = subprocess.run([str(a) for a in argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.parametrize("part", PARTS)
def test_ansible_takes_both_playbooks(tmp_path, part):
    (file,) = written(tmp_path, "ansible", part)
    ran("ansible-lint", "--offline", "--profile", "production", "--nocolor", file)
    ran("ansible-playbook", "--syntax-check", "-i", "localhost,", file)


@pytest.mark.parametrize("part", PARTS)
def test_cloud_init_takes_the_user_data(tmp_path, part):
    (file,) = written(tmp_path, "cloud-init", part)
    assert "Valid" in ran("cloud-init", "schema", "--config-file", file).stdout


@pytest.mark.parametrize("part", PARTS)
def test_systemd_takes_the_drop_in_without_a_word(tmp_path, part):
    """Its exit code is 0 for unknown keys and bad values too: what counts is what it prints."""
    (file,) = written(tmp_path, "systemd", part)
    unit = tmp_path / "mysql.service"
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    shutil.copytree(file.parent, tmp_path / "mysql.service.d")
    assert ran("systemd-analyze", "verify", unit).stderr == ""
    if part == "write":
        bad = tmp_path / "mysql.service.d" / "bad.conf"
        bad.write_text("[Service]\nLimitNOFILES=1\n")
        assert "Unknown key" in ran("systemd-analyze", "verify", unit).stderr


@pytest.mark.parametrize("part", PARTS)
def test_sysctl_and_tmpfiles_take_their_files(tmp_path, part):
    (file,) = written(tmp_path, "sysctl", part)
    assert ran("sysctl", "--dry-run", "--load", file).stderr == ""
    (file,) = written(tmp_path, "tmpfiles", part)
    place = tmp_path / "sys/kernel/mm/transparent_hugepage/enabled"
    place.parent.mkdir(parents=True)
    place.write_text("......")
    ran("systemd-tmpfiles", "--create", f"--root={tmp_path}", file)
    assert place.read_text().startswith({"write": "never", "inverse": "always"}[part])


def test_findmnt_takes_the_table(tmp_path):
    (file,) = written(tmp_path, "fstab", "write")
    ran("findmnt", "--verify", "--tab-file", file)
    assert file.read_text() == "tmpfs /run tmpfs nosuid,noatime 0 0\n"


@pytest.mark.parametrize("part", PARTS)
def test_tuned_loads_the_profile(tmp_path, part):
    (file,) = written(tmp_path, "tuned", part)
    code = (
        "import sys\nfrom tuned.profiles.locator import Locator\n"
        "from tuned.profiles.loader import Loader\nfrom tuned.profiles.factory import Factory\n"
        "from tuned.profiles.merger import Merger\n"
        "from tuned.profiles.variables import Variables\n"
        "from tuned.utils.global_config import GlobalConfig\n"
        "parts = Factory(), Merger(), GlobalConfig(), Variables()\n"
        "loader = Loader(Locator([sys.argv[1]]), *parts)\n"
        "units = loader.load([sys.argv[2]]).units\n"
        "print({k: dict(u.options) for k, u in units.items()})"
    )
    done = ran("/usr/bin/python3", "-c", code, file.parent.parent, file.parent.name)
    value = {"write": ("'vm.swappiness': '1'", "'elevator': 'none'"),
             "inverse": ("'vm.swappiness': '60'", "'elevator': 'kyber'")}[part]  # fmt: skip
    assert all(text in done.stdout for text in value), done.stdout


def test_terraform_is_parsed_with_each_parameter(tmp_path):
    hcl2 = pytest.importorskip("hcl2", reason="run make test-keep")
    (file,) = [path for path in written(tmp_path, "rds", "write") if path.suffix == ".tf"]
    with file.open() as text:
        (resource,) = hcl2.load(text)["resource"]
    (group,) = resource["aws_db_parameter_group"].values()
    found = {one["name"]: one["value"] for one in group.get("parameter", [])}
    wanted = {k.removeprefix("mysqld."): v for k, v in SETTINGS.items() if k.startswith("mysqld.")}
    assert found.keys() == wanted.keys()
    assert found["innodb_log_buffer_size"] == "33554432"


@pytest.mark.parametrize("part", PARTS)
def test_the_operators_schema_takes_the_patch(tmp_path, part):
    """The schema of a cluster, strict: a key that it does not know is an error."""
    jsonschema = pytest.importorskip("jsonschema", reason="run make test-keep")
    place = ran(ROOT / "packaging/crds.sh").stdout.strip()
    clusters = [
        one
        for one in yaml.safe_load_all(Path(place).read_text())
        if one["spec"]["names"]["kind"] == "PerconaXtraDBCluster"
    ]
    versions = {one["name"]: one for one in clusters[0]["spec"]["versions"]}
    schema = closed(versions["v1"]["schema"]["openAPIV3Schema"])
    (file,) = written(tmp_path, "k8s-percona", part)
    patch = yaml.safe_load(file.read_text())
    patch["spec"] = {k: v for k, v in patch["spec"].items() if v is not None}
    jsonschema.validate(patch, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"spec": {"pxc": {"configurations": "x"}}}, schema)


def closed(schema):
    """Return a schema that allows no other keys than those that it names, and requires none."""
    found = {k: v for k, v in schema.items() if k not in {"required", "x-kubernetes-validations"}}
    if "properties" in found:
        found["properties"] = {k: closed(v) for k, v in found["properties"].items()}
        found.setdefault("additionalProperties", False)
    return found


@pytest.fixture(scope="module")
def servers():
    folder = open_folder()
    bench = Bench(folder)
    yield bench
    bench.close()


def test_mysql_persists_and_resets(servers, tmp_path):
    """Applied is what was wanted, and the inverse leaves nothing persisted."""
    instance = servers.take("mysql-8.0.33").instance
    instance.place.owned.write_text("[mysqld]\n")
    instance.start()
    try:
        (apply,) = written(tmp_path, "persist", "write")
        (reset,) = written(tmp_path, "persist", "inverse")
        instance.query(apply.read_text())
        instance.stop()
        instance.start()
        names = (
            "@@innodb_log_buffer_size, @@sort_buffer_size, @@innodb_flush_neighbors, @@init_connect"
        )
        assert instance.query(f"SELECT {names}") == [("33554432", "524288", "0", "SET @a = 'x#y'")]
        instance.query(reset.read_text())
        assert instance.query("SELECT * FROM performance_schema.persisted_variables") == []
    finally:
        instance.stop()


@pytest.mark.parametrize(
    "name", ["mysql-8.0.33", "mariadb-10.11", "mysql-5.6.14", "mariadb-11.4.5"]
)
def test_each_server_reads_the_option_file_as_it_was_meant(servers, tmp_path, name):
    instance = servers.take(name).instance
    (file,) = written(tmp_path, "mycnf", "write")
    instance.place.owned.write_text(file.read_text())
    instance.start()
    try:
        names = "@@innodb_log_buffer_size, @@sort_buffer_size, @@init_connect"
        assert instance.query(f"SELECT {names}") == [("33554432", "524288", "SET @a = 'x#y'")]
    finally:
        instance.stop()
        instance.place.owned.write_text("[mysqld]\n")
