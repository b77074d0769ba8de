"""Log files: plain or compressed, single, in folders, or on standard input."""

import bz2
import gzip
import lzma
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

STDIN = "-"
_MOST = 1 << 30  # bytes of one text
_ZSTD = b"\x28\xb5\x2f\xfd"


def files(paths: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each file by path, folders gone through in order, and whether a folder gave it."""
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            yield path, False
            continue
        for found in sorted(Path(path).rglob("*")):
            inside = found.relative_to(path).parts
            if found.is_file() and not any(part.startswith(".") for part in inside):
                yield str(found), True


def content(path: str) -> bytes:
    """Return the unpacked content of a file; raise `ValueError` with the reason if unreadable."""
    try:
        data = sys.stdin.buffer.read(_MOST) if path == STDIN else _read(Path(path))
        return _unpacked(data)
    except OSError as error:
        raise ValueError(error.strerror or f"damaged: {error}") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"damaged: {error}") from error


def _read(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ValueError("not a regular file")
    if path.stat().st_size > _MOST:
        raise ValueError("more than 1 GiB; cut it into parts")
    return path.read_bytes()


def _unpacked(data: bytes) -> bytes:
    if data.startswith(_ZSTD):
        return _by_zstd(data)
    for magic, unpack in ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ", lzma.open), (b"BZh", bz2.open)):
        if data.startswith(magic):
            return _limited(unpack, data)
    return data


def _limited(unpack: object, data: bytes) -> bytes:
    import io  # noqa: PLC0415 - the only use

    with unpack(io.BytesIO(data)) as stream:  # type: ignore[operator]
        found: bytes = stream.read(_MOST + 1)
    if len(found) > _MOST:
        raise ValueError("more than 1 GiB when unpacked; cut it into parts")
    return found


def _by_zstd(data: bytes) -> bytes:
    program = shutil.which("zstd")
    if program is None:
        raise ValueError("packed by zstd, which is not installed; install zstd or unpack it")
    done = subprocess.run([program, "-dcq"], input=data, capture_output=True, check=False)
    if done.returncode:
        raise ValueError(f"damaged: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
