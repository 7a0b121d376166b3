"""YAML from a file: values by YAML 1.2, limits, and the line of each problem."""

import contextlib
import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.rules.document_writer import dump_yaml
from fleet.rules.documents import Document, DocumentError, load_yaml, read_yaml
from fleet.rules.manifest import (
    ManifestError,
    kind_of,
    parse_freeze,
    parse_group,
    parse_job,
    parse_schedule,
)

TYPICAL = sorted((Path(__file__).parents[2] / "data" / "typical").glob("*.yaml"))


def value_of(text: str | bytes) -> object:
    [document] = load_yaml(text)
    return document.value


def problem_of(text: str | bytes) -> str:
    with pytest.raises(DocumentError) as caught:
        load_yaml(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("at: 12:30", {"at": "12:30"}),
        ("on: [startup]", {"on": ["startup"]}),
        ("a: on", {"a": "on"}),
        ("a: off", {"a": "off"}),
        ("a: yes", {"a": "yes"}),
        ("a: no", {"a": "no"}),
        ("country: NO", {"country": "NO"}),
        ("a: true", {"a": True}),
        ("a: False", {"a": False}),
        ("a: 010", {"a": 10}),
        ("a: 0o10", {"a": 8}),
        ("a: 0x1F", {"a": 31}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: 190:20:30", {"a": "190:20:30"}),
        ("a: 2026-07-01", {"a": "2026-07-01"}),
        ("a: 2026-06-10 09:00", {"a": "2026-06-10 09:00"}),
        ("a: 1.5", {"a": 1.5}),
        ("a: 1e3", {"a": 1000.0}),
        ("a: 1.2.0", {"a": "1.2.0"}),
        ("a: -7", {"a": -7}),
        ("a: ~", {"a": None}),
        ("a:", {"a": None}),
        ("a: 'null'", {"a": "null"}),
        ('a: "12"', {"a": "12"}),
        ("days: [tue#2, mon-fri, friL]", {"days": ["tue#2", "mon-fri", "friL"]}),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
        ("a: =", {"a": "="}),
        ("- 1\n- [2, {b: c}]", [1, [2, {"b": "c"}]]),
        ("just text", "just text"),
        ('{"a": [1, true, null, "x\\/y"]}', {"a": [1, True, None, "x/y"]}),
        ('{\n\t"a": 1\n}', {"a": 1}),
        (b"\xef\xbb\xbfa: \xc3\xa9", {"a": "é"}),
        ("a: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ('"<<": 1', {"<<": 1}),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(text: str | bytes, value: object) -> None:
    assert value_of(text) == value


def test_json_files_may_escape_characters_as_pairs() -> None:
    value = {"a": "😀 \\ud83d\\ude00", "b": ["\U0001d54a"]}
    [document] = read_yaml(json.dumps(value), json=True)
    assert document == Document(1, value, document.lines)


def test_several_documents_know_their_lines() -> None:
    text = "# first\nid: a\nb:\n  - x\n  - y: 1\n---\n---\nid: c\nd: {e: f}\n"
    first, second = load_yaml(text)
    assert first.lines == {"id": 2, "b": 3, "b[0]": 4, "b[1]": 5, "b[1].y": 5}
    assert second.lines == {"id": 8, "d": 9, "d.e": 9}
    assert [first.line_of(path) for path in ("b[1].y", "b[1].z", "b[9].q.r", "", "zz")] == [
        5,
        5,
        3,
        2,
        2,
    ]


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "---\n...\n---\n"])
def test_a_file_without_content_has_no_documents(text: str) -> None:
    assert load_yaml(text) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: &x 1\n", "line 1: a: anchors are not read; remove &x"),
        ("a: 1\nb: *x\n", "line 2: b: aliases are not read; write the value of *x"),
        ("a: !!str 5\n", 'line 1: a: tags are not read; remove "tag:yaml.org,2002:str"'),
        (
            "a: !!python/object:os.system {}\n",
            'line 1: a: tags are not read; remove "tag:yaml.org,2002:python/object:os.system"',
        ),
        ("a: ! x\n", 'line 1: a: tags are not read; remove "!"'),
        ("%TAG ! tag:x,2026:\n---\na: 1\n", "tags are not read; remove the %TAG line"),
        ("<<: {a: 1}\n", "line 1: <<: merge keys are not read; write the keys out"),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "line 3: b.c: the key stands twice, first in line 3"),
        ("true: 1\n", "line 1: true: is no text; write the key in quotes"),
        ("1: x\n", "line 1: 1: is no text; write the key in quotes"),
        ("? [a, {b: c}]\n: 1\nd: 2\n", "line 1: has a key that is no text"),
        ("? {a: b}\n: {c: d}\n", "line 1: has a key that is no text"),
        ('a:\n  b: "x\\0y"\n', "line 2: a.b: has a NUL character at position 1; remove it"),
        ('a: "\\e[31m"\n', "line 1: a: has the control character U+001B at position 0; remove it"),
        ('"a\\x07": 1\n', "has a key that has the control character U+0007"),
        ("a: b\x07\n", "line 1: has the character U+0007, which is not allowed; remove it"),
        ("a: 1\nb: \ud800\n", "line 2: is not UTF-8 at byte 8; save the file as UTF-8"),
        ("a: 9007199254740993\n", "line 1: a: is beyond 2**53; write it as text in quotes"),
        ("a: .inf\n", "line 1: a: is no finite number"),
        ("a: .NaN\n", "line 1: a: is no finite number"),
        ("a: 1e400\n", "line 1: a: is no finite number"),
        ("a: " + "9" * 5000, "line 1: a: is a number of too many digits"),
        ("a: [1\nb: 2\n", "is no YAML"),
        ("a: b: c\n", "is no YAML in column"),
        ("a:\n\t- b\n", "line 2: is no YAML"),
        (b"a: \xff\n", "line 1: is not UTF-8 at byte 3; save the file as UTF-8"),
        ("a\nb: c\n".encode("utf-16"), "is not UTF-8"),
        ("x" * (1024 * 1024 + 1), "has 1048577 bytes; at most 1048576 are read"),
        ("é" * (512 * 1024) + "x", "has 1048577 bytes; at most 1048576 are read"),
    ],
)
def test_what_is_not_allowed_is_named_with_its_line(text: str | bytes, problem: str) -> None:
    assert problem in problem_of(text)


