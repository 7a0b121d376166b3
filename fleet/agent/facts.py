"""What this PC says about itself: its zone, system and shells, and which machine it is."""

import hashlib
import locale
import os
import platform
import re
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

from fleet.agent import shells
from scheduler.rules.zones import ZoneError, zone

if sys.platform == "win32":
    import winreg

AGENT_VERSION = "0.1.0"
UNKNOWN_ZONE = "UTC"
_LONGEST_NAME = 63
_LOCALTIME, _TIMEZONE = Path("/etc/localtime"), Path("/etc/timezone")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# Each tells machines apart; those that cannot be read are left out, alike at every start.
_MACHINE_FILES = (Path("/etc/machine-id"), Path("/sys/class/dmi/id/product_uuid"))
_MULTICAST = 1 << 40


def facts() -> dict[str, object]:
    """What changes seldom and the server keeps."""
    return {
        "zone": local_zone(),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}".strip(),
        "shells": list(shells.available()),
        "code_page": code_page(),
        "agent_version": AGENT_VERSION,
    }


def code_page() -> str:
    """How console programs of this PC write their characters."""
    if sys.platform == "win32":
        return shells.oem_code_page()
    return locale.getpreferredencoding(do_setlocale=False).lower()


def default_name() -> str:
    """The host's name as a PC's name: letters, digits and `._-`, at most 63 of them."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname())[:_LONGEST_NAME]
    return name.strip("._-") or "pc"


def boot_id() -> str:
    """A text that is another one after each start of this PC."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        # To ten seconds: the two clocks drift against each other.
        return f"since-{round(time.time() - time.monotonic(), -1):.0f}"


def local_zone() -> str:
    """The IANA name of this PC's zone; UTC where it has none that can be told."""
    for name in _zone_candidates():
        try:
            return zone(name).key
        except ZoneError:
            continue
    return UNKNOWN_ZONE


def fingerprint() -> str:
    """Which machine this is, as 64 hexadecimal digits that say nothing else about it."""
    parts = [part for part in (*map(_first_line, _MACHINE_FILES), _system_id()) if part]
    if not parts:
        node = uuid.getnode()
        # With this bit the number is a random one: there was no network card to ask.
        parts = [socket.gethostname()] if node & _MULTICAST else [f"{node:012x}"]
    return hashlib.sha256("\n".join(["kanade-machine", *parts]).encode()).hexdigest()


def _zone_candidates() -> list[str]:
    if sys.platform == "win32":
        key = r"SYSTEM\CurrentControlSet\Control\TimeZoneInformation"
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as opened:
            return [str(winreg.QueryValueEx(opened, "TimeZoneKeyName")[0])]
    environment = os.environ.get("TZ", "").removeprefix(":")
    return [environment, _zone_of_link(), _first_line(_TIMEZONE)]


def _zone_of_link() -> str:
    try:
        return os.readlink(_LOCALTIME).partition("zoneinfo/")[2]
    except OSError:
        return ""


def _first_line(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").partition("\n")[0].strip()
    except OSError:
        return ""


def _system_id() -> str:
    if sys.platform == "win32":
        key = r"SOFTWARE\Microsoft\Cryptography"
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, key) as opened:
            return str(winreg.QueryValueEx(opened, "MachineGuid")[0])
    if sys.platform == "darwin":
        told = subprocess.run(
            ["/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice"],
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        ).stdout
        found = re.search(r'"IOPlatformUUID" = "([^"]+)"', told)
        return found[1] if found else ""
    return ""
