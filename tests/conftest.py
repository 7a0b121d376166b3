"""What all tests share: hypothesis profiles and nothing that acts behind a test's back."""

import os

from hypothesis import HealthCheck, settings

# Shared, noisy machines: no deadline by the clock; `make prove` asks for the long profile.
settings.register_profile(
    "short", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("long" if os.environ.get("KANADE_PROVE") == "1" else "short")
