"""The program itself: its options, its exit codes, its signals."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fleet.agent import cli
from tests.fleet.agent.make import command_id, make_command, make_script
from tests.fleet.agent.server import FakeServer, as_json
from tests.fleet.agent.until import until

pytestmark = pytest.mark.concurrency

ROOT = Path(__file__).resolve().parent.parent.parent.parent


@pytest.fixture
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    made.now = lambda: datetime.now(UTC)
    yield made
    made.close()


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "fleet.agent", *options]


def run(*options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*options), cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def enrolling(server: FakeServer, folder: Path) -> list[str]:
    state = str(folder / "state")
    return ["--server", server.url, "--enrol", "ken1_t", "--state-dir", state, "--name", "pc-1"]


def give(server: FakeServer, text: str) -> None:
    now = datetime.now(UTC)
    server.give(
        make_command(script=make_script(text), issued_at=now, deadline_at=now + timedelta(hours=1))
    )


def test_the_first_time_enrols_and_later_starts_need_no_token(
    server: FakeServer, tmp_path: Path
) -> None:
    give(server, "exit 0\n")
    first = run(*enrolling(server, tmp_path), "--once")
    assert (first.returncode, server.enrolments[0]["name"]) == (0, "pc-1")
    assert server.results[command_id()]["outcome"] == "succeeded"
    second = run("--state-dir", str(tmp_path / "state"), "--once")
    assert (second.returncode, len(server.enrolments)) == (0, 1)


def test_a_token_given_again_is_not_used(server: FakeServer, tmp_path: Path) -> None:
    run(*enrolling(server, tmp_path), "--once")
    again = run(*enrolling(server, tmp_path), "--once")
    assert (again.returncode, len(server.enrolments)) == (0, 1)
    assert "enrolled already, as pc-1" in again.stderr


def test_nothing_secret_is_written_to_the_log(server: FakeServer, tmp_path: Path) -> None:
    done = run(*enrolling(server, tmp_path), "--once")
    assert "ken1_" not in done.stderr + done.stdout
    assert "kag1_" not in done.stderr + done.stdout


BAD_SETUPS = [
    (["--server", "https://127.0.0.1:9"], "give --enrol TOKEN"),
    ([], "give --server and --enrol"),
    (["--server", "http://example.org", "--enrol", "t"], "is not encrypted"),
    (["--server", "nonsense", "--enrol", "t"], "is no address"),
]


@pytest.mark.parametrize(("options", "words"), BAD_SETUPS)
def test_a_wrong_setup_is_explained_and_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert cli.main([*options, "--state-dir", str(tmp_path / "state")]) == 2
    assert words in capsys.readouterr().err


def test_a_folder_that_others_may_enter_exits_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o755)
    assert cli.main(["--state-dir", str(tmp_path)]) == 2
    assert "chmod 700" in capsys.readouterr().err


def test_a_refused_enrolment_exits_1(server: FakeServer, tmp_path: Path) -> None:
    server.once(as_json(401, {"title": "Unauthorized"}))
    done = run(*enrolling(server, tmp_path))
    assert done.returncode == 1
    assert "does not enrol this PC: 401 Unauthorized" in done.stderr


def test_an_unreachable_server_exits_3_when_asked_once(tmp_path: Path) -> None:
    options = ["--server", "http://127.0.0.1:9", "--enrol", "t", "--once"]
    done = run(*options, "--state-dir", str(tmp_path / "state"))
    assert (done.returncode, "Connection refused" in done.stderr) == (3, True)


def test_an_agent_that_the_server_refuses_exits_1_when_asked_once(
    server: FakeServer, tmp_path: Path
) -> None:
    run(*enrolling(server, tmp_path), "--once")
    server.valid_credentials.clear()
    done = run("--state-dir", str(tmp_path / "state"), "--once")
    assert (done.returncode, "does not know this agent" in done.stderr) == (1, True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_agent_and_it_exits_0(
    server: FakeServer, tmp_path: Path, number: signal.Signals
) -> None:
    process = subprocess.Popen(
        command(*enrolling(server, tmp_path)), cwd=ROOT, stderr=subprocess.DEVNULL
    )
    until(lambda: server.exchanges, what="the first exchange")
    process.send_signal(number)
    assert process.wait(20) == 0


def test_a_signal_stops_an_agent_that_waits_for_its_server(tmp_path: Path) -> None:
    state = tmp_path / "state"
    options = ["--server", "http://127.0.0.1:9", "--enrol", "t", "--state-dir", str(state)]
    process = subprocess.Popen(command(*options), cwd=ROOT, stderr=subprocess.DEVNULL)
    until((state / "enrolment.json").exists, what="the enrolment")
    process.terminate()
    assert process.wait(20) == 0


def test_a_second_agent_in_the_folder_exits_2(server: FakeServer, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(*enrolling(server, tmp_path)), cwd=ROOT, stderr=subprocess.DEVNULL
    )
    until(lambda: server.exchanges, what="the first exchange")
    second = run("--state-dir", str(tmp_path / "state"), "--once")
    process.terminate()
    assert process.wait(20) == 0
    assert (second.returncode, "already running" in second.stderr) == (2, True)


def test_a_killed_agent_leaves_no_lock_behind(server: FakeServer, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(*enrolling(server, tmp_path)), cwd=ROOT, stderr=subprocess.DEVNULL
    )
    until(lambda: server.exchanges, what="the first exchange")
    process.kill()
    process.wait(20)
    assert run("--state-dir", str(tmp_path / "state"), "--once").returncode == 0


def test_when_the_server_has_moved_its_new_address_is_kept(
    server: FakeServer, tmp_path: Path
) -> None:
    run(*enrolling(server, tmp_path), "--once")
    moved = server.url.replace("127.0.0.1", "localhost")
    state = str(tmp_path / "state")
    assert run("--state-dir", state, "--server", moved, "--once").returncode == 0
    assert moved in (tmp_path / "state" / "identity.json").read_text()
    assert run("--state-dir", state, "--once").returncode == 0


def test_check_says_what_is_well_and_changes_nothing(server: FakeServer, tmp_path: Path) -> None:
    state = tmp_path / "state"
    before = run("--check", "--state-dir", str(state), "--server", server.url)
    assert before.returncode == 1
    assert not state.exists()
    assert "BAD identity: not enrolled" in before.stdout
    run(*enrolling(server, tmp_path), "--once")
    files = {path: path.read_bytes() for path in state.iterdir() if path.is_file()}
    after = run("--check", "--state-dir", str(state))
    assert after.returncode == 0
    assert "BAD" not in after.stdout
    assert f"ok  server: {server.url} answers" in after.stdout
    assert {path: path.read_bytes() for path in files} == files


def test_check_names_what_is_wrong(server: FakeServer, tmp_path: Path) -> None:
    run(*enrolling(server, tmp_path), "--once")
    os.chmod(tmp_path / "state", 0o755)
    done = run("--check", "--state-dir", str(tmp_path / "state"), "--server", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert "BAD folder" in done.stdout
    assert "BAD server: 127.0.0.1:9 refuses connections" in done.stdout


def test_the_version_is_told() -> None:
    assert run("--version").stdout.strip() == "0.1.0"
