"""From a spec's word for a host to the host."""

import os
from pathlib import Path

from mydyno.host.address import parse
from mydyno.host.local import Local
from mydyno.host.protocol import Host
from mydyno.host.ssh import Ssh
from mydyno.model import SpecError

LOCAL = "local"
_CONFIG = "MYDYNO_SSH_CONFIG"


def reach(text: str) -> Host:
    """Return the host that `text` names: ``local``, or ``ssh://[user@]host[:port]``.

    It is not connected to yet.  $MYDYNO_SSH_CONFIG names a configuration that is read in place of
    the user's own.  Raise `SpecError` for what names no host.
    """
    if text == LOCAL:
        return Local()
    config = os.environ.get(_CONFIG)
    if config and not Path(config).is_file():
        raise SpecError(f"{_CONFIG}={config}: no such file")
    return Ssh(parse(text), config=Path(config).absolute() if config else None)
