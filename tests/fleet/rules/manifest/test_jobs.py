"""A job's manifest: which sources, bounds and keys are taken, kept or refused."""

from datetime import timedelta

import pytest

from fleet.rules.manifest import (
    Execute,
    JobManifest,
    ManifestError,
    Param,
    Problem,
    RunAs,
    Shell,
    parse_job,
)
from tests.fleet.rules.manifest.documents import executing, job


def problems_of(document: object) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        parse_job(document)
    return [str(problem) for problem in caught.value.problems]


def test_a_small_job_is_read_with_its_defaults() -> None:
    assert parse_job(job()) == JobManifest(
        id="inventory",
        version="1",
        execute=Execute(Shell.SH, "uname -a", timedelta(seconds=30)),
        document={},
    )


def test_every_field_of_a_job_is_read() -> None:
    execute = {
        "shell": "powershell",
        "script": "Get-Date\n",
        "timeout": "1500ms",
        "run_as": "user",
        "cwd": "C:\\",
        "params": {"DAYS": {"default": "7", "description": "how many"}, "SITE": {"required": True}},
        "max_output": "1MiB",
        "bypass_local_limit": True,
    }
    found = parse_job(
        job(
            execute=execute,
            description="two\nlines",
            require_approval=True,
            tags=["a b", "c"],
            origin={"repo": "git@x", "path": "a.yaml"},
        )
    )
    assert found.execute == Execute(
        Shell.POWERSHELL,
        "Get-Date\n",
        timedelta(milliseconds=1500),
        RunAs.USER,
        "C:\\",
        (Param("DAYS", "7", "how many"), Param("SITE")),
        1024 * 1024,
        bypass_local_limit=True,
    )
    assert found.execute.timeout_seconds == 1
    assert (found.description, found.require_approval, found.tags, found.origin) == (
        "two\nlines",
        True,
        ("a b", "c"),
        (("repo", "git@x"), ("path", "a.yaml")),
    )
    assert [param.required for param in found.execute.params] == [False, True]


ONLY_ONE = "only one of script, script_file, script_object may be set"
BY_APPLY = "is read by `manage.py apply`"
NO_STORE = "there is no object store here"
MUST = "must be set"


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        pytest.param({"script": "x"}, None, id="4.2#1 text"),
        pytest.param({"script_file": "a.sh"}, f"script_file: {BY_APPLY}", id="4.2#2 ours"),
        pytest.param({"script_object": "k"}, f"script_object: {NO_STORE}", id="4.2#3 ours"),
        pytest.param({"script": "", "script_object": "k"}, NO_STORE, id="4.2#4 ours"),
        pytest.param({}, MUST, id="4.2#5 none"),
        pytest.param({"script": ""}, MUST, id="4.2#6 empty"),
        pytest.param({"script": "x", "script_file": "a"}, ONLY_ONE, id="4.2#7"),
        pytest.param({"script": "x", "script_object": "k"}, ONLY_ONE, id="4.2#8"),
        pytest.param({"script_file": "a", "script_object": "k"}, ONLY_ONE, id="4.2#9"),
        pytest.param(
            {"script": "x", "script_file": "a", "script_object": "k"}, ONLY_ONE, id="4.2#10"
        ),
    ],
)
def test_exactly_one_source_of_the_script(sources: dict[str, str], problem: str | None) -> None:
    document = job(execute={"shell": "sh", "timeout": "30s"} | sources)
    if problem is None:
        assert parse_job(document).execute.script == "x"
    else:
        [found] = problems_of(document)
        assert problem in found


@pytest.mark.parametrize(
    ("timeout", "problem"),
    [
        pytest.param("1s", None, id="least"),
        pytest.param("24h", None, id="most"),
        pytest.param("999ms", "too short; write at least 1s", id="below"),
        pytest.param("24h 1s", "too long; write at most 1day", id="above"),
        pytest.param("soon", "a number is expected", id="18#9 soon"),
        pytest.param(30, "must be text", id="a number"),
        pytest.param("\u0663\u0660s", "a number is expected", id="Arabic digits"),
        pytest.param("9" * 65 + "s", "at most 64 characters", id="too many characters"),
    ],
)
def test_the_timeout_is_a_duration_within_bounds(timeout: object, problem: str | None) -> None:
    if problem is None:
        parse_job(executing(timeout=timeout))
    else:
        [found] = problems_of(executing(timeout=timeout))
        assert found.startswith("execute.timeout: ")
        assert problem in found


