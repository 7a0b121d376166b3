"""The core's benchmarks in one run, beside every peer that is installed."""

from scheduler.management.benches import core, cron, latency
from scheduler.management.benches.measuring import Write


def run(*, write: Write, **_options: object) -> bool:
    """Measure; return whether all goals are met."""
    met = [bench.run(write=write) for bench in (core, latency, cron)]
    return all(met)
