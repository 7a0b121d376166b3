"""Where the scheduler calls in."""
