"""What mount options require of access times, and what two reads of a file show."""

import pytest

from mydyno.stack.fs import missing, parse_atime, probe_atime, shaping, wanted_atime

OLD, ONCE, TWICE = "978307200.000000000", "1795312532.017394415", "1795312532.077394416"
READ = "3915528286 4294967295 /mnt/x/.mydyno-atime"


@pytest.mark.parametrize(
    ("times", "mode"),
    [
        ((OLD, OLD, OLD), "noatime"),
        ((OLD, ONCE, ONCE), "relatime"),
        ((OLD, ONCE, TWICE), "strictatime"),
    ],
)
def test_two_reads_show_how_access_times_are_updated(times, mode):
    first, second, third = times
    reply = f"{first}\n{READ}\n{second}\n{READ}\n{third}\n"
    assert parse_atime(reply.encode()) == mode


@pytest.mark.parametrize("reply", [b"", b"978307200.000000000\n", b"find: no such file\n\xff\n"])
def test_anything_else_is_no_answer(reply):
    with pytest.raises(ValueError, match="no three access times"):
        parse_atime(reply)


@pytest.mark.parametrize(
    ("options", "modes"),
    [
        ("noatime", "noatime"),
        ("commit=60,strictatime", "strictatime"),
        ("lazytime,relatime", "relatime"),
        ("atime", "relatime"),
        ("lazytime", ""),
        ("", ""),
    ],
)
def test_only_what_was_asked_for_is_tried(options, modes):
    assert wanted_atime(options) == modes


def test_the_probe_is_one_command_that_ends_by_removing_its_file():
    argv = probe_atime("/mnt/x").action.argv
    assert argv[0] == "find"
    assert argv[-5:] == ("-exec", "rm", "-f", "/mnt/x/.mydyno-atime", ";")
    assert argv[-6] == ","  # find's way to go on after what failed


@pytest.mark.parametrize(
    ("now", "want", "left"),
    [
        ("rw", "strictatime", []),
        ("rw,relatime", "strictatime", ["strictatime"]),
        ("rw,noatime", "atime", ["atime"]),
        ("rw,relatime,commit=60", "commit=5", ["commit=5"]),
        ("rw,relatime,nobarrier", "barrier", ["barrier"]),
        ("rw,relatime", "barrier=0", ["barrier=0"]),
        ("ro,relatime", "rw", ["rw"]),
        ("rw,relatime", "norelatime", ["norelatime"]),
        ("rw,relatime", "compress=zstd", ["compress=zstd"]),
        ("rw,relatime", "thread_pool=8", []),
    ],
)
def test_what_the_kernel_does_not_show_is_missing_unless_it_is_a_default(now, want, left):
    assert missing(now, want) == left


def test_options_that_come_too_late_for_files_that_are_there():
    assert shaping("noatime, nodatacow,compress=zstd") == "compress=zstd,nodatacow"
    assert shaping("noatime,discard,commit=60") == ""
