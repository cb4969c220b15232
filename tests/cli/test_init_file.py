"""The start-up file: commands of the user with which the debugger begins, from the configuration folder alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Call

FOLDER = Path(__file__).parents[2] / "sample_models" / "while_loop"
MODEL = ("debug", FOLDER / "model.xml", "--inputs", FOLDER / "inputs.npz")


@pytest.fixture
def init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file is; there is none yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    path = tmp_path / "config" / "stepper" / "init"
    path.parent.mkdir(parents=True)
    return path


def script(folder: Path, *lines: str) -> tuple[str, Path]:
    (folder / "script.txt").write_text("\n".join(lines))
    return ("--script", folder / "script.txt")


def test_its_commands_come_first_and_say_nothing(call: Call, init: Path, tmp_path: Path) -> None:
    init.write_text("# mine\nbreak until_one@3\ncommands 1\nprint iter\nend\n")
    said = call(*MODEL, *script(tmp_path, "continue", "history"))
    assert said.code == 0 and said.err == ""
    assert said.out.splitlines()[0].startswith("tick 38 ") and said.out.splitlines()[-2:] == ["3", "continue"]
    assert "until_one" not in call(*MODEL, "--no-init", *script(tmp_path, "info breaks")).out


def test_what_is_wrong_in_it_names_file_and_line_and_ends_nothing(call: Call, init: Path, tmp_path: Path) -> None:
    init.write_text("brake x\nbreak nothing_there\nwatch iter\ncommands 7\n")
    said = call(*MODEL, "--json", *script(tmp_path, "info watches"))
    assert said.code == 0
    assert f"{init}, line 1: there is no command 'brake'" in said.err
    assert f"{init}, line 2: there is nothing called 'nothing_there'" in said.err
    assert f"{init}, line 4: there is no breakpoint 7" in said.err
    (line,) = said.out.splitlines()
    assert [watch["text"] for watch in json.loads(line)["answer"]["watches"]] == ["iter"]


def test_one_in_the_current_folder_is_not_read(
    call: Call, init: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("init", ".stepperinit", "stepper/init"):
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_text("watch iter\n") if not (tmp_path / "here" / name).exists() else None
    monkeypatch.chdir(tmp_path / "here")
    assert call(*MODEL, *script(tmp_path, "info watches")).out.strip() == "no watches"


def test_a_session_that_is_gone_on_with_has_what_the_file_set_up(call: Call, init: Path, tmp_path: Path) -> None:
    init.write_text("watch iter\n")
    for _ in range(2):
        said = call(*MODEL, "--session", tmp_path / "kept", *script(tmp_path, "info watches"))
        assert len([line for line in said.out.splitlines() if " iter" in line]) == 1
