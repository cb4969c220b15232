"""Actions of the overview: opening it, moving its cursor, going to the moment of the cursor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from stepper.errors import UsageError
from tui.actions.registry import action
from tui.application import Application
from tui.screens.overview.pane import OverviewPane

_WAYS = ("left", "right", "back", "on", "up", "down", "home", "end")


@action(
    "overview",
    syntax="[WAY [N]]",
    help="the whole run, each loop a card; there: left, right, back, on, up, down, home, end, finding, open, into, "
    "run, why, ending, sequences, failure; go LINE, row CARD ROW, input N, output N, mark LETTER",
)
def _overview(app: Application, text: str) -> None:
    word, _, count = text.partition(" ")
    if not word:
        app.open_view("overview")
        return
    pane = app.focused_pane
    if not isinstance(pane, OverviewPane):
        raise UsageError("the overview is not in front (0 opens it)")
    if count and word in _WITH_MORE:
        _WITH_MORE[word](app, pane, count)
        return
    if count and not count.strip().isdecimal():
        raise UsageError(f"a number is expected, not '{count}'")
    if word in _WAYS:
        pane.move(word, int(count or "1"))
    elif word in _ACTIONS:
        _ACTIONS[word](app, pane)
    else:
        raise UsageError(f"the overview does not know '{word}'")


def _seek(_app: Application, pane: OverviewPane, *, backward: bool) -> None:
    """Go to the next finding, or to the one before."""
    if not pane.seek(backward=backward):
        raise UsageError("nothing further was found in this direction")


def _run(app: Application, pane: OverviewPane) -> None:
    """Go on: with the run that is shown, and where that has ended or a breakpoint may stop it with the debugger's."""
    if pane.is_at_end or any(one.enabled for one in app.state.breaks):
        app.perform("continue")
    else:
        pane.run()


def _ask(app: Application, pane: OverviewPane, *, ends: bool) -> None:
    """Tell where the value of the cursor comes from, or why its loop ended."""
    question = pane.question(ends=ends)
    if question is None:
        raise UsageError(pane.why_no_moment)
    app.open_story(question)


def _open(app: Application, pane: OverviewPane) -> None:
    """Go to the moment of the cursor."""
    lines = pane.lines_to_open()
    if not lines:
        raise UsageError(pane.why_no_moment)
    for line in lines:
        app.perform(line)
    app.open_view("main")


def _into(app: Application, pane: OverviewPane) -> None:
    """Go into the first iteration of the loop of the cursor; what a search has found is run to."""
    if app.found and not app.chosen_address:
        app.perform(f"run-to {app.found}")
        return
    if not pane.first_iteration:
        raise UsageError(pane.why_no_moment)
    _go(app, pane, f"goto {pane.first_iteration}")


def _go(app: Application, _pane: OverviewPane, line: str) -> None:
    """Carry out a movement, and leave the overview."""
    app.perform(line)
    app.open_view("main")


def _row(_app: Application, pane: OverviewPane, text: str) -> None:
    """Put the cursor on a row of a card."""
    place = text.split()
    if len(place) != 2 or not all(one.isdecimal() for one in place):
        raise UsageError("the number of a card and that of a row are expected")
    pane.put_on_row(int(place[0]), int(place[1]))


def _port(app: Application, pane: OverviewPane, text: str, *, output: bool) -> None:
    """Go to where an output of the model is computed, or open an input."""
    if not text.isdecimal():
        raise UsageError("the number of an input or output is expected")
    found = pane.line_to_port(int(text), output=output)
    if found.opens:
        app.perform(found.line)
    else:
        _go(app, pane, found.line)


def _mark(app: Application, pane: OverviewPane, letter: str) -> None:
    """Make the iteration of the cursor A; another letter marks the moment."""
    if letter != "A":
        app.perform(f"mark {letter}")
        return
    if not pane.moment:
        raise UsageError(pane.why_no_moment)
    app.perform(f"A {pane.moment}")


def _failure(app: Application, pane: OverviewPane) -> None:
    """Go to the error that ended the run."""
    pane.put_on_failure()
    _open(app, pane)


_ACTIONS: Final[dict[str, Callable[[Application, OverviewPane], None]]] = {
    "finding": partial(_seek, backward=False),
    "finding-back": partial(_seek, backward=True),
    "run": _run,
    "open": _open,
    "into": _into,
    "why": partial(_ask, ends=False),
    "ending": partial(_ask, ends=True),
    "failure": _failure,
    "sequences": lambda app, _pane: app.session.toggle_sequences(),
}

_WITH_MORE: Final[dict[str, Callable[[Application, OverviewPane, str], None]]] = {
    "go": _go,
    "row": _row,
    "input": partial(_port, output=False),
    "output": partial(_port, output=True),
    "mark": _mark,
}
"""What is followed by more than a number of times."""