@pytest.mark.parametrize("shell", ["sh", "bash", "powershell", "pwsh", "cmd", "python"])
def test_each_shell_is_known(shell: str) -> None:
    found = parse_job(executing(shell=shell))
    assert found.execute.shell == shell
    assert found.document["execute"] == {"shell": shell, "script": "uname -a", "timeout": "30s"}


@pytest.mark.parametrize("run_as", ["system_gui", "root", True])
def test_other_accounts_are_refused(run_as: object) -> None:
    [found] = problems_of(executing(run_as=run_as))
    assert found.startswith("execute.run_as: ")


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [
        pytest.param("1024", 1024, id="4.3#1"),
        pytest.param("50KB", 50_000, id="4.3#3"),
        pytest.param("500 KB", 500_000, id="4.3#4"),
        pytest.param("1MiB", 1024 * 1024, id="4.3#5"),
        pytest.param("2kib", 2048, id="4.3#6"),
        pytest.param(4096, 4096, id="a number"),
    ],
)
def test_the_output_limit_is_a_size(size: object, bytes_: int) -> None:
    assert parse_job(executing(max_output=size)).execute.max_output == bytes_


@pytest.mark.parametrize(
    "size",
    [
        pytest.param("1B", id="4.3#2 ours: below the least"),
        pytest.param("", id="4.3#7 empty"),
        pytest.param("MB", id="4.3#7 MB"),
        pytest.param("12 zonks", id="4.3#7 zonks"),
        "2MiB",
        1023,
        1024 * 1024 + 1,
        1.5,
        "-1",
    ],
)
def test_another_output_limit_is_refused(size: object) -> None:
    [found] = problems_of(executing(max_output=size))
    assert found.startswith("execute.max_output: ")


def test_windows_line_ends_of_a_script_become_lf() -> None:
    assert parse_job(executing(script="a\r\nb\r\n")).execute.script == "a\nb\n"


def test_a_script_of_128_kib_is_taken_and_one_byte_more_is_not() -> None:
    parse_job(executing(script="é" * 64 * 1024))
    assert problems_of(executing(script="é" * 64 * 1024 + "x")) == [
        "execute.script: has 131073 bytes; at most 131072 are allowed"
    ]


@pytest.mark.parametrize(
    "text",
    ["a\0b", "a\x1b[31mb", "a\x85b", "a\ud800b", "a\rb"],
    ids=["nul", "esc", "c1", "surrogate", "cr"],
)
def test_characters_that_cannot_be_stored_are_refused_by_path(text: str) -> None:
    [found] = problems_of(executing(script=text))
    assert found.startswith("execute.script: has ")


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        pytest.param({"path": "x"}, 'execute.params.path: "path" is no parameter', id="lower case"),
        pytest.param({"A": {}}, "execute.params.A: write either default", id="neither"),
        pytest.param(
            {"A": {"default": "x", "required": True}}, "execute.params.A: write either", id="both"
        ),
        pytest.param({"A": {"default": 5}}, "execute.params.A.default: must be text", id="number"),
        pytest.param({"A": {"defualt": "x"}}, 'did you mean "default"?', id="unknown key"),
        pytest.param({"A": "x" * 4097}, "at most 4096", id="long"),
        pytest.param(["A"], "execute.params: must be a mapping", id="list"),
        pytest.param({"A" * 65: "x"}, "is no parameter's name", id="long name"),
    ],
)
def test_a_bad_parameter_is_refused(params: object, problem: str) -> None:
    assert any(problem in found for found in problems_of(executing(params=params)))


def test_a_parameter_may_have_any_text_as_its_default() -> None:
    for default in ("", "; rm -rf /", "$(id)", "%PATH%", 'a"b\nc'):
        assert parse_job(executing(params={"A": default})).execute.params == (Param("A", default),)


@pytest.mark.parametrize(
    "key", ["inventory", "check", "collect", "feed", "emit", "client", "aggregate"]
)
def test_a_key_that_only_adds_output_is_kept_with_a_warning(key: str) -> None:
    found = parse_job(job(**{key: {"name": "x", "deep": [1, {"a": None}]}}))
    assert found.warnings == (Problem(key, "is kept but has no effect here"),)
    assert found.document[key] == {"name": "x", "deep": [1, {"a": None}]}


