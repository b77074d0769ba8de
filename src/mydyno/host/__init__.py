"""Where commands run: this machine or a fake; everything else reaches a machine through here."""

from mydyno.host.local import Local
from mydyno.host.protocol import Completed, Host, Running, ask

__all__ = ["Completed", "Host", "Local", "Running", "ask"]
