"""The administrator of a guest: mydyno as it runs elsewhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

MYDYNO = Path(sys.executable).with_name("mydyno")


class Desk:
    """A guest, and mydyno as its administrator runs it elsewhere."""

    def __init__(self, guest, folder):
        self.guest, self.folder = guest, folder
        self.env = {**os.environ, "MYDYNO_SSH_CONFIG": str(guest.folder / "ssh_config")}

    def run(self, *words, code=0):
        """Run a command of mydyno; return what it prints."""
        done = subprocess.run(
            [MYDYNO, *words], env=self.env, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def file(self, text):
        """Return a file of settings."""
        path = self.folder / "settings.toml"
        path.write_text(text)
        return str(path)

    def apply(self, text, *more, lease="60s", code=0):
        """Apply settings."""
        words = ("--to", self.guest.ssh, "--yes-to", self.guest.name, "--lease", lease)
        return self.run("apply", self.file(text), *words, *more, code=code)

    def values(self):
        """Return what the lease changes: variables, a value of the kernel, a limit."""
        names = "@@innodb_io_capacity, @@max_connections, @@innodb_log_buffer_size"
        return (
            self.guest.sql(f"SELECT {names}"),
            self.guest.inside("cat", "/proc/sys/net/core/somaxconn").strip(),
            self.guest.inside(
                "sh", "-c", "grep 'open files' /proc/$(pidof mariadbd mysqld)/limits"
            ),
        )

    def leases(self):
        """Return the states of all leases."""
        return [one["state"] for one in json.loads(self.run("status", self.guest.ssh, "--json"))]
