"""A session is saved while one works: at once what is set up, a place now and then; what cannot be restored is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.stop import Mark
from stepper.errors import SessionError
from stepper.session import autosave as session_autosave
from stepper.session.autosave import Autosave
from stepper.session.session_files import restore_session
from tests.debug.debugged import sample, state_of
from tests.debug.pausing import pause_after


@pytest.fixture
def begun(tmp_path: Path) -> tuple[Debugger, Autosave]:
    debugger, autosave = sample("while_loop"), Autosave(folder=tmp_path)
    assert not autosave.restore(debugger).sentence and not autosave.keep_up(debugger)
    return debugger, autosave


def restored(debugger: Debugger, autosave: Autosave) -> Debugger:
    other = sample("while_loop")
    restore_session(other, autosave.path(debugger))
    return other


@pytest.mark.parametrize("change", ["break", "watch", "mark", "branch", "set", "delete"])
def test_what_the_user_sets_up_is_saved_at_once(begun: tuple[Debugger, Autosave], change: str) -> None:
    debugger, autosave = begun
    debugger.run_to("until_one@3")
    debugger.break_at("until_one@9")
    autosave.keep_up(debugger)
    changes: dict[str, Callable[[], object]] = {
        "break": lambda: debugger.break_when("nan"),
        "watch": lambda: debugger.watch("iter"),
        "mark": lambda: debugger.marks.update(here=Mark(debugger.machine.tick, debugger.branches.name)),
        "branch": lambda: debugger.branch("other"),
        "set": lambda: debugger.set_value("number", 5),
        "delete": lambda: debugger.breakpoints.delete(1),
    }
    changes[change]()
    assert not autosave.keep_up(debugger)
    other = restored(debugger, autosave)
    assert [str(one.description) for one in other.breakpoints] == [str(one.description) for one in debugger.breakpoints]
    assert [watch.text for watch in other.watches] == [watch.text for watch in debugger.watches]
    assert other.marks == debugger.marks and other.branches.name == debugger.branches.name
    assert state_of(other.timeline) == state_of(debugger.timeline)
    number = debugger.break_when("inf").number
    assert other.break_when("inf").number == number, "no number is given twice"


def test_a_place_is_saved_every_few_seconds_or_when_it_is_due(
    begun: tuple[Debugger, Autosave], monkeypatch: pytest.MonkeyPatch
) -> None:
    debugger, autosave = begun
    now = [100.0]
    monkeypatch.setattr(session_autosave, "monotonic", lambda: now[0])
    debugger.break_at("until_one@9")
    autosave.keep_up(debugger)
    debugger.step(5)
    autosave.keep_up(debugger)
    assert autosave.is_due(debugger) and restored(debugger, autosave).machine.tick == 0
    autosave.keep_up(debugger, due=True)
    assert not autosave.is_due(debugger) and restored(debugger, autosave).machine.tick == 5
    debugger.step()
    now[0] += session_autosave.EVERY
    autosave.keep_up(debugger)
    assert restored(debugger, autosave).machine.tick == 6


def test_a_session_whose_restoring_was_paused_is_put_aside_before_another_is_saved(
    begun: tuple[Debugger, Autosave], tmp_path: Path
) -> None:
    debugger, autosave = begun
    debugger.last()
    debugger.break_at("until_one@9")
    autosave.keep_up(debugger)
    autosave.close()
    path, other, second = autosave.path(debugger), sample("while_loop"), Autosave(folder=tmp_path)
    kept = path.read_bytes()
    pause_after(other, 3)
    back = second.restore(other)
    assert back.failed and "it was paused" in back.sentence and path.read_bytes() == kept
    second.keep_up(other)
    assert path.read_bytes() == kept, "nothing has changed yet"
    other.watch("iter")
    second.keep_up(other)
    (aside,) = path.parent.glob("*.unrestored.session")
    assert aside.read_bytes() == kept and str(aside) in back.sentence


def test_what_cannot_be_saved_is_said_once(begun: tuple[Debugger, Autosave], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise SessionError("the disk is full")

    debugger, autosave = begun
    monkeypatch.setattr("stepper.session.session_files.save_session", full)
    debugger.break_at("until_one@9")
    assert autosave.keep_up(debugger) == "the session is not saved: the disk is full"
    assert not autosave.keep_up(debugger)
