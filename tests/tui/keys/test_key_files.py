"""Keys of the user's own: presets and files put keys in place of others; mistakes are errors, conflicts are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import stepper_tui.app  # registers the actions, of which keys are checked
from stepper_tui.command_line import ActionPalette
from stepper_tui.keymap import PANES, Dispatcher, _unreachable, chosen_keys, footer, key_names, keys_of
from stepper_tui.keys import KEYS, PRESETS
from stepper_tui.registry import actions
from stepper_tui.screens.help import lines
from textual import events

from stepper.commands.command_session import command_called
from stepper.errors import UsageError
from tests.tui.driven import DECODER, Driven, debugger_of_sample

MAP = {
    "n": "next", "N": "reverse-next", "F10": "next", "s": "step", "S": "reverse-step", "F11": "step",
    "Shift+F11": "finish", "]": "iter +", "[": "iter -", "c": "continue", "C": "reverse-continue", "F5": "continue",
    "Esc": "pause", "Ctrl+C": "pause", "b": "toggle-break", "F9": "toggle-break", "w": "watch", "*": "edit-value",
    "=": "A next", "m": "mark", "'": "goto '", ":": "prompt", "!": "prompt !", "Tab": "focus next",
    "Shift+Tab": "focus previous", "Ctrl+P": "palette", "?": "help-keys", "F1": "help-keys", "Ctrl+S": "save-session",
    "Ctrl+E": "export", "Ctrl+R": "rerun", "q": "back", "Ctrl+Q": "quit", "Ctrl+Z": "suspend",
}  # fmt: skip
"""The key map that users were promised."""


@pytest.mark.parametrize("spelled", MAP)
def test_each_key_of_the_map_does_everywhere_what_it_says(spelled: str) -> None:
    name = key_names(spelled, "")[0]
    commands = [key.command for key in KEYS if name in key.keys and not key.panes]
    assert len(commands) == 1 and commands[0].startswith(MAP[spelled])


def test_on_the_sheet_arrows_and_letters_move_the_cursor() -> None:
    commands = [key.command for letter in "hjkl" for key in keys_of("sheet") if letter in key.keys]
    assert commands == [f"sheet-move {way} {{n}}" for way in ("left", "down", "up", "right")]


def test_the_printed_table_has_every_key_and_no_other() -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "stepper", "help", "keys", "--keys", "default"],
        capture_output=True, text=True, check=True, encoding="utf-8", env=None,
    ).stdout.splitlines()  # fmt: skip
    assert printed == lines(KEYS)
    assert sum(line.startswith("  ") for line in printed) >= len(KEYS)
    for key in KEYS:
        assert any(line.strip().startswith(key.shown) and line.endswith(key.command.rstrip()) for line in printed)


# --- presets --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_has_commands_that_there_are_and_no_conflicts(preset: str) -> None:
    keymap = chosen_keys(preset).keymap
    for key in keymap:
        word = key.command.split()[0]
        assert word in actions() or command_called(word)
    for pane in ("", *PANES):
        for scope in ([key for key in keymap if pane in key.panes], [key for key in keymap if not key.panes]):
            names = [name for key in scope for name in key.keys]
            assert len(names) == len(set(names))
    assert not _unreachable(keymap)
    assert {key.command.split()[0] for key in KEYS} <= {key.command.split()[0] for key in keymap}


@pytest.mark.parametrize(
    ("preset", "typed", "command"),
    [("vim", ["j"], "next"), ("vim", ["5", "k"], "reverse-next 5"), ("vim", ["G"], "sheet-move end"),
     ("vim", ["n"], "search-next"), ("vim", ["Z", "Z"], "quit"), ("emacs", ["ctrl+x", "ctrl+s"], "save-session"),
     ("emacs", ["ctrl+x", "o"], "focus next"), ("emacs", ["3", "ctrl+n"], "next 3"), ("vscode", ["f3"], "search-next"),
     ("vscode", ["f15"], "search-previous"), ("vscode", ["f12"], "why {op}")],
)  # fmt: skip
def test_keys_of_a_preset_are_put_together(preset: str, typed: list[str], command: str) -> None:
    dispatcher = Dispatcher(chosen_keys(preset).keymap)
    found = [dispatcher.feed(events.Key(name, name if len(name) == 1 else None), "") for name in typed]
    assert found[-1] == command and not any(found[:-1]) and not dispatcher.pending


def test_a_key_that_is_not_finished_is_seen_and_given_up() -> None:
    dispatcher = Dispatcher(chosen_keys("emacs").keymap)
    assert dispatcher.feed(events.Key("ctrl+x", None), "") == "" and dispatcher.pending == "Ctrl+X"
    assert dispatcher.feed(events.Key("f7", None), "") == "" and not dispatcher.pending


# --- files ----------------------------------------------------------------------------------------------------------


def written(folder: Path, text: str) -> Path:
    path = folder / "keys.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_puts_keys_in_place_of_others(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'preset = "vim"\n[keys]\n"Ctrl+N" = "next {n}"\n"x" = ""\n"e" = "view value"\n'
        '[keys.graph]\n"Ctrl+X Ctrl+G" = "zoom in"\n"down" = "next {n}"\n',
    )
    chosen = chosen_keys(str(path))
    keymap = chosen.keymap
    assert not any("x" in key.keys for key in keymap if not key.panes)
    assert next(key for key in keymap if "e" in key.keys and not key.panes).command == "view value"
    assert next(key for key in keymap if "ctrl+n" in key.keys).keys[0] == "ctrl+n"
    in_graph = [key for key in keymap if "graph" in key.panes]
    assert {"ctrl+x ctrl+g": "zoom in", "down": "next {n}"}.items() <= {
        name: key.command for key in in_graph for name in key.keys
    }.items()
    assert [key.command for key in keymap if "down" in key.keys and "sheet" in key.panes] == ["sheet-move down {n}"]
    assert ("Ctrl+N", "op") in footer("", keymap) or ("j", "op") in footer("", keymap)
    assert "'e' does 'view value' but in sheet ('why end')" in chosen.conflicts
    assert "'wire down' has no key any more" in chosen.conflicts


@pytest.mark.parametrize(
    ("text", "message"),
    [("[keys", "not valid TOML"), ('preset = "nano"', "no preset 'nano'"), ('[keys]\n"n" = "nxt"', "no command 'nxt'"),
     ('[keys]\n"Hyper+n" = "next"', "there is no key 'Hyper+n'"),
     ('[keys]\n"Ctrl+I" = "next"', "the same for it as for Tab"),
     ('[keys]\n"5" = "next"', "digits are counts"), ('[keys.grap]\n"n" = "next"', "no pane 'grap'"),
     ('[keys]\n"n" = 3', "a command in quotes"), ('[colours]\nx = "y"', "'colours'"), ('keys = 3', "[keys]")],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_one_message_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as error:
        chosen_keys(str(path))
    assert message in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize(
    ("text", "conflict"),
    [('"ctrl+n" = "next"\n"Ctrl+N" = "step"', "are the same key"), ('"j" = "step"', "'j' does 'step' but in "),
     ('"n n" = "step"', "'n n' is never reached"), ('"Shift+F11" = "step"', "'finish' has no key")],
)  # fmt: skip
def test_conflicts_are_told(tmp_path: Path, text: str, conflict: str) -> None:
    chosen = chosen_keys(str(written(tmp_path, f"[keys]\n{text}\n")))
    assert any(conflict in sentence for sentence in chosen.conflicts)


def test_a_name_that_is_neither_preset_nor_file_is_said() -> None:
    with pytest.raises(UsageError, match="presets are default, vscode, vim, emacs"):
        chosen_keys("joe")


def test_the_application_takes_them_and_tells_conflicts_at_the_start(tmp_path: Path) -> None:
    import asyncio

    path = written(tmp_path, 'preset = "emacs"\n[keys]\n"h" = "next {n}"\n')

    async def run() -> None:
        app = stepper_tui.app.StepperApp(debugger_of_sample("date_normaliser"), "subject", keys=chosen_keys(str(path)))
        async with app.run_test(size=(120, 40)) as pilot:
            driven = Driven(app, pilot)
            await driven.settle()
            assert "keys in conflict: 'h' does" in driven.text("answer")
            await driven.type(f"run-to {DECODER}@0")
            tick = driven.state.view.tick
            await driven.do("ctrl+n", "ctrl+n", "ctrl+p")
            assert driven.state.view.tick == tick + 1
            await driven.press("ctrl+x", "ctrl+x")
            await driven.press("alt+x")
            assert isinstance(app.screen, ActionPalette)
            await driven.press("escape")
            await driven.press("question_mark")
            assert "Ctrl+N" in driven.text("help")
            app.driver.close()

    asyncio.run(run())
