"""What a PC says about itself."""

import re
import socket
import tomllib
from pathlib import Path

import pytest

from fleet.agent import facts

ROOT = Path(__file__).resolve().parent.parent.parent.parent


def test_the_agents_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == facts.AGENT_VERSION


def test_the_same_machine_has_the_same_fingerprint_and_tells_nothing_by_it() -> None:
    found = facts.fingerprint()
    assert found == facts.fingerprint()
    assert re.fullmatch("[0-9a-f]{64}", found)


def test_another_machine_has_another_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for number in range(3):
        path = tmp_path / str(number)
        path.write_text(f"machine {number}\n")
        monkeypatch.setattr(facts, "_MACHINE_FILES", (path, tmp_path / "missing"))
        found.add(facts.fingerprint())
    assert len(found) == 3


def test_a_machine_without_an_id_is_told_by_its_card_or_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(facts, "_MACHINE_FILES", ())
    monkeypatch.setattr("uuid.getnode", lambda: 0x02_00_00_00_00_07)
    by_card = facts.fingerprint()
    monkeypatch.setattr("uuid.getnode", lambda: 0x01_00_00_00_00_07 | 1 << 40)
    monkeypatch.setattr(socket, "gethostname", lambda: "pc-1")
    by_name = facts.fingerprint()
    monkeypatch.setattr(socket, "gethostname", lambda: "pc-2")
    assert len({by_card, by_name, facts.fingerprint()}) == 3


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("pc-1", "pc-1"),
        ("PC_7.lan", "PC_7.lan"),
        ("büro 3", "b-ro-3"),
        ("-.x.-", "x"),
        ("日本", "pc"),
        ("", "pc"),
        ("a" * 80, "a" * 63),
        ("a" * 62 + "-b", "a" * 62),
    ],
)
def test_the_hosts_name_becomes_a_pcs_name(
    monkeypatch: pytest.MonkeyPatch, host: str, name: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    assert facts.default_name() == name


@pytest.mark.parametrize(
    ("environment", "zone"),
    [("Europe/Budapest", "Europe/Budapest"), (":Asia/Tokyo", "Asia/Tokyo")],
)
def test_the_zone_of_the_environment_comes_first(
    monkeypatch: pytest.MonkeyPatch, environment: str, zone: str
) -> None:
    monkeypatch.setenv("TZ", environment)
    assert facts.local_zone() == zone


def test_the_zone_is_read_from_the_link_then_from_the_file_then_utc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    link, file = tmp_path / "localtime", tmp_path / "timezone"
    monkeypatch.setattr(facts, "_LOCALTIME", link)
    monkeypatch.setattr(facts, "_TIMEZONE", file)
    assert facts.local_zone() == "UTC"
    file.write_text("America/Santiago\n")
    assert facts.local_zone() == "America/Santiago"
    link.symlink_to("/usr/share/zoneinfo/Europe/Oslo")
    assert facts.local_zone() == "Europe/Oslo"


def test_a_zone_that_is_none_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    file = tmp_path / "timezone"
    file.write_text("Europe/Paris\n")
    monkeypatch.setattr(facts, "_LOCALTIME", tmp_path / "none")
    monkeypatch.setattr(facts, "_TIMEZONE", file)
    assert facts.local_zone() == "Europe/Paris"


def test_without_a_boot_id_the_time_since_the_start_says_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(facts, "_BOOT_ID", tmp_path / "none")
    assert re.fullmatch(r"since-\d+", facts.boot_id())
