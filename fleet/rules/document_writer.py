"""Writes manifests as YAML that reads back without a difference, by YAML 1.2 and 1.1 alike."""

import re
from collections.abc import Iterable

import yaml

from fleet.rules.scalars import FLOAT, INTEGER

# Breaks and marks that a block of lines would not keep.
_NO_BLOCK = frozenset("\u0085\u2028\u2029\ufeff")


class _Writer(yaml.CSafeDumper):
    """Quotes what either version of YAML would take for a number; blocks for several lines."""


def _write_text(writer: _Writer, text: str) -> yaml.ScalarNode:
    block = "\n" in text and not _NO_BLOCK.intersection(text)
    style = "|" if block else ('"' if _NO_BLOCK.intersection(text) else None)
    return writer.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Writer.add_representer(str, _write_text)
for _tag, _pattern in (("int", INTEGER), ("float", FLOAT)):
    _Writer.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        # The writer matches at the beginning; ours means the whole text.
        re.compile(rf"(?:{_pattern.pattern})\Z"),
        list("-+.0123456789"),
    )


def dump_yaml(documents: Iterable[object]) -> str:
    """One YAML text with a document for each value, keys in the order given."""
    return yaml.dump_all(
        documents,
        Dumper=_Writer,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
        explicit_start=False,
    )
