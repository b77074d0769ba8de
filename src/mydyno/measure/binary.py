"""Where mydyno-probe is."""

import shutil
import sys
from importlib.resources import files
from pathlib import Path

_NAME = "mydyno-probe"
NOT_BUILT = f"{_NAME} is not here; `make setup` builds it"


def probe_binary() -> str:
    """Return the path of mydyno-probe: in the package, beside this Python, on PATH, else empty."""
    packaged = Path(str(files("mydyno"))) / "bin" / _NAME
    beside = Path(sys.executable).parent / _NAME
    found = next((str(path) for path in (packaged, beside) if path.is_file()), "")
    return found or shutil.which(_NAME) or ""
