"""Public fakes and conformance suites: a layer, a load or a design is tried without a host."""

from mydyno.testing.fakes import FakeBench, FakeHost, FakeLayer, Silent

__all__ = ["FakeBench", "FakeHost", "FakeLayer", "Silent"]
