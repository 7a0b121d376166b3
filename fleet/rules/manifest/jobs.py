"""A job: what to run. Fields, bounds, and the keys that are kept or refused by name."""

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

from fleet.rules.manifest.parts import (
    opened,
    param_text,
    read_description,
    read_id,
    read_origin,
    read_params,
    read_tags,
)
from fleet.rules.problems import Problem
from fleet.rules.reader import Reader
from fleet.rules.sizes import read_size

MAX_SCRIPT = 128 * 1024
MAX_CWD = 1_000
LEAST_TIMEOUT, MOST_TIMEOUT = timedelta(seconds=1), timedelta(hours=24)
LEAST_OUTPUT, DEFAULT_OUTPUT, MOST_OUTPUT = 1024, 256 * 1024, 1024 * 1024
SCRIPT_EXAMPLE = "script: echo hello"

# They add output only: kept for the file's owner, and told to be without effect.
UNUSED = ("inventory", "check", "collect", "feed", "emit", "client", "aggregate")
_REFUSED_SOURCES = {
    "script_object": "there is no object store here; write the script's text in `script`",
    "script_file": (
        "is read by `manage.py apply`, which puts the file's text in its place; "
        "write the text in `script`"
    ),
}


class Shell(StrEnum):
    """What runs the script."""

    SH = "sh"
    BASH = "bash"
    POWERSHELL = "powershell"
    PWSH = "pwsh"
    CMD = "cmd"
    PYTHON = "python"


class RunAs(StrEnum):
    """Whose account runs the script: the agent's own, or that of the user at the PC."""

    SYSTEM = "system"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of the script; None as default = a value must be given."""

    name: str
    default: str | None = None
    description: str = ""

    @property
    def required(self) -> bool:
        """Whether a run must give a value."""
        return self.default is None


@dataclass(frozen=True, slots=True)
class Execute:
    """The script and how it is run; `script` has LF line ends, `max_output` is in bytes."""

    shell: Shell
    script: str
    timeout: timedelta
    run_as: RunAs = RunAs.SYSTEM
    cwd: str | None = None
    params: tuple[Param, ...] = ()
    max_output: int = DEFAULT_OUTPUT
    bypass_local_limit: bool = False

    @property
    def timeout_seconds(self) -> int:
        """The timeout as agents are told it: whole seconds, the fraction cut."""
        return self.timeout // timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class JobManifest:
    """A valid job. `document` is its canonical form, `warnings` what is kept without effect."""

    id: str
    version: str
    execute: Execute
    description: str = ""
    require_approval: bool = False
    tags: tuple[str, ...] = ()
    origin: tuple[tuple[str, str], ...] = ()
    document: dict[str, object] = field(compare=False, repr=False, kw_only=True)
    warnings: tuple[Problem, ...] = field(default=(), compare=False)


def parse_job(document: object) -> JobManifest:
    """The job that a JSON-like value describes; ManifestError names everything that is wrong."""
    reader = opened(document, "id, version, execute")
    job_id = read_id(reader, "id", "id: inventory")
    version = reader.required("version", 'version: "1.2.0"', most=100)
    description = read_description(reader)
    execute = _read_execute(reader)
    require_approval = reader.flag("require_approval", default=False)
    _read_compatible(reader)
    tags = read_tags(reader)
    origin = read_origin(reader)
    canonical = reader.finish()
    reader.notes.raise_problems()
    return JobManifest(
        job_id,
        version,
        execute,
        description,
        require_approval,
        tags,
        origin,
        document=canonical,
        warnings=tuple(reader.notes.warnings),
    )


def _read_compatible(reader: Reader) -> None:
    """Keys of existing files: kept where they only add output, refused where they restrict."""
    for key in UNUSED:
        if reader.has(key):
            reader.free(key)
            reader.warn(key, "is kept but has no effect here")
    if reader.raw("tier") == "controller":
        reader.problem("tier", "controller is not supported: jobs run on PCs; remove the key")
    elif reader.has("tier"):
        reader.choice("tier", _Tier, _Tier.ENDPOINT)
    _read_staleness(reader)
    reader.refuse({"finalize": "is not supported: it would never run; put it into the script"})


class _Tier(StrEnum):
    ENDPOINT = "endpoint"


class _Staleness(StrEnum):
    CACHED = "cached"
    UNCHECKED = "unchecked"


def _read_staleness(reader: Reader) -> None:
    value = reader.raw("staleness")
    if value == "strict" or (isinstance(value, dict) and "strict" in value):
        reader.problem(
            "staleness",
            "strict is not supported: a run would not be held back; "
            "remove it, or give the schedule a starting_deadline",
        )
    elif reader.choice("staleness", _Staleness, _Staleness.CACHED) is _Staleness.UNCHECKED:
        reader.warn("staleness", "is kept but has no effect here")


def _read_execute(reader: Reader) -> Execute:
    if not reader.has("execute"):
        reader.missing("execute", "execute: {shell: sh, script: echo hello, timeout: 30s}")
    part = reader.child("execute", "shell, script, timeout")
    shell = part.required_choice("shell", Shell)
    script = _read_script(part)
    if not part.has("timeout"):
        part.missing("timeout", "timeout: 30s")
    timeout = part.duration("timeout", least=LEAST_TIMEOUT, most=MOST_TIMEOUT)
    execute = Execute(
        shell,
        script,
        timeout or LEAST_TIMEOUT,
        _read_run_as(part),
        part.text("cwd", most=MAX_CWD),
        read_params(part, _read_param),
        read_size(part, "max_output", least=LEAST_OUTPUT, most=MOST_OUTPUT, default=DEFAULT_OUTPUT),
        part.flag("bypass_local_limit", default=False),
    )
    part.finish()
    return execute


def _read_script(part: Reader) -> str:
    """The script's text: exactly one source, and empty text counts as none."""
    sources = ("script", "script_file", "script_object")
    given = [key for key in sources if not _is_unset(part.raw(key))]
    if len(given) > 1:
        part.problem(given[1], f"only one of {', '.join(sources)} may be set")
    elif not given:
        part.missing("script", f"{SCRIPT_EXAMPLE}; one of {', '.join(sources)} must be set")
    elif given[0] in _REFUSED_SOURCES:
        part.problem(given[0], _REFUSED_SOURCES[given[0]])
    else:
        return _bounded_script(part)
    return ""


def _is_unset(value: object) -> bool:
    return value is None or value == ""


def _bounded_script(part: Reader) -> str:
    script = part.text("script", most=MAX_SCRIPT, lines=True) or ""
    size = len(script.encode("utf-8", "surrogatepass"))
    if size > MAX_SCRIPT:
        part.problem("script", f"has {size} bytes; at most {MAX_SCRIPT} are allowed")
    return script


def _read_run_as(part: Reader) -> RunAs:
    if part.raw("run_as") == "system_gui":
        part.problem("run_as", "system_gui is not supported; write system or user")
        return RunAs.SYSTEM
    return part.choice("run_as", RunAs, RunAs.SYSTEM)


def _read_param(params: Reader, name: str) -> Param:
    """`NAME: text` is short for `NAME: {default: text}`; `{required: true}` has no default."""
    if isinstance(params.raw(name), str):
        default = param_text(params, name)
        params.document[name] = {"default": default}
        return Param(name, default)
    part = params.child(name, "default or required")
    default = param_text(part, "default")
    required = part.flag("required", default=False)
    description = part.text("description") or ""
    part.finish()
    if required == part.has("default"):
        params.problem(name, "write either default: a text, or required: true")
    return Param(name, default, description)
