"""Signals that ask us to end: at once while we work, later while the host is being restored."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PATIENCE = b"mydyno: restoring the host; please wait\n"


class _State:
    """Whether a signal waits until we let it through, and whether one came."""

    deferred = False
    came = False


def install() -> None:
    """Let the first of the signals raise `KeyboardInterrupt`; later ones only print."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` wants it
            signal.signal(number, _interrupt)


@contextmanager
def shielded() -> Iterator[None]:
    """Let nothing cut short what is done inside; a signal takes effect at the end."""
    before, _State.deferred = _State.deferred, True
    try:
        yield
    finally:
        _State.deferred = before
    if _State.came and not before:
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Let a signal end what is done inside, within what is shielded."""
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
