"""The scheduler's benchmarks, one module each: `run(write=…)` answers whether all goals are met."""
