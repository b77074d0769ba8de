"""Public fakes, so that a layer, a load or a campaign can be tried without a host."""

from mydyno.testing.fakes import FakeBench, FakeHost, FakeLayer, FakeLoad, Silent

__all__ = ["FakeBench", "FakeHost", "FakeLayer", "FakeLoad", "Silent"]
