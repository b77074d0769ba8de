"""Our files that an action names are uploaded to a host that does not see them."""

from pathlib import Path

import mydyno
from mydyno.host import Completed, Local, uploaded
from mydyno.model import Action

LUA = Path(mydyno.__file__).parent / "loads" / "lua"


class Far:
    """A host that stores what is uploaded to it."""

    name = "far"

    def __init__(self):
        self.files = {}
        self.folders = {}

    def folder(self):
        return Path("/far")

    def run_folder(self):
        return Path("/run")

    def addresses(self):
        return "192.0.2.1", "192.0.2.2"

    def run(self, action, *, timeout_s=60.0):
        match action.argv:
            case ("test", "-d", name):
                return Completed(action, int(name not in self.folders), b"", b"")
            case ("install", *_, mode, "/dev/stdin", name):
                self.files[name] = (mode, action.stdin.decode())
            case ("mv", "-T", part, name):
                self.folders[name] = {f[len(part) + 1 :] for f in self.files if f.startswith(part)}
        return Completed(action, 0, b"", b"")

    def start(self, action, *, stderr=None):
        raise NotImplementedError

    def push(self, local, remote):
        self.files[str(remote)] = ("", local.read_text())

    def pull(self, remote, local):
        raise NotImplementedError


def test_a_host_that_sees_our_files_gets_their_names(tmp_path):
    action = Action(("tool", str(LUA / "report.lua")))
    assert uploaded(Local(), action, tmp_path) is action


def test_a_script_is_uploaded_once_with_those_that_it_loads():
    far = Far()
    for name in ("report.lua", "tpcc.lua"):
        rewritten = uploaded(far, Action(("sysbench", str(LUA / name), "run"), b"in"))
        assert rewritten == Action(("sysbench", f"/far/lua/{name}", "run"), b"in")
    known = {str(path.relative_to(LUA)) for path in LUA.rglob("*.lua")}
    assert {"tpcc/load.lua", "settle.lua"} < known
    assert far.folders == {"/far/lua": known}
    assert len(far.files) == len(known)


def test_an_option_file_names_certificates_that_were_uploaded(tmp_path):
    far, work = Far(), tmp_path / "load"
    (work / "tls").mkdir(parents=True)
    (work / "tls" / "cacert.pem").write_text("authority")
    (work / "load.cnf").write_text(f'ssl-ca = "{work}/tls/cacert.pem"\nother = "/etc/x"\n')
    words = ("env", f"MYDYNO_OPTION_FILE={work}/load.cnf", f"--defaults-file={work}/load.cnf")
    rewritten = uploaded(far, Action((*words, "-C", f"{work}/tls", "/etc/passwd")), work)
    assert rewritten.argv == (
        *("env", "MYDYNO_OPTION_FILE=/far/load.cnf", "--defaults-file=/far/load.cnf"),
        *("-C", "/far/tls", "/etc/passwd"),
    )
    assert far.files == {
        "/far/cacert.pem": ("", "authority"),
        "/far/tls/cacert.pem": ("", "authority"),
        "/far/load.cnf": ("600", 'ssl-ca = "/far/cacert.pem"\nother = "/etc/x"\n'),
    }
