"""Who may do what: the one table of roles, read by the migration, the tests and the docs.

Writing a job is running code on PCs, so it is an operator's right and not a viewer's; who approves
is somebody else than who asks, so `approver` neither edits nor runs.
"""

FLEET_MODELS = (
    "agent",
    "agentpresence",
    "command",
    "evaluation",
    "execution",
    "freeze",
    "group",
    "job",
    "jobrevision",
    "membership",
    "occurrence",
    "output",
    "result",
    "schedule",
    "wave",
)
SCHEDULER_MODELS = ("queue", "run", "runner", "task")


def _each(app: str, verbs: tuple[str, ...], models: tuple[str, ...]) -> frozenset[str]:
    return frozenset(f"{app}.{verb}_{model}" for model in models for verb in verbs)


VIEWER = _each("fleet", ("view",), FLEET_MODELS) | _each("scheduler", ("view",), SCHEDULER_MODELS)
OPERATOR = (
    VIEWER
    | _each("fleet", ("add", "change", "delete"), ("group", "job", "schedule"))
    | _each("fleet", ("add", "change", "delete"), ("membership",))
    | frozenset(
        {
            "fleet.run_job",
            "fleet.revoke_job",
            "fleet.fire_schedule",
            "fleet.kill_execution",
            "fleet.set_freeze",
            "scheduler.change_task",
        }
    )
)
APPROVER = VIEWER | frozenset({"fleet.approve_job"})
FLEET_ADMIN = (
    OPERATOR
    | APPROVER
    | _each("fleet", ("add", "change", "delete", "view"), ("apitoken", "enrolmenttoken"))
    | _each("scheduler", ("add",), ("task",))
    | frozenset(
        {
            "fleet.change_agent",
            "fleet.manage_enrolment",
            "fleet.override_freeze",
            "scheduler.change_queue",
            "scheduler.view_auditentry",
        }
    )
)

ROLES: dict[str, frozenset[str]] = {
    "viewer": VIEWER,
    "operator": OPERATOR,
    "approver": APPROVER,
    "fleet-admin": FLEET_ADMIN,
}
