"""Runs a command and makes its N-th writing system call fail, or kills the command there.

``python inject.py FAULT N REPORT COMMAND...``; FAULT is ``none``, ``kill`` or an error's name, as
``ENOSPC``.  Calls are counted over the command and all that it starts, in the order in which they
come (strace counts them in each process by itself).  Reading, pipes, terminals and /dev/null are
not counted.  REPORT becomes a JSON object: the calls, which of them was hit, and the exit code.
"""

import ctypes
import errno
import json
import os
import signal
import struct
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_LIBC.ptrace.restype = ctypes.c_long

# x86-64; what a call's path or file descriptor is among its arguments.
_FD = {1: "write", 18: "pwrite64", 20: "writev", 296: "pwritev", 328: "pwritev2", 74: "fsync"}
_FD |= {75: "fdatasync", 306: "syncfs", 77: "ftruncate", 285: "fallocate", 91: "fchmod"}
_FD |= {93: "fchown", 16: "ioctl", 40: "sendfile", 190: "fsetxattr"}
_PATH = {82: "rename", 84: "rmdir", 83: "mkdir", 87: "unlink", 85: "creat", 76: "truncate"}
_PATH |= {90: "chmod", 92: "chown", 94: "lchown", 166: "umount2", 133: "mknod"}
_PATH |= {188: "setxattr", 168: "swapoff", 167: "swapon"}
_AT = {264: "renameat", 316: "renameat2", 263: "unlinkat", 258: "mkdirat", 268: "fchmodat"}
_AT |= {452: "fchmodat2", 260: "fchownat", 259: "mknodat", 257: "openat", 442: "mount_setattr"}
_AT |= {429: "move_mount"}
_SECOND = {86: "link", 88: "symlink", 165: "mount"}
_THIRD = {265: "linkat", 266: "symlinkat"}
_PLAIN = {326: "copy_file_range", 430: "fsopen", 431: "fsconfig", 432: "fsmount"}
_CALLS = _FD | _PATH | _AT | _SECOND | _THIRD | _PLAIN
_OPENAT, _IOCTL = 257, 16
_MAKES = os.O_CREAT | os.O_TRUNC
_ARGUMENTS = ("rdi", "rsi", "rdx", "r10", "r8", "r9")

_TRACEME, _CONT, _GETREGS, _SETREGS, _SETOPTIONS = 0, 7, 12, 13, 0x4200
_OPTIONS = (
    0x2 | 0x4 | 0x8 | 0x10 | 0x80 | 0x100000
)  # fork, vfork, clone, exec, seccomp, end with us
_SECCOMP_EVENT, _WALL = 7, 0x40000000
_PATIENCE_S = 20.0


class _Registers(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in (
            *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx"),
            *("rdx", "rsi", "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base"),
            *("gs_base", "ds", "es", "fs", "gs"),
        )
    ]


def _ptrace(request: int, pid: int, data: int | ctypes.c_void_p = 0) -> None:
    _LIBC.ptrace(request, pid, None, data)


def _watch_calls() -> None:
    """Make the kernel stop this process, and all that it starts, at each call of `_CALLS`."""
    program = [struct.pack("HBBI", 0x20, 0, 0, 0)]  # load the call's number
    for place, number in enumerate(_CALLS):
        program.append(struct.pack("HBBI", 0x15, len(_CALLS) - place, 0, number))
    program.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000))  # allow
    program.append(struct.pack("HBBI", 0x06, 0, 0, 0x7FF00000))  # stop for the tracer
    raw = ctypes.create_string_buffer(b"".join(program))
    head = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(raw))
    if _LIBC.prctl(22, 2, ctypes.c_char_p(head), 0, 0):
        os._exit(125)


@dataclass
class Tracer:
    """Follows one command; `fault` happens at the counted call number `at`, from 1."""

    fault: str
    at: int
    main: int = 0
    calls: list[str] = field(default_factory=list)
    hit: str = ""
    code: int | None = None

    def run(self, argv: list[str]) -> None:
        self.main = os.fork()
        if self.main == 0:
            _ptrace(_TRACEME, 0)
            os.kill(os.getpid(), signal.SIGSTOP)
            _watch_calls()
            os.execvp(argv[0], argv)  # noqa: S606 - this process becomes the command
        os.waitpid(self.main, _WALL)
        _ptrace(_SETOPTIONS, self.main, _OPTIONS)
        _ptrace(_CONT, self.main)
        alive, end = {self.main}, float("inf")
        while alive and time.monotonic() < end:
            pid, status = os.waitpid(-1, _WALL | (os.WNOHANG if self.code is not None else 0))
            if pid == 0:
                time.sleep(0.005)
                continue
            if os.WIFSTOPPED(status):
                alive.add(pid)
                self._stopped(pid, status)
            else:
                alive.discard(pid)
            if pid == self.main and not os.WIFSTOPPED(status):
                self.code = os.waitstatus_to_exitcode(status)
                end = time.monotonic() + _PATIENCE_S

    def _stopped(self, pid: int, status: int) -> None:
        deliver = os.WSTOPSIG(status)
        if status >> 16 == _SECCOMP_EVENT:
            self._called(pid)
        if status >> 16 or deliver in {signal.SIGTRAP, signal.SIGSTOP}:
            deliver = 0
        _ptrace(_CONT, pid, deliver)

    def _called(self, pid: int) -> None:
        regs = _Registers()
        _LIBC.ptrace(_GETREGS, pid, None, ctypes.byref(regs))
        what = _description(pid, regs)
        if not what:
            return
        self.calls.append(what)
        if len(self.calls) != self.at:
            return
        self.hit = what
        if self.fault == "kill":
            os.kill(self.main, signal.SIGKILL)
        elif self.fault != "none":
            regs.orig_rax = ctypes.c_ulonglong(-1).value
            regs.rax = ctypes.c_ulonglong(-getattr(errno, self.fault)).value
            _LIBC.ptrace(_SETREGS, pid, None, ctypes.byref(regs))


def _description(pid: int, regs: _Registers) -> str:
    """Return a call with its file, ``""`` for one that writes nothing to a filesystem."""
    number = regs.orig_rax
    name = _CALLS.get(number, "")
    given = [getattr(regs, a) for a in _ARGUMENTS]
    if number == _OPENAT and not given[2] & _MAKES:
        return ""
    if number == _IOCTL and given[1] >> 8 not in {0x4C, 0x12}:  # loop and block devices
        return ""
    if number in _FD:
        try:
            place = str(Path(f"/proc/{pid}/fd/{given[0]}").readlink())
        except OSError:
            return ""
    else:
        at = 0 if number in _PATH else 2 if number in _THIRD else 1
        place = "" if number in _PLAIN else _text(pid, given[at])
    if number in _FD and not place.startswith("/"):
        return ""
    if place.startswith(("/dev/null", "/dev/pts", "/dev/tty")):
        return ""
    return f"{name} {place}".strip()


def _text(pid: int, address: int) -> str:
    try:
        with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(200).split(b"\0")[0].decode(errors="replace")
    except (OSError, OverflowError):
        return "?"


def main() -> None:
    fault, at, report, *argv = sys.argv[1:]
    tracer = Tracer(fault, int(at))
    tracer.run(argv)
    counts = {"calls": tracer.calls, "hit": tracer.hit, "code": tracer.code}
    Path(report).write_text(json.dumps(counts))


if __name__ == "__main__":
    main()