@pytest.mark.parametrize(
    "extra",
    [
        pytest.param({"staleness": "cached"}, id="staleness cached"),
        pytest.param({"tier": "endpoint"}, id="tier endpoint"),
    ],
)
def test_the_default_of_an_unused_key_needs_no_warning(extra: dict[str, object]) -> None:
    found = parse_job(job(**extra))
    assert found.warnings == ()
    assert found.document == parse_job(job()).document


def test_unchecked_staleness_is_kept_with_a_warning() -> None:
    found = parse_job(job(staleness="unchecked"))
    assert found.warnings == (Problem("staleness", "is kept but has no effect here"),)


@pytest.mark.parametrize(
    ("extra", "path"),
    [
        pytest.param({"finalize": {"script": "x"}}, "finalize", id="finalize"),
        pytest.param({"tier": "controller"}, "tier", id="controller"),
        pytest.param({"staleness": "strict"}, "staleness", id="strict"),
        pytest.param(
            {"staleness": {"strict": {"max_cache_age": "5m"}}}, "staleness", id="strict age"
        ),
    ],
)
def test_a_key_that_restricts_or_would_never_run_is_refused_by_name(
    extra: dict[str, object], path: str
) -> None:
    [found] = problems_of(job(**extra))
    assert found.startswith(f"{path}: ")
    assert "not supported" in found


@pytest.mark.parametrize(
    "job_id", ["", " ", "-a", "a b", "a/b", "../x", "é", "a" * 101, "payp\u0430l", 7, None, "a\n"]
)
def test_an_id_is_an_ascii_slug(job_id: object) -> None:
    assert all(found.startswith("id: ") for found in problems_of(job(id=job_id)))


@pytest.mark.parametrize("version", [1.0, "", "  ", "x" * 101, "a\nb", True, None])
def test_a_version_is_a_line_of_text(version: object) -> None:
    [found] = problems_of(job(version=version))
    assert found.startswith("version: ")


@pytest.mark.parametrize("tags", [["ok", "  "], [""], ["é"], ["x" * 51], "ok", [1]])
def test_a_blank_or_foreign_tag_is_refused(tags: object) -> None:
    [found] = problems_of(job(tags=tags))
    assert found.startswith("tags")


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        pytest.param([], [""], id="a list"),
        pytest.param("x", [""], id="text"),
        pytest.param(None, [""], id="nothing"),
        pytest.param({}, ["id", "version", "execute"], id="empty"),
        pytest.param(job(execute=None), ["execute"], id="execute: null"),
        pytest.param(
            job(execute={}), ["execute.shell", "execute.script", "execute.timeout"], id="{}"
        ),
    ],
)
def test_what_is_missing_is_named_once(document: object, paths: list[str]) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_job(document)
    assert [problem.path for problem in caught.value.problems] == paths


def test_all_problems_are_reported_at_once_with_their_dotted_paths() -> None:
    document = job(version=1, tags=["ok", ""], nmae="x")
    document["execute"] = {"shell": "ksh", "script": "x", "timout": "30s", "run_as": "root"}
    with pytest.raises(ManifestError) as caught:
        parse_job(document)
    assert [problem.path for problem in caught.value.problems] == [
        "version",
        "execute.shell",
        "execute.timeout",
        "execute.run_as",
        "execute.timout",
        "tags[1]",
        "nmae",
    ]
    assert str(caught.value.problems[4]) == ('execute.timout: unknown key; did you mean "timeout"?')


def test_a_thousand_unknown_keys_are_counted_not_listed() -> None:
    with pytest.raises(ManifestError) as caught:
        parse_job(job(**{f"key{number}": 1 for number in range(1000)}))
    assert len(caught.value.problems) == 101
    assert caught.value.problems[-1].message == "and 900 more problems"


def test_a_key_that_cannot_be_printed_is_shown_escaped() -> None:
    [poison, unknown] = problems_of(job(**{"a\x1bb": 1}))
    assert poison.startswith("has a key that has the control character U+001B")
    assert unknown == "a\\x1bb: unknown key"
