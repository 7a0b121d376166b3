"""Where a script runs: private, clean, as whom; and what this PC refuses."""

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from fleet.agent import accounts, shells, workspace
from fleet.agent.commands import Command
from fleet.agent.gate import Gate
from fleet.agent.output import Output, Stream
from fleet.agent.runner import Attempt
from fleet.agent.workspace import RefusedError
from tests.fleet.agent.make import make_command, make_script


def scripted(text: str = "true\n", **fields: Any) -> Command:
    return make_command(script=make_script(text, **fields))


def printed(command: Command) -> str:
    output = Output(command.script.max_output)
    with workspace.workspace(command, 1) as place:
        Attempt(command, place, output, Gate()).wait()
    return output.captured()[Stream.STDOUT].head.decode()


def folders() -> set[str]:
    return {p.name for p in Path(tempfile.gettempdir()).glob(f"{workspace.FOLDER_PREFIX}*")}


def refused(command: Command) -> str:
    before = folders()
    with pytest.raises(RefusedError) as caught, workspace.workspace(command, 1):
        pass
    assert folders() <= before
    return str(caught.value)


def test_the_folder_and_the_script_are_private() -> None:
    with workspace.workspace(scripted("echo secret\n"), 1) as place:
        script = Path(place.argv[-1])
        assert stat.S_IMODE(script.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(script.stat().st_mode) == 0o600
        assert script.read_bytes() == b"echo secret\n"
    assert not script.parent.exists()


def test_the_folder_goes_also_when_the_start_fails() -> None:
    with pytest.raises(ZeroDivisionError), workspace.workspace(scripted(), 1) as place:
        raise ZeroDivisionError
    assert not Path(place.argv[-1]).parent.exists()


def test_old_folders_of_dead_agents_are_removed_and_young_ones_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    old, young = tmp_path / "kanade-run-old", tmp_path / "kanade-run-young"
    other, link = tmp_path / "kanade-other", tmp_path / "kanade-run-link"
    for folder in (old, young, other):
        folder.mkdir()
        (folder / "script.sh").touch()
    link.symlink_to(other)
    for path in (old, other):
        os.utime(path, (0, 0))
    os.utime(link, (0, 0), follow_symlinks=False)
    workspace.remove_leftovers()
    assert {path.name for path in tmp_path.iterdir()} == {young.name, other.name, link.name}
    assert (other / "script.sh").exists()


def test_the_environment_is_an_allow_list(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET_KEY", "LD_PRELOAD", "PYTHONPATH", "https_proxy", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "leak")
    monkeypatch.setenv("LANG", "C.UTF-8")
    seen = dict(line.split("=", 1) for line in printed(scripted("env\n")).splitlines())
    assert "leak" not in seen.values()
    assert seen["LANG"] == "C.UTF-8"
    allowed = {*workspace._KEPT, "TMPDIR", "TEMP", "TMP", "PWD", "OLDPWD", "SHLVL", "_"}
    assert {name for name in seen if not name.startswith("KANADE_")} <= allowed


def test_a_script_knows_its_command_job_version_and_attempt() -> None:
    text = 'echo "$KANADE_COMMAND $KANADE_JOB $KANADE_VERSION $KANADE_ATTEMPT"\n'
    command = scripted(text)
    assert printed(command) == f"{command.id} inventory 1.0.0 1\n"


HOSTILE = ["; rm -rf /", "$(id)", "`id`", "%PATH%", "a\nb", "'\"\\", "ü漢\u200b", "", " x "]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_parameter_reaches_the_script_as_it_is(value: str) -> None:
    command = scripted('printf "%s" "$KANADE_P_NAME"\n', params={"NAME": value})
    assert printed(command) == value


def test_a_parameter_cannot_replace_a_variable_of_the_system() -> None:
    command = scripted('echo "$PATH"\n', params={"PATH": "/evil"})
    assert "/evil" not in printed(command)


def test_the_working_folder_is_the_asked_one(tmp_path: Path) -> None:
    assert printed(scripted("pwd\n", cwd=str(tmp_path))) == f"{tmp_path}\n"


@pytest.mark.parametrize("cwd", ["/no/such/folder", "relative", "/etc/passwd", ""])
def test_a_working_folder_that_is_not_there_is_refused(cwd: str) -> None:
    assert "working folder" in refused(scripted(cwd=cwd))


@pytest.mark.parametrize("shell", ["cmd", "powershell", "fish", ""])
def test_a_shell_that_this_pc_lacks_is_refused_and_the_others_named(shell: str) -> None:
    if shutil.which(shell or "nothing"):
        pytest.skip(f"this machine has {shell}")
    words = refused(scripted(shell=shell))
    assert words.startswith(f"this PC has no shell {shell!r}; it has ")
    assert "sh" in words


@pytest.mark.parametrize("run_as", ["system_gui", "root", ""])
def test_running_as_anything_else_is_refused(run_as: str) -> None:
    assert "not supported" in refused(scripted(run_as=run_as))


def test_running_as_the_user_is_refused_where_nobody_is_logged_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accounts.account_for, "__kwdefaults__", {"seat": Path("/no/seat")})
    assert "nobody is logged in" in refused(scripted(run_as="user"))


def seat(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "seat0"
    path.write_text(text)
    return path


def test_the_user_is_the_one_of_the_active_session(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    text = "# systemd\nIS_SEAT0=1\nACTIVE=c2\nACTIVE_UID=65534\nSESSIONS=c1 c2\n"
    account = accounts.account_for("user", seat=seat(tmp_path, text))
    assert account is not None
    assert (account.uid, account.name) == (65534, "nobody")


def test_a_script_of_the_user_runs_as_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    path = seat(tmp_path, "ACTIVE_UID=65534\n")
    monkeypatch.setattr(accounts.account_for, "__kwdefaults__", {"seat": path})
    lines = printed(scripted("id -u; id -G; echo $HOME; touch mine && echo ok\n", run_as="user"))
    uid, groups, _home, wrote = lines.splitlines()
    assert (uid, wrote) == ("65534", "ok")
    assert "0" not in groups.split()


@pytest.mark.parametrize("text", ["", "ACTIVE_UID=\n", "ACTIVE_UID=root\n", "ACTIVE_UID=-1\n"])
def test_a_seat_without_a_user_has_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(accounts.NoAccountError, match="nobody is logged in"):
        accounts.account_for("user", seat=seat(tmp_path, text))


def test_a_user_without_an_account_is_refused(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    with pytest.raises(accounts.NoAccountError, match="no account"):
        accounts.account_for("user", seat=seat(tmp_path, "ACTIVE_UID=4000000\n"))


def test_the_agents_own_account_needs_no_change(tmp_path: Path) -> None:
    path = seat(tmp_path, f"ACTIVE_UID={os.geteuid()}\n")
    assert accounts.account_for("user", seat=path) is None
    assert accounts.account_for("system") is None


def everywhere(name: str) -> str | None:
    return f"/bin/{name}"


def nowhere(_: str) -> str | None:
    return None


def test_python_is_the_agents_own_interpreter() -> None:
    shell = shells.find("python", which=nowhere)
    assert shell is not None
    assert shell.argv[0] == sys.executable


def test_a_pc_without_any_shell_still_has_python() -> None:
    assert shells.available(which=nowhere) == ("python",)
    assert shells.available(which=everywhere) == shells.NAMES


@pytest.mark.parametrize("name", ["powershell", "pwsh"])
def test_a_powershell_file_has_a_mark_and_its_own_line_ends(name: str) -> None:
    shell = shells.find(name, which=everywhere)
    assert shell is not None
    assert shell.suffix == ".ps1"
    assert shell.encode("a\nü\r\n") == b"\xef\xbb\xbfa\r\n\xc3\xbc\r\n"


def test_a_posix_file_has_plain_line_ends() -> None:
    shell = shells.find("sh", which=everywhere)
    assert shell is not None
    assert shell.encode("a\r\nb\n") == b"a\nb\n"


def test_a_cmd_file_is_written_in_the_pcs_code_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shells, "oem_code_page", lambda: "cp850")
    shell = shells.find("cmd", which=everywhere)
    assert shell is not None
    assert (shell.suffix, shell.code_page) == (".cmd", "cp850")
    assert shell.encode("echo ü\n") == b"echo \x81\r\n"
    with pytest.raises(shells.UnencodableError, match="'漢' cannot be written in this PC's code"):
        shell.encode("echo 漢\n")


def test_a_script_with_a_nul_is_refused() -> None:
    assert "NUL" in refused(scripted("echo a\0b\n"))
