"""Manifests: what operators write, as frozen values. Strict, and all problems at once.

One shape everywhere: the JSON of the API is the YAML of `apply` is what is stored.
"""

from fleet.rules.manifest.fanout import parse_target
from fleet.rules.manifest.freezes import FreezeManifest, parse_freeze
from fleet.rules.manifest.groups import GroupManifest, parse_group
from fleet.rules.manifest.jobs import Execute, JobManifest, Param, RunAs, Shell, parse_job
from fleet.rules.manifest.kinds import Kind, identity, kind_of
from fleet.rules.manifest.prints import execute_fingerprint, fingerprint, to_document
from fleet.rules.manifest.schedules import ScheduleManifest, parse_schedule
from fleet.rules.manifest.timing import Constraints, Misfire, RunsOn
from fleet.rules.problems import ManifestError, Problem

__all__ = [
    "Constraints",
    "Execute",
    "FreezeManifest",
    "GroupManifest",
    "JobManifest",
    "Kind",
    "ManifestError",
    "Misfire",
    "Param",
    "Problem",
    "RunAs",
    "RunsOn",
    "ScheduleManifest",
    "Shell",
    "execute_fingerprint",
    "fingerprint",
    "identity",
    "kind_of",
    "parse_freeze",
    "parse_group",
    "parse_job",
    "parse_schedule",
    "parse_target",
    "to_document",
]
