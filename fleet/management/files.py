"""The files that `apply` is given: which they are, and what is in them."""

import glob
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from fleet.rules.apply_plan import Given
from fleet.rules.documents import MAX_BYTES, Document, DocumentError, read_yaml
from fleet.rules.manifest import ManifestError
from fleet.rules.manifest.inlining import with_script_file
from fleet.rules.manifest.jobs import MAX_SCRIPT
from fleet.rules.problems import Problem

SUFFIXES = (".yaml", ".yml", ".json")


class NoFilesError(Exception):
    """A path names nothing that can be read."""


def files_of(paths: Sequence[str]) -> list[Path]:
    """The files that the paths mean (files, folders, globs), sorted, each once.

    A folder means the YAML and JSON files right in it. A path that means no file is an error.
    """
    found: set[Path] = set()
    for path in paths:
        meant = list(_meant_by(path))
        if not meant:
            raise NoFilesError(f"{path}: no file ending in {', '.join(SUFFIXES)} is there")
        found.update(meant)
    return sorted(found)


def _meant_by(path: str) -> Iterator[Path]:
    plain = Path(path)
    if plain.is_file():
        yield plain
    elif plain.is_dir():
        yield from (file for file in plain.iterdir() if _is_manifest(file))
    else:
        for name in glob.glob(path, recursive=True):
            if _is_manifest(Path(name)):
                yield Path(name)


def _is_manifest(file: Path) -> bool:
    return file.suffix.lower() in SUFFIXES and file.is_file()


def read_file(file: Path) -> list[Given]:
    """The documents of a file, scripts put in place; what cannot be read is a bad document."""
    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        documents = read_yaml(data, json=file.suffix.lower() == ".json")
    except OSError as error:
        documents = [_unreadable(1, (Problem("", f"cannot be read: {error.strerror}"),))]
    except DocumentError as error:
        documents = [_unreadable(error.line, error.problems)]
    return [Given(str(file), _with_script(document, file)) for document in documents]


def _unreadable(line: int, problems: tuple[Problem, ...]) -> Document:
    return Document(line, None, {}, problems)


def _with_script(document: Document, file: Path) -> Document:
    try:
        value = with_script_file(document.value, lambda name: _read_script(name, file.parent))
    except ManifestError as error:
        return replace(document, problems=(*document.problems, *error.problems))
    return replace(document, value=value)


def _read_script(name: str, folder: Path) -> str:
    """The script's text. A file from elsewhere must not be brought to PCs by a manifest."""
    path = (folder / name).resolve()
    roots = (folder.resolve(), Path.cwd().resolve())
    if not any(path.is_relative_to(root) for root in roots):
        raise ValueError(f"{name!r:.200} is outside the folder of the manifest")
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_SCRIPT + 1)
        if len(data) > MAX_SCRIPT:
            raise ValueError(f"{name!r:.200} has more than {MAX_SCRIPT} bytes")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{name!r:.200} is not UTF-8; save it as UTF-8") from None
    except OSError as error:
        raise ValueError(f"{name!r:.200} cannot be read: {error.strerror}") from None
