"""The host that a spec names."""

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

    No connection is made yet.  $MYDYNO_SSH_CONFIG names an ssh configuration to use instead of the
    user's.  Raise `SpecError` for an invalid name.
    """
    if text == LOCAL:
        return Local()
    config = os.environ.get(_CONFIG)
    if config and not Path(config).is_file():
        raise SpecError(f"{_CONFIG}={config}: no such file; correct or unset it")
    return Ssh(parse(text), config=Path(config).absolute() if config else None)
