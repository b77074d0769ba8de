"""A writer of the sampler's file, from docs/reference/probe-file.md, for tests of its reader."""

import json
import struct
import zlib

MAGIC = b"mydyno-probe 1\n"
HEAD = {
    "wall_ns": 1_795_000_000_000_000_000,
    "mono_ns": 5_000_000_000,
    "interval_ns": 1_000_000_000,
    "host": "db1",
    "boot_id": "b",
    "hz": 100,
    "page_size": 4096,
    "cpus": 2,
    "version": "0.1.0",
}


def unsigned(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def signed(number):
    number = (number + 2**63) % 2**64 - 2**63
    return unsigned(2 * number if number >= 0 else -2 * number - 1)


def frame(kind, payload):
    body = kind + struct.pack("<I", len(payload)) + payload
    return body + struct.pack("<I", zlib.crc32(body))


def document(kind, value):
    return frame(kind, json.dumps(value).encode())


def payload(seq, begin_ns, deltas, gone=()):
    """A tick: `deltas` by column, `gone` as (first, length) runs in order."""
    runs, last = b"", 0
    for first, length in gone:
        runs += unsigned(first - last) + unsigned(length)
        last = first + length
    bits = bytearray(max(deltas, default=-1) // 8 + 1)
    for column in deltas:
        bits[column // 8] |= 1 << column % 8
    times = unsigned(seq) + unsigned(begin_ns) + unsigned(300_000) + signed(0)
    body = unsigned(len(gone)) + runs + unsigned(len(bits)) + bytes(bits)
    return times + body + b"".join(signed(deltas[column]) for column in sorted(deltas))


class File:
    """A file as a sampler would write it; a source is read in the middle of its tick."""

    def __init__(self, **head):
        self.raw = MAGIC + document(b"H", HEAD | head)
        self.ids = {}
        self.last = {}

    def define(self, source, *columns):
        """Define the columns (name, of, kind, scale) and the source's time of reading."""
        every = [("probe.read_at", source, "gauge", 1e-9), *columns]
        fresh = [c for c in every if (c[0], c[1]) not in self.ids]
        for name, of, _, _ in fresh:
            self.ids[name, of] = len(self.ids)
        named = [
            {"name": n, "of": o, "unit": "", "kind": k, "scale": s, "source": source}
            for n, o, k, s in fresh
        ]
        self.raw += document(b"C", named)
        return self

    def tick(self, seq, values, read=("host",), gone=()):
        """Write a tick with integers by (name, of); sources in `read` are stamped."""
        begin_ns = seq * 1_000_000_000 + 1_000_000
        stamps = {("probe.read_at", source): begin_ns for source in read}
        deltas = {}
        for key, value in (values | stamps).items():
            column = self.ids[key]
            deltas[column] = value - self.last.get(column, 0)
            self.last[column] = value
        runs = [(self.ids[key], 1) for key in sorted(gone, key=self.ids.__getitem__)]
        self.raw += frame(b"T", payload(seq, begin_ns, deltas, runs))
        return self

    def note(self, seq, source, event, of=""):
        self.raw += document(
            b"N", {"seq": seq, "source": source, "event": event, "of": of, "text": ""}
        )
        return self

    def end(self, seq, reason="signal"):
        self.raw += document(b"E", {"seq": seq, "reason": reason, "ticks": seq + 1, "missed": 0})
        return self

    def written(self, folder):
        path = folder / "probe.bin"
        path.write_bytes(self.raw)
        return path
