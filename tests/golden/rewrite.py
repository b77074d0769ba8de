"""One way to hold a golden file: compare, or write it again under MYDYNO_GOLDEN=write."""

import os
from pathlib import Path


def hold(path: Path, found: str) -> None:
    """Assert that `found` is what the golden file holds; leave ``*.got`` beside it if not."""
    if os.environ.get("MYDYNO_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
        return
    want = path.read_text(encoding="utf-8") if path.exists() else ""
    if found != want:
        path.with_name(path.name + ".got").write_text(found, encoding="utf-8")
    assert found == want, f"{path} differs; see {path.name}.got, or run `make golden`"
