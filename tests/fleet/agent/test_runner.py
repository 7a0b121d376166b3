"""Scripts run for real: exit codes, timeouts, kills, whole process trees, hostile output."""

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from fleet.agent.commands import Outcome
from fleet.agent.gate import Gate
from fleet.agent.output import Captured, Output, Stream
from fleet.agent.runner import Attempt, AttemptEnd
from fleet.agent.workspace import FOLDER_PREFIX, workspace
from tests.fleet.agent import bombed
from tests.fleet.agent.make import command_id, make_command, make_script
from tests.fleet.agent.until import until

pytestmark = pytest.mark.concurrency

GRACE_S = 0.2
ROOT = Path(__file__).resolve().parent.parent.parent.parent


@dataclass
class Ran:
    """How an attempt ended and what it wrote."""

    end: AttemptEnd
    stdout: Captured
    stderr: Captured


def run(
    text: str,
    *,
    gate: Gate | None = None,
    meanwhile: Callable[[], None] = lambda: None,
    **fields: Any,
) -> Ran:
    command = make_command(script=make_script(text, **fields))
    output = Output(command.script.max_output)
    with workspace(command, 1) as place:
        attempt = Attempt(command, place, output, gate or Gate())
        helper = threading.Thread(target=meanwhile)
        helper.start()
        end = attempt.wait(grace_s=GRACE_S)
        helper.join()
    kept = output.captured()
    return Ran(end, kept[Stream.STDOUT], kept[Stream.STDERR])


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def read_pids(path: Path, count: int) -> list[int]:
    def pids() -> list[int]:
        words = path.read_text().split() if path.exists() else []
        return [int(word) for word in words] if len(words) >= count else []

    return until(pids, what=f"{count} process ids in {path.name}")


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_script_runs_and_both_streams_are_kept(shell: str) -> None:
    ran = run("echo out; echo err >&2\n", shell=shell)
    assert ran.end == AttemptEnd(Outcome.SUCCEEDED, 0)
    assert (ran.stdout.head, ran.stderr.head) == (b"out\n", b"err\n")


def test_a_python_script_runs() -> None:
    ran = run("import sys\nprint('héllo')\nsys.exit(3)\n", shell="python")
    assert ran.end == AttemptEnd(Outcome.FAILED, 3)
    assert ran.stdout.head == "héllo\n".encode()


@pytest.mark.parametrize("code", [1, 122, 124, 127, 255])
def test_the_scripts_own_exit_code_is_reported(code: int) -> None:
    assert run(f"exit {code}\n").end == AttemptEnd(Outcome.FAILED, code)


def test_a_script_that_a_signal_ends_has_failed_with_its_number() -> None:
    end = run("kill -SEGV $$\n").end
    assert end == AttemptEnd(Outcome.FAILED, 139, "ended by the signal SIGSEGV")


def test_stdin_is_empty() -> None:
    assert run("cat; echo done\n").stdout.head == b"done\n"


