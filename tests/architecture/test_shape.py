"""The shape of the code: small modules, small functions, one broad except, nothing hidden."""

import ast
from collections.abc import Iterator

import pytest

from tests.architecture.tree import ROOT, sources

MOST_LINES_OF_A_MODULE = 250
MOST_LINES_OF_A_FUNCTION = 40
JUNK_DRAWERS = {"utils.py", "helpers.py", "common.py", "constants.py", "misc.py", "signals.py"}
MODULES = sorted(sources())


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


@pytest.mark.parametrize("name", MODULES)
def test_a_module_fits_in_the_readers_head(name: str) -> None:
    lines = (ROOT / name).read_text(encoding="utf-8").count("\n")

    assert lines <= MOST_LINES_OF_A_MODULE


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of its body; a long signature and docstring are no burden to a reader."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("name", MODULES)
def test_a_function_fits_on_a_screen(name: str) -> None:
    long = {
        function.name: lines_of(function)
        for function in functions(sources()[name])
        if lines_of(function) > MOST_LINES_OF_A_FUNCTION
    }

    assert long == {}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_named_for_a_topic(name: str) -> None:
    assert name.rsplit("/", 1)[-1] not in JUNK_DRAWERS


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_is_for(name: str) -> None:
    tree = sources()[name]

    assert not tree.body or ast.get_docstring(tree)


def catches_everything(handler: ast.ExceptHandler) -> bool:
    named = [handler.type] if handler.type else []
    if isinstance(handler.type, ast.Tuple):
        named = list(handler.type.elts)
    return not named or any(
        isinstance(item, ast.Name) and item.id in {"Exception", "BaseException"} for item in named
    )


def test_only_the_shared_helper_and_the_engine_catch_everything() -> None:
    places = {
        name
        for name, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    }

    assert places <= {"scheduler/rules/contained.py", "scheduler/engine/execute.py"}


def test_no_model_overrides_save_and_nothing_listens_to_signals() -> None:
    overrides = [
        f"{name}: {node.name}"
        for name, tree in sources().items()
        if "/models/" in name
        for node in functions(tree)
        if node.name in {"save", "delete"}
    ]
    listeners = [
        name
        for name, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("signals")
    ]

    assert overrides == []
    assert listeners == []


def test_no_text_is_declared_safe_markup() -> None:
    names = {"mark_safe", "SafeString", "SafeText"}
    places = [
        f"{name}:{node.lineno}"
        for name, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.Name, ast.Attribute))
        and (node.id if isinstance(node, ast.Name) else node.attr) in names
    ]

    assert places == []


def test_no_template_switches_escaping_off() -> None:
    places = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "templates").rglob("*.html")
        if "|safe" in path.read_text(encoding="utf-8")
        or "autoescape off" in path.read_text(encoding="utf-8")
    ]

    assert places == []


def test_no_template_engine_runs_over_stored_text() -> None:
    places = [
        f"{name}:{node.lineno}"
        for name, tree in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, (ast.Name, ast.Attribute))
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr)
        in {"from_string", "Template"}
    ]

    assert places == []


def test_the_server_starts_no_processes() -> None:
    allowed = ("fleet/agent/", "kanade/local.py", "/benches/", "/commands/bench.py")
    places = [
        name
        for name, tree in sources().items()
        if not any(part in name for part in allowed)
        for node in ast.walk(tree)
        if (isinstance(node, ast.Import) and any(item.name == "subprocess" for item in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "subprocess")
    ]

    assert places == []
