"""Puts the text of `execute.script_file` in its place, for whoever can read the file."""

from collections.abc import Callable, Mapping

from fleet.rules.problems import ManifestError, Problem

_PATH = "execute.script_file"


def with_script_file(document: object, read: Callable[[str], str]) -> object:
    """The document with the script's text in it; the same one where it names no file.

    `read` turns the path as written into text; its ValueError is the problem's message. A document
    with more than one source is left alone: reading it as a job says what is wrong.
    """
    execute = document.get("execute") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or not isinstance(execute, Mapping):
        return document
    name = execute.get("script_file")
    if (
        not isinstance(name, str)
        or not name
        or execute.get("script")
        or execute.get("script_object")
    ):
        return document
    try:
        text = read(name)
    except ValueError as error:
        raise ManifestError([Problem(_PATH, str(error))]) from None
    inlined = {("script" if key == "script_file" else key): value for key, value in execute.items()}
    return {**document, "execute": inlined | {"script": text}}
