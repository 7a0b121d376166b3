"""Which versions of the agents' protocol a server speaks: its own, and the one before it.

So a server is updated first and its agents after it, each in its time.
"""

PROTOCOL = 1
FIRST = 1


def spoken(own: int = PROTOCOL) -> tuple[int, ...]:
    """The versions that a server whose own is `own` answers in, oldest first."""
    return tuple(range(max(FIRST, own - 1), own + 1))


def problem_of_protocol(version: object, *, own: int = PROTOCOL) -> str:
    """What is wrong with the version that an agent names and what would be right; "" = nothing."""
    versions = spoken(own)
    # Neither True nor 1.0 is the number 1.
    if type(version) is int and version in versions:
        return ""
    known = f"this server speaks protocol {' and '.join(map(str, versions))}"
    if type(version) is int and version > own:
        return f"{known}; update the server, or install an older agent"
    return f"{known}; install another agent"
