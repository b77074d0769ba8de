"""Scrapes an exporter once a second, as Prometheus would, over one persistent connection."""

import http.client
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from probe_process import Fault

_PATIENCE_S = 10.0


class Scraper(threading.Thread):
    """Asks /metrics each second; `last` is the newest answer, `count` how many there were."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.last = b""
        self.count = 0
        self.fault = ""
        self._end = threading.Event()

    def run(self) -> None:
        try:
            self._loop(http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S))
        except (OSError, http.client.HTTPException) as error:
            self.fault = f"port {self.port}: {error}"

    def stop(self) -> None:
        self._end.set()
        self.join()

    def values(self) -> int:
        """Return how many samples the newest answer has."""
        if self.fault or not self.count:
            raise Fault(self.fault or f"port {self.port}: no answer")
        return sum(1 for line in self.last.splitlines() if line and not line.startswith(b"#"))

    def _loop(self, connection: http.client.HTTPConnection) -> None:
        deadline = time.monotonic()
        while not self._end.wait(max(0.0, deadline - time.monotonic())):
            # no gzip: compressing would be the exporter's cost, and not all ask for it
            connection.request("GET", "/metrics", headers={"Accept-Encoding": "identity"})
            self.last = connection.getresponse().read()
            self.count += 1
            deadline += 1.0


@contextmanager
def scraping(port: int) -> Iterator[Scraper]:
    """Scrape once the port answers, until the block ends; raise `Fault` if it never does."""
    _await(port)
    scraper = Scraper(port)
    scraper.start()
    try:
        yield scraper
    finally:
        scraper.stop()


def _await(port: int) -> None:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1.0)
        try:
            connection.request("GET", "/")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise Fault(f"port {port}: nobody listens after {_PATIENCE_S:g} s")
