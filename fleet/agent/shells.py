"""Which shells this PC has, how each is called, and how its scripts are written to disk."""

import ctypes
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

UTF8 = "utf-8"
NAMES = ("sh", "bash", "python", "powershell", "pwsh", "cmd")

Which = Callable[[str], str | None]


class UnencodableError(ValueError):
    """The script has characters that this shell's files cannot hold."""


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell: its command line up to the script's path, and how its files are coded."""

    name: str
    argv: tuple[str, ...]
    suffix: str
    code_page: str = UTF8
    crlf: bool = False
    byte_order_mark: bool = False

    def encode(self, script: str) -> bytes:
        """The bytes of the script's file; UnencodableError names what they cannot hold."""
        if "\0" in script:
            raise UnencodableError("the script holds a NUL character")
        lines = script.replace("\r\n", "\n")
        if self.crlf:
            lines = lines.replace("\n", "\r\n")
        try:
            data = lines.encode(self.code_page if self.suffix == ".cmd" else UTF8)
        except UnicodeEncodeError as error:
            raise UnencodableError(
                f"{script[error.start : error.start + 1]!r} cannot be written in this PC's "
                f"code page {self.code_page}"
            ) from error
        return b"\xef\xbb\xbf" + data if self.byte_order_mark else data


def find(name: str, *, which: Which = shutil.which) -> Shell | None:
    """The shell of that name, or None where this PC does not have it."""
    maker = _MAKERS.get(name)
    return maker(which) if maker else None


def available(*, which: Which = shutil.which) -> tuple[str, ...]:
    """The names of all shells that this PC has."""
    return tuple(name for name in NAMES if find(name, which=which) is not None)


def oem_code_page() -> str:
    """The code page in which this PC's console programs read and write."""
    if sys.platform == "win32":
        return f"cp{ctypes.windll.kernel32.GetOEMCP()}"
    return UTF8


def _posix(name: str) -> Callable[[Which], Shell | None]:
    def make(which: Which) -> Shell | None:
        path = which(name)
        return Shell(name, (path,), ".sh") if path else None

    return make


def _python(_: Which) -> Shell:
    # The interpreter of the agent itself: the one that is surely there. Unbuffered, so that what
    # a script printed before it was killed is not lost; UTF-8 whatever the PC's code page.
    return Shell("python", (sys.executable, "-u", "-X", "utf8"), ".py")


def _powershell(name: str) -> Callable[[Which], Shell | None]:
    flags = ("-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File")

    def make(which: Which) -> Shell | None:
        path = which(name)
        if not path:
            return None
        # Windows PowerShell reads a file without the mark in the old code page.
        return Shell(name, (path, *flags), ".ps1", oem_code_page(), crlf=True, byte_order_mark=True)

    return make


def _cmd(which: Which) -> Shell | None:
    path = which("cmd")
    return Shell("cmd", (path, "/d", "/c"), ".cmd", oem_code_page(), crlf=True) if path else None


_MAKERS: dict[str, Callable[[Which], Shell | None]] = {
    "sh": _posix("sh"),
    "bash": _posix("bash"),
    "python": _python,
    "powershell": _powershell("powershell"),
    "pwsh": _powershell("pwsh"),
    "cmd": _cmd,
}
