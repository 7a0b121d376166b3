"""Identities that leave the server: never re-used, ordered by time."""

import uuid

import uuid_utils.compat


def new_id() -> uuid.UUID:
    """Return a fresh uuid7."""
    return uuid_utils.compat.uuid7()
