"""Who acts when a command is run on the server."""

import getpass
import os

from scheduler.public import Actor


def command_actor() -> Actor:
    """The account that runs the command; a container may have none by name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"uid {os.getuid()}"
    return Actor("command", name)
