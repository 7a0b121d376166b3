"""The OpenAPI document knows every address, and what it says of manifests is what holds."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs for one call are not worth it
import pytest
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.validation import validate_schema

from fleet.operator_api.documents import FREEZE, GROUP, JOB, SCHEDULE
from fleet.rules.documents import load_yaml
from fleet.rules.manifest import ManifestError, parse_freeze, parse_group, parse_job, parse_schedule
from tests.kanade.routes import routes

TYPICAL = Path(__file__).parents[2] / "data" / "typical"
KINDS: dict[str, tuple[dict[str, Any], Callable[[object], object]]] = {
    "job": (JOB, parse_job),
    "schedule": (SCHEDULE, parse_schedule),
    "group": (GROUP, parse_group),
    "freeze": (FREEZE, parse_freeze),
}


@cache
def document() -> dict[str, Any]:
    schema: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # the package has no types
    return schema


def test_the_document_is_valid_openapi() -> None:
    validate_schema(document())  # type: ignore[no-untyped-call]  # the package has no types


def test_every_address_of_the_api_is_in_it() -> None:
    written = {path.count("/") for path in document()["paths"]}
    below = [route for route in routes() if route.startswith("api/v1/")]

    assert len(document()["paths"]) == len(below)
    assert written == {route.count("/") + 1 for route in below}


def test_every_operation_says_what_it_is_and_how_it_refuses() -> None:
    for path, operations in document()["paths"].items():
        for method, operation in operations.items():
            assert operation["description"], (method, path)
            assert "application/problem+json" in operation["responses"]["default"]["content"]


def test_every_operation_asks_who_calls() -> None:
    for operations in document()["paths"].values():
        for operation in operations.values():
            assert {"apiToken": []} in operation["security"]
            assert {} not in operation["security"]


@pytest.mark.parametrize("path", sorted(TYPICAL.glob("*.yaml")), ids=lambda path: path.stem)
def test_typical_manifests_are_what_it_describes(path: Path) -> None:
    for found in load_yaml(path.read_bytes()):
        assert isinstance(found.value, dict)
        schema = JOB if "execute" in found.value else SCHEDULE
        jsonschema.validate(found.value, schema)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_it_names_is_known_to_the_rules(kind: str) -> None:
    schema, parse = KINDS[kind]
    for key in schema["properties"]:
        assert key not in unknown_to(parse, key)


def unknown_to(parse: Callable[[object], object], key: str) -> set[str]:
    """The keys of a document with this one key alone that the rules do not know."""
    try:
        parse({key: "x"})
    except ManifestError as error:
        unknown = [item for item in error.problems if item.message.startswith("unknown key")]
        return {problem.path for problem in unknown}
    return set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_it_requires_is_required_by_the_rules(kind: str) -> None:
    schema, parse = KINDS[kind]
    for key in schema.get("required", []):
        with pytest.raises(ManifestError) as refused:
            parse({})
        assert key in {problem.path for problem in refused.value.problems}
