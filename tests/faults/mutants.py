"""Take one guard out of the code for a moment, to see that a test misses it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any


@dataclass(frozen=True, slots=True)
class Mutant:
    """A guard by its name: `old` in the source of a module becomes `new`."""

    name: str
    module: ModuleType
    old: str
    new: str

    @contextmanager
    def alive(self) -> Iterator[None]:
        """Let the functions of the module run the changed source, whoever imported them."""
        namespace = self._changed()
        functions = _functions_of(vars(self.module), self.module.__name__)
        others = _functions_of(namespace, self.module.__name__)
        before = {name: function.__code__ for name, function in functions.items()}
        texts = {
            name: value
            for name, value in vars(self.module).items()
            if isinstance(value, str) and namespace[name] != value and not name.startswith("__")
        }
        for name, function in functions.items():
            function.__code__ = others[name].__code__
        for name in texts:
            setattr(self.module, name, namespace[name])
        try:
            yield
        finally:
            for name, function in functions.items():
                function.__code__ = before[name]
            for name, value in texts.items():
                setattr(self.module, name, value)

    def _changed(self) -> dict[str, Any]:
        assert self.module.__file__ is not None
        source = Path(self.module.__file__).read_text(encoding="utf-8")
        assert source.count(self.old) == 1, f"{self.name}: its guard is not there once"
        namespace: dict[str, Any] = dict(vars(self.module))
        exec(compile(source.replace(self.old, self.new), self.module.__file__, "exec"), namespace)
        return namespace


def _functions_of(namespace: dict[str, Any], module: str) -> dict[str, FunctionType]:
    """Functions and plain methods that the module itself defines."""
    found: dict[str, FunctionType] = {}
    for name, value in namespace.items():
        owned = getattr(value, "__module__", None) == module
        if owned and isinstance(value, FunctionType):
            found[name] = value
        elif owned and isinstance(value, type):
            for inner, method in vars(value).items():
                if isinstance(method, FunctionType) and not inner.startswith("__"):
                    found[f"{name}.{inner}"] = method
    return found
