"""Who acts, as an edge tells the verbs."""

from scheduler.admin.acting import actor_of

__all__ = ["actor_of"]
