"""Who acts when a command is run on the server."""

from scheduler.management.acting import command_actor

__all__ = ["command_actor"]
