"""`max_concurrent`: how many more commands of a job may be open at once."""


def free_slots(cap: int | None, in_flight: int | None) -> int | None:
    """How many may be added; None = no cap.

    `in_flight` counts the job's commands from dispatch to end. Where it could not be counted
    (None), nothing is free: a cap that cannot be checked must hold.
    """
    if cap is None:
        return None
    if in_flight is None:
        return 0
    return max(0, cap - in_flight)


def within(candidates: int, free: int | None) -> int:
    """How many of `candidates` fit into the free slots."""
    return candidates if free is None else min(candidates, free)
