"""How a load reaches a private server: socket or TCP, at which address, with or without TLS."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import ClassVar

from mydyno.model import Change, Probe, Settings, SpecError, unknown_value
from mydyno.stack import launch_file
from mydyno.stack.flavours import quirks
from mydyno.stack.launch_file import OWNED
from mydyno.stack.protocol import refuse_unknown

ON = "on"
OFF = "off"
VERSIONS = ("TLSv1.2", "TLSv1.3")
SUITES = (  # of TLS 1.3
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
)
CIPHERS = (  # of TLS 1.2, for a server with an RSA certificate
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-RSA-CHACHA20-POLY1305",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-RSA-AES256-SHA384",
    "DHE-RSA-AES128-GCM-SHA256",
    "DHE-RSA-AES256-GCM-SHA384",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA256",
    "AES256-SHA256",
)
_ALL = (OFF, ON, *VERSIONS, *SUITES, *CIPHERS)


def refusal(tls: str, flavour: str, version: tuple[int, ...], library: str = "") -> str:
    """Return why this server cannot do so, or ``""``."""
    if tls not in _ALL:
        return unknown_value(tls, _ALL, cutoff=0.5)
    if tls == OFF or not flavour:
        return ""
    # a library and no version: MySQL 5.7 and MariaDB 10.2 were built with it or with OpenSSL
    if library == "yaSSL":
        return (
            "this server is built with yaSSL, which speaks TLS 1.1 at the most, and client "
            "libraries refuse that; use a server built with OpenSSL, or net.tls = off"
        )
    known = quirks(flavour, version).tls
    modern = tls == "TLSv1.3" or tls in SUITES
    return known.refusal or (known.no_1_3 if modern else "")


LAB = "lab"  # the address on the lab's own link
_DEFAULT = {"transport": "socket", "address": "127.0.0.1", "tls": "default"}
_CHOICES = ("socket", "tcp")
_SHOWN = ("skip_networking", "bind_address", "have_ssl", "tls_version", "tls_ciphersuites",
          "ssl_cipher")  # fmt: skip
_QUESTION = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({});\n".format(
    ", ".join(f"'{name}'" for name in _SHOWN)
).encode()


@dataclass(frozen=True, slots=True)
class Net:
    """Keys `net.transport`, `net.address` and `net.tls`; `own` is the launch file.

    Unasked, a private instance listens on its socket alone, and server and load do about TLS what
    they do by default.  `lab` is the server's address on the lab's link, where there is one;
    `library` is the server's TLS library.
    """

    name: ClassVar[str] = "net"
    owned: ClassVar[bool] = True
    own: Path
    client: tuple[str, ...]
    flavour: str = ""
    version: tuple[int, ...] = ()
    lab: str = ""
    library: str = ""

    def observe(self) -> Probe[Settings]:
        """Return the probe for the launch file, and for the server where it answers."""
        return Probe(launch_file.file_and_query(self.own, self.client, _QUESTION), self.parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for another key, or a value that cannot be."""
        refuse_unknown(want, [*_DEFAULT], "net")
        aim = {"transport": "tcp", **want} if "address" in want else dict(want)
        self._refuse(aim)
        there = aim | ({"address": self.lab} if aim.get("address") == LAB else {})
        text = "".join(f"{key}={value}\n" for key, value in there.items())
        return launch_file.changes(now, aim, _DEFAULT, launch_file.install(self.own, text))

    def parse(self, raw: bytes) -> Settings:
        """Return what the server shows of what the file asks, else what the file asks for."""
        lines = raw.decode(errors="replace").splitlines()
        own = launch_file.pairs([line for line in lines if "\t" not in line])
        rows = (line.partition("\t") for line in lines if "\t" in line)
        shown = {name: value for name, _, value in rows}
        settings = {"transport": own.get("transport", _DEFAULT["transport"])}
        settings |= {key: own[key] for key in ("address", "tls") if key in own}
        if "skip_networking" in shown:
            settings["transport"] = "socket" if shown["skip_networking"] == "ON" else "tcp"
            observed = {"address": shown.get("bind_address", ""), "tls": _tls(shown)}
            settings |= {key: observed[key] for key in settings.keys() & observed.keys()}
        if self.lab and settings.get("address") == self.lab:
            settings["address"] = LAB
        return {**settings, OWNED: ",".join(sorted(own))} if own else settings

    def _refuse(self, aim: Settings) -> None:
        transport = aim.get("transport", _DEFAULT["transport"])
        if transport not in _CHOICES:
            raise SpecError(f"net.transport = {transport!r}: one of {', '.join(_CHOICES)}")
        if "address" in aim:
            _refuse_address(aim["address"], transport, self.lab)
        if "tls" not in aim:
            return
        if transport != "tcp":
            raise SpecError(
                f'net.tls = {aim["tls"]!r}: needs TCP: set net.transport = "tcp" in every '
                "treatment, so that they differ by TLS alone"
            )
        if problem := refusal(aim["tls"], self.flavour, self.version, self.library):
            raise SpecError(f"net.tls = {aim['tls']!r}: {problem}")


def _refuse_address(address: str, transport: str, lab: str) -> None:
    if transport != "tcp":
        raise SpecError(f'net.address = {address!r}: an address needs net.transport = "tcp"')
    if address == LAB:
        if not lab:
            raise SpecError(f"net.address = {address!r}: this bench has no lab link")
        return
    with suppress(ValueError):
        if not ip_address(address).is_unspecified:  # never on every interface there is
            return
    raise SpecError(
        f'net.address = {address!r}: write "{LAB}", or an address of this host: 192.0.2.7'
    )


def _tls(shown: Mapping[str, str]) -> str:
    """Return off, on, or the only version or cipher that the server speaks."""
    versions = shown.get("tls_version", "on")
    if shown.get("have_ssl") in ("NO", "DISABLED") or not versions:
        return "off"
    if "," in versions or versions == "on":
        return "on"
    ciphers = shown.get("tls_ciphersuites") if versions == "TLSv1.3" else ""
    return (ciphers or shown.get("ssl_cipher", "")).partition(":")[0] or versions
