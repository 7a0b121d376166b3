"""Canonical documents and their fingerprints: when are two manifests the same?"""

import copy
import hashlib
import json
from typing import Protocol

from fleet.rules.manifest.jobs import JobManifest


class _Manifest(Protocol):
    @property
    def document(self) -> dict[str, object]: ...


def to_document(manifest: _Manifest) -> dict[str, object]:
    """The manifest as JSON-like values: stable order, defaults left out, texts as typed.

    Parsed again it gives an equal manifest; the caller owns the copy.
    """
    return copy.deepcopy(manifest.document)


def fingerprint(document: dict[str, object]) -> str:
    """The SHA-256 (hex) of a canonical document; key order does not count."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def execute_fingerprint(job: JobManifest) -> str:
    """The SHA-256 (hex) of what a job runs: `1m` and `60s` are the same, a tag does not count."""
    execute = job.execute
    return fingerprint(
        {
            "shell": execute.shell,
            "script": execute.script,
            "timeout": execute.timeout.total_seconds(),
            "run_as": execute.run_as,
            "cwd": execute.cwd,
            "params": [[param.name, param.default] for param in execute.params],
            "max_output": execute.max_output,
            "bypass_local_limit": execute.bypass_local_limit,
        }
    )
