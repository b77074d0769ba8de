"""What holds for all tests."""

from hypothesis import settings

# A machine that others share is slow at times: that fails no property.
settings.register_profile("mydyno", deadline=None)
settings.load_profile("mydyno")
