"""Bringing a private server to a treatment: launched with it, or moved to it while it runs."""

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
_SHOWN = 200  # lines of the error log that are kept with a trial


@dataclass(slots=True)
class ServerRunner:
    """A private server between trials; `launched` is None until stock was learnt.

    `link` is its address on the lab's link, where there is one.
    """

    host: Host
    instance: Instance
    ledger: Ledger
    launched: ServerLayers | None = None
    up: bool = False
    link: str = ""

    def read_defaults(self) -> ServerLayers:
        """Return the layers and stock of the server that runs now at its defaults."""
        self.launched = self.launched or read_defaults(self.instance, self.link)
        return self.launched

    def moved(self, settings: Settings, trial: Trial) -> list[Change] | None:
        """Move the running server to a treatment; None where that takes a restart.

        What an earlier treatment moved and this one does not name goes back to stock.
        """
        if not self.up or self.launched is None or not self.instance.pid:
            return None
        planned: list[tuple[Layer, Sequence[Change]]] = []
        for layer in self.launched.layers:
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
        self.launched.verify(self.host, settings)
        return made

    def launch(self, settings: Settings, trial: Trial) -> list[Change]:
        """Write the treatment's option and launch files, start the server, see that all took."""
        launched = self.launched
        if launched is None:
            return []
        write_owned(self.host, self.instance)
        planned = launched.plan(settings)
        made = [full for layer, change in planned for full in self._planned([change], layer, trial)]
        for action in dict.fromkeys(change.action for _, change in planned):
            self.host.run(action).check()
        self.instance.start()
        self.up = True
        launched.verify(self.host, settings)
        preload.load(self.instance)
        return made

    def collect(self, folder: Path, reset: Reset) -> str:
        """Keep the server's words and files; end it as the next trial's reset needs it.

        Returns why it died, where it had, else ``""``.
        """
        if not self.up:
            return ""
        died = "" if self._lives() else "the server died: " + self._last_words()
        for name, lines in (
            ("mysqld.err", self.instance.error_tail(_SHOWN)),
            ("my.cnf", _options(self.instance)),
        ):
            (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        if reset is Reset.DATASET or died:
            self.stop(grace_s=0.0)  # what it wrote is thrown away with the data set
        return died

    def stop(self, *, grace_s: float = _STOP_S) -> None:
        """Stop the server."""
        self.up = False
        self.instance.stop(grace_s=grace_s)

    def _planned(self, changes: Sequence[Change], layer: Layer, trial: Trial) -> list[Change]:
        """Write changes into the history before anything acts on them; return their full keys."""
        prefix = f"db/{layer.name}."
        self.ledger.planned(changes, layer, prefix, trial.id)
        return [replace(change, key=prefix + change.key) for change in changes]

    def _lives(self) -> bool:
        """Return whether the server still runs; one that is being killed takes a moment to go."""
        try:
            self.instance.ready(timeout_s=_ANSWER_S)
        except HostError:
            return bool(self.instance.pid)
        return True

    def _last_words(self) -> str:
        return " | ".join(self.instance.error_tail())


def _options(instance: Instance) -> list[str]:
    """Return the treatment's option file and launch files as one text; they hold no secret."""
    place = instance.place
    find = ("find", str(place.owned), str(place.launch), "-type", "f", "-printf", _HEADING)
    shown = instance.host.run(Action((*find, "-exec", "cat", "{}", ";"))).check().stdout
    return shown.decode(errors="replace").splitlines()