def test_a_bad_document_does_not_hide_the_others() -> None:
    first, second, third = read_yaml("a: 1\n---\nb: 1\nb: 2\nc: *x\n---\nd: 1\n")
    assert (first.problems, third.problems, third.value) == ((), (), {"d": 1})
    assert [str(problem) for problem in second.problems] == [
        "b: the key stands twice, first in line 3",
        "c: aliases are not read; write the value of *x",
    ]


def test_documents_before_a_syntax_error_are_kept() -> None:
    first, broken = read_yaml("a: 1\n---\nb: [1\n---\nc: 1\n")
    assert (first.value, first.problems) == ({"a": 1}, ())
    assert broken.value is None
    assert "is no YAML" in broken.problems[0].message


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + number)}: &{chr(98 + number)} [{','.join(['*' + chr(97 + number)] * 9)}]\n"
    for number in range(9)
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(BOMB, "anchors are not read", id="alias bomb"),
        pytest.param("- " * 3000 + "x", "is nested deeper than 16 levels", id="depth 3000"),
        pytest.param("[" * 3000, "nesting depth", id="flow depth 3000"),
        pytest.param("{a: " * 3000, "is nested deeper than 16 levels", id="mapping depth 3000"),
        pytest.param("? " * 3000, "is nested deeper than 16 levels", id="key depth 3000"),
        pytest.param("- x\n" * 200_000, "has more than 50000 values", id="800 KB of - x"),
        pytest.param("a: [" + "x," * 400_000, "has more than 50000 values", id="flow of x"),
    ],
)
def test_a_hostile_file_ends_in_an_error_after_little_work(text: str, problem: str) -> None:
    began = time.process_time()
    assert problem in problem_of(text)
    # The work of it, not the waiting of a shared machine; unbounded it takes ten times as long.
    assert time.process_time() - began < 5


def test_16_levels_are_read() -> None:
    assert value_of("[" * 16 + "]" * 16) is not None


@pytest.mark.parametrize("path", TYPICAL, ids=lambda path: path.stem)
def test_the_typical_manifests_are_read_without_a_warning_and_written_back(path: Path) -> None:
    job_document, schedule_document = load_yaml(path.read_bytes())
    job, schedule = parse_job(job_document.value), parse_schedule(schedule_document.value)
    assert (job.warnings, schedule.warnings) == ((), ())
    again = load_yaml(dump_yaml([job.document, schedule.document]))
    assert [document.value for document in again] == [job.document, schedule.document]
    assert parse_job(again[0].value) == job
    assert parse_schedule(again[1].value) == schedule


def test_six_typical_manifests_are_there() -> None:
    assert len(TYPICAL) == 6


CLEAN = st.text(
    st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t"), max_size=30
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | CLEAN,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(CLEAN, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES.filter(lambda value: value is not None))
def test_what_is_written_is_read_back_the_same(value: object) -> None:
    assert value_of(dump_yaml([value])) == value


@pytest.mark.parametrize(
    "text",
    [
        "010",
        "1e3",
        "0o17",
        "12:30",
        "on",
        "off",
        "yes",
        "null",
        "~",
        "",
        " x",
        "x ",
        "2026-07-01",
        "- a",
        "a: b",
        "#x",
        "<<",
        "=",
        "1_000",
        ".5",
        "0x1f",
        "a\nb",
        "a\n\n",
        "\na",
        "a\n b\n",
        "!x",
        "&x",
        "*x",
        "%x",
        "@x",
        "`x",
        "\ttab",
        "a \nb",
        "\u2028",
        "\ufeffx",
        "é",
        "😀",
    ],
)
def test_texts_that_look_like_something_else_stay_text(text: str) -> None:
    assert value_of(dump_yaml([{"a": text, text: 1}])) == {"a": text, text: 1}


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_file_is_read_or_refused(data: str | bytes) -> None:
    with contextlib.suppress(DocumentError):
        for document in load_yaml(data):
            json.dumps(document.value, allow_nan=False)


KEYS = re.findall(
    r"\w+",
    """id version execute shell script timeout params when per_pc every calendar at days cron job_id
    target all groups pcs rollout waves group delay max_failures jitter active from until tz
    constraints window skip_dates max_concurrent on_failure retry max backoff members freeze reason
    runs_on enabled tags origin misfire description staleness tier check run_as max_output""",
)
JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS) | st.text(max_size=5),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(JSON_LIKE)
def test_any_value_is_a_manifest_or_refused(value: object) -> None:
    for parse in (kind_of, parse_job, parse_schedule, parse_group, parse_freeze):
        with contextlib.suppress(ManifestError):
            parse(value)
