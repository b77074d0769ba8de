"""Applying a treatment to a private server: at its start, or online while it runs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mydyno.campaign.stores import strip
from mydyno.campaign.testbed.fill import write_owned
from mydyno.campaign.testbed.server_layers import ServerLayers, read_defaults
from mydyno.host import Host, ask
from mydyno.model import Action, Change, Cost, HostError, Reset, Settings, Trial
from mydyno.server import Instance, preload
from mydyno.stack import Layer, Ledger
from mydyno.stack.mysqld import Mysqld

_STOP_S = 120.0  # a clean shutdown of a server whose data set stays
_ANSWER_S = 2.0
_HEADING = "# %f\\n"
_SHOWN = 200  # lines of the error log that are saved with a trial


@dataclass(slots=True)
class ServerRunner:
    """A private server across trials; `layers` is None until its defaults were read.

    `link` is its address on the lab link, where there is one.
    """

    host: Host
    instance: Instance
    ledger: Ledger
    layers: ServerLayers | None = None
    up: bool = False
    link: str = ""

    def read_defaults(self) -> ServerLayers:
        """Return the layers and defaults of the server, which must run with its defaults now."""
        self.layers = self.layers or read_defaults(self.instance, self.link)
        return self.layers

    def reconfigure(self, settings: Settings, trial: Trial) -> list[Change] | None:
        """Apply a treatment to the running server; return None where that needs a restart.

        Settings that this treatment does not name are reset to their defaults.
        """
        if not self.up or self.layers is None or not self.instance.pid:
            return None
        planned: list[tuple[Layer, Sequence[Change]]] = []
        for layer in self.layers.layers:
            now = ask(self.host, layer.observe())
            planned.append((layer, layer.plan(now, strip(settings, f"db/{layer.name}."))))
        if any(c.cost is not Cost.ONLINE for _, changes in planned for c in changes):
            return None
        made: list[Change] = []
        for layer, changes in planned:
            made += self._planned(changes, layer, trial)
            for action in dict.fromkeys(c.action for c in changes):
                self.host.run(action).check()
            if isinstance(layer, Mysqld):
                for action in layer.online(changes):
                    self.host.run(action).check()
        self.layers.verify(self.host, settings)
        return made

    def launch(self, settings: Settings, trial: Trial) -> list[Change]:
        """Write the treatment's option and launch files, start the server, verify the settings."""
        layers = self.layers
        if layers is None:
            return []
        write_owned(self.host, self.instance)
        planned = layers.plan(settings)
        made = [full for layer, change in planned for full in self._planned([change], layer, trial)]
        for action in dict.fromkeys(change.action for _, change in planned):
            self.host.run(action).check()
        self.instance.start()
        self.up = True
        layers.verify(self.host, settings)
        preload.load(self.instance)
        return made

    def collect(self, folder: Path, reset: Reset) -> str:
        """Save the server's log and options; stop it if the next trial's reset requires it.

        Returns why it died, or ``""`` if it did not.
        """
        if not self.up:
            return ""
        died = "" if self._is_alive() else "the server died: " + self._log_tail()
        for name, lines in (
            ("mysqld.err", self.instance.error_tail(_SHOWN)),
            ("my.cnf", _options(self.instance)),
        ):
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        if reset is Reset.DATASET or died:
            self.stop(grace_s=0.0)  # its data set is discarded
        return died

    def stop(self, *, grace_s: float = _STOP_S) -> None:
        """Stop the server."""
        self.up = False
        self.instance.stop(grace_s=grace_s)

    def _planned(self, changes: Sequence[Change], layer: Layer, trial: Trial) -> list[Change]:
        """Record changes in the journal before they are made; return them with full keys."""
        prefix = f"db/{layer.name}."
        self.ledger.planned(changes, layer, prefix, trial.id)
        return [replace(change, key=prefix + change.key) for change in changes]

    def _is_alive(self) -> bool:
        """Return whether the server still runs; a killed server needs a moment to end."""
        try:
            self.instance.ready(timeout_s=_ANSWER_S)
        except HostError:
            return bool(self.instance.pid)
        return True

    def _log_tail(self) -> str:
        return " | ".join(self.instance.error_tail())


def _options(instance: Instance) -> list[str]:
    """Return the treatment's option file and launch files as one text, without passwords."""
    place = instance.place
    find = ("find", str(place.owned), str(place.launch), "-type", "f", "-printf", _HEADING)
    shown = instance.host.run(Action((*find, "-exec", "cat", "{}", ";"))).check().stdout
    return shown.decode(errors="replace").splitlines()
