"""What a command says to its agent: everything that is signed."""

import hashlib
from datetime import datetime

from fleet.flow.manifests import job_manifest
from fleet.flow.signing import Signer
from fleet.models import Command
from fleet.rules.manifest import JobManifest
from fleet.rules.params import param_values

VERSION = 1


def command_payload(command: Command, signer: Signer) -> dict[str, object]:
    """Return the payload; ManifestError where the stored job cannot be read (any more).

    The same command says the same at every hand-out: the agent knows it by its number and the time
    of the first one, even after its own memory was damaged.
    """
    manifest = job_manifest(command.revision)
    execute = manifest.execute
    plan = command.execution.plan if command.execution else {}
    return {
        "v": VERSION,
        "server_id": str(signer.server_id),
        "server_epoch": signer.epoch,
        "cmd_id": str(command.pk),
        "execution_id": str(command.execution_id) if command.execution_id else None,
        "agent_id": command.agent.uuid_text,
        "seq": command.seq,
        "job": command.job.slug,
        "version": command.revision.version,
        "shell": execute.shell.value,
        "script": execute.script,
        "script_sha256": hashlib.sha256(execute.script.encode()).hexdigest(),
        "timeout_s": execute.timeout_seconds,
        "run_as": execute.run_as.value,
        "cwd": execute.cwd,
        "params": _params(manifest, plan),
        "max_output": execute.max_output,
        "issued_at": _written(command.handed_out_at),
        "start_after": _written(command.start_after),
        "deadline_at": _written(command.deadline_at),
        "retry": plan.get("retry"),
        "override_freeze": command.override_freeze,
    }


def _params(manifest: JobManifest, plan: dict[str, object]) -> dict[str, str]:
    given = plan.get("params")
    return param_values(manifest.execute.params, given if isinstance(given, dict) else {})


def _written(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None
