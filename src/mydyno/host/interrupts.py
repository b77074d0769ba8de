"""Termination signals: handled at once during work, deferred while the host is restored."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PATIENCE = b"mydyno: restoring the host; please wait\n"


class _State:
    """Whether signals are deferred, and whether one was received."""

    deferred = False
    came = False


def install() -> None:
    """Let the first of the signals raise `KeyboardInterrupt`; later ones only print."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` wants it
            signal.signal(number, _interrupt)


@contextmanager
def shielded() -> Iterator[None]:
    """Defer signals until the end of the block."""
    before, _State.deferred = _State.deferred, True
    try:
        yield
    finally:
        _State.deferred = before
    if _State.came and not before:
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Handle signals at once again, within a `shielded` block."""
    before = _State.deferred
    try:
        _State.deferred = False
        if _State.came:
            raise KeyboardInterrupt
        yield
    finally:
        _State.deferred = before


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    if _State.deferred or _State.came:
        _State.came = True
        with suppress(OSError):  # a terminal that has gone must not stop us
            os.write(2, _PATIENCE)
        return
    _State.came = True
    raise KeyboardInterrupt
