"""Groups of PCs, and who is in them."""

from django.db import models
from django.db.models import UniqueConstraint
from django.db.models.functions import Lower

from fleet.models.agents import Agent
from fleet.models.ids import SlugQuerySet


class GroupQuerySet(SlugQuerySet["Group"]):
    """Questions about groups."""


class Group(models.Model):
    """A named set of agents, kept by operators."""

    slug = models.CharField("id", max_length=100)
    description = models.TextField(blank=True, default="")
    # The `--set` of the `apply` that made it; blank for rows made by hand.
    set_name = models.CharField(max_length=100, blank=True, default="", editable=False)
    agents = models.ManyToManyField(Agent, through="Membership", related_name="groups")
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)

    objects = GroupQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            UniqueConstraint(Lower("slug"), name="one_group_per_id_whatever_its_case"),
        ]

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """One agent in one group."""

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="memberships")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="memberships")

    class Meta:
        constraints = [
            UniqueConstraint(fields=["group", "agent"], name="an_agent_is_in_a_group_once"),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id} in {self.group_id}"