def test_no_handle_of_the_agent_is_inherited(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        listed = run("ls -l /proc/self/fd\n").stdout.head.decode()
    assert "secret" not in listed
    assert {int(line.split()[-3]) for line in listed.splitlines() if "->" in line} <= {0, 1, 2, 3}


def test_a_script_that_takes_too_long_times_out() -> None:
    ran = run("echo before; sleep 600\n", timeout_s=1)
    assert ran.end == AttemptEnd(Outcome.TIMED_OUT, -1, "timeout after 1 s")
    assert ran.stdout.head == b"before\n"


def test_a_kill_ends_the_script_at_once(tmp_path: Path) -> None:
    gate, pid_file = Gate(), tmp_path / "pid"

    def kill() -> None:
        read_pids(pid_file, 1)
        gate.kill([command_id()])

    ran = run(f"echo $$ > {pid_file}; sleep 600\n", gate=gate, meanwhile=kill)
    assert ran.end == AttemptEnd(Outcome.KILLED, -1, "killed on request")
    assert not alive(read_pids(pid_file, 1)[0])


def test_a_kill_that_came_before_the_start_is_not_lost() -> None:
    gate = Gate()
    gate.kill([command_id()])
    assert run("sleep 600\n", gate=gate).end.outcome is Outcome.KILLED


def test_the_kill_of_another_command_changes_nothing() -> None:
    gate = Gate()
    gate.kill([command_id(2)])
    assert run("exit 0\n", gate=gate).end.outcome is Outcome.SUCCEEDED


def test_an_agent_that_stops_ends_the_script_and_does_not_call_it_a_kill(
    tmp_path: Path,
) -> None:
    gate, pid_file = Gate(), tmp_path / "pid"

    def stop() -> None:
        read_pids(pid_file, 1)
        gate.stop()
        gate.abort()

    ran = run(f"echo $$ > {pid_file}; sleep 600\n", gate=gate, meanwhile=stop)
    assert ran.end.outcome is Outcome.OUTCOME_UNKNOWN
    assert not alive(read_pids(pid_file, 1)[0])


TREES = {
    "a child": "sleep 600 & echo $! >> {pids}",
    "a grandchild": "(sh -c 'sleep 600 & echo $! >> {pids}; wait') &",
    "one that ignores SIGTERM": (
        "sh -c 'trap \"\" TERM; echo $$ >> {pids}; while :; do sleep 1; done' &"
    ),
    "one in its own session": "setsid sh -c 'echo $$ >> {pids}; sleep 600' &",
    "one in its own session that ignores SIGTERM": (
        "setsid sh -c 'trap \"\" TERM HUP; echo $$ >> {pids}; while :; do sleep 1; done' &"
    ),
    "an orphan in its own session": (
        "sh -c 'setsid sh -c \"echo \\$\\$ >> {pids}; sleep 600\" &' ; true"
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_a_timeout_ends_the_whole_tree(tmp_path: Path, name: str) -> None:
    pid_file = tmp_path / "pids"
    child = TREES[name].format(pids=pid_file)
    end = run(f"{child}\necho $$ >> {pid_file}\nwhile :; do sleep 1; done\n", timeout_s=1).end
    assert end.outcome is Outcome.TIMED_OUT
    assert [pid for pid in read_pids(pid_file, 2) if alive(pid)] == []


def test_a_script_that_ignores_sigterm_itself_is_killed(tmp_path: Path) -> None:
    script = "trap '' TERM\nwhile :; do sleep 1; done\n"
    assert run(script, timeout_s=1).end.outcome is Outcome.TIMED_OUT


def test_a_script_that_asks_to_tidy_up_may_do_so_within_the_grace(tmp_path: Path) -> None:
    script = "trap 'echo tidy; exit 0' TERM\nwhile :; do sleep 0.05; done\n"
    ran = run(script, timeout_s=1)
    assert (ran.end.outcome, ran.stdout.head) == (Outcome.TIMED_OUT, b"tidy\n")


def test_without_a_thread_to_watch_it_a_script_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    command = make_command(script=make_script(f"touch {tmp_path}/ran\n"))
    monkeypatch.setattr(threading.Thread, "start", start)
    with workspace(command, 1) as place, pytest.raises(OSError, match="no thread to watch it"):
        Attempt(command, place, Output(command.script.max_output), Gate())
    assert not (tmp_path / "ran").exists()


def test_other_processes_survive_the_end_of_a_tree(tmp_path: Path) -> None:
    neighbour, done = tmp_path / "pid", threading.Event()
    gate = Gate()

    def other() -> None:
        run(f"echo $$ > {neighbour}; sleep 600\n", gate=gate)
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    pid = read_pids(neighbour, 1)[0]
    run("sleep 600\n", timeout_s=1)
    assert alive(pid)
    gate.abort()
    thread.join()
    assert done.is_set()


def test_a_process_left_behind_with_the_pipes_holds_nobody_up(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    ran = run(f"sleep 600 & echo $! > {pid_file}; echo said\n")
    assert (ran.end.outcome, ran.stdout.head) == (Outcome.SUCCEEDED, b"said\n")
    pid = read_pids(pid_file, 1)[0]
    assert alive(pid), "what a script starts to stay is left alone"
    os.kill(pid, 9)


def test_what_a_failed_script_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    ran = run(f"sleep 600 & echo $! > {pid_file}; exit 3\n")
    assert (ran.end.outcome, ran.end.exit_code) == (Outcome.FAILED, 3)
    assert not alive(read_pids(pid_file, 1)[0])


def test_a_process_left_behind_that_writes_for_ever_holds_nobody_up(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    ran = run(f"yes & echo $! > {pid_file}\n", max_output=4096)
    assert ran.end.outcome is Outcome.SUCCEEDED
    # Its pipe is closed now, so it ends by itself.
    until(lambda: not alive(read_pids(pid_file, 1)[0]), what="the flood to end")


def test_fifty_megabytes_are_counted_hashed_and_kept_in_bounded_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    script = "head -c 52428800 /dev/zero; printf END\n"
    ran = run(script, max_output=256 * 1024)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert ran.end.outcome is Outcome.SUCCEEDED
    assert ran.stdout.total == 52_428_803
    assert len(ran.stdout.head) + len(ran.stdout.tail) == 256 * 1024
    assert ran.stdout.tail.endswith(b"\0END")
    digest = sha256()
    for _ in range(50):
        digest.update(bytes(1024 * 1024))
    digest.update(b"END")
    assert ran.stdout.sha256 == digest.hexdigest()
    assert grown_kib < 16 * 1024


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user of its own")
def test_a_fork_bomb_of_an_unprivileged_agent_ends_with_its_timeout_and_the_agent_lives() -> None:
    done = subprocess.run(
        [sys.executable, "-m", bombed.__name__],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"bomb": "timed_out", "left": 0, "next": "succeeded"}


HOSTILE = {
    "invalid UTF-8": b"\xff\xfe\xc3(\x80",
    "NUL": b"a\0b\0",
    "UTF-16": "árvíz\r\n".encode("utf-16"),
    "code page 852": "árvíztűrő".encode("cp852"),
    "code page 932": "日本".encode("cp932"),
    "half a character": "é".encode()[:1],
    "escapes": b"\x1b[2J\x1b]0;title\x07",
    "no newline": b"x" * 4097,
    "carriage returns": b"a\r\nb\rc",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_bytes_come_out_as_they_went_in(name: str) -> None:
    data = HOSTILE[name]
    octal = "".join(f"\\{byte:03o}" for byte in data)
    ran = run(f"printf '{octal}'; printf '{octal}' >&2\n", shell="bash")
    assert (ran.stdout.head, ran.stderr.head) == (data, data)


def test_an_endless_line_ends_with_the_timeout() -> None:
    ran = run("yes | tr -d '\\n'\n", timeout_s=1, max_output=1000)
    assert ran.end.outcome is Outcome.TIMED_OUT
    kept = [len(part.head) + len(part.tail) for part in (ran.stdout, ran.stderr)]
    assert sum(kept) == 1000
    assert ran.stdout.total > 1000


def test_output_is_live_while_the_script_runs(tmp_path: Path) -> None:
    go = tmp_path / "go"
    command = make_command(
        script=make_script(f"echo early; while [ ! -e {go} ]; do sleep 0.05; done\n")
    )
    output = Output(command.script.max_output)
    with workspace(command, 1) as place:
        attempt = Attempt(command, place, output, Gate())
        until(output.has_live, what="the first piece of output")
        assert output.live()[0].data == b"early\n"
        go.touch()
        assert attempt.wait().outcome is Outcome.SUCCEEDED


def test_nothing_is_left_of_the_attempts_folder(tmp_path: Path) -> None:
    ran = run("pwd; touch left; echo $0; echo $TMPDIR\n")
    cwd, script, temporary = ran.stdout.head.decode().split()
    assert Path(cwd).name.startswith(FOLDER_PREFIX)
    assert (Path(script).parent, Path(temporary)) == (Path(cwd), Path(cwd))
    assert not Path(cwd).exists()
