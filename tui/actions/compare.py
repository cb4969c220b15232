"""Commands of comparing: with what, how exactly, and the next operation that differs."""

from __future__ import annotations

from functools import partial
from typing import Protocol, runtime_checkable

from stepper.compare.stops import StopComparison, set_reference
from stepper.debug.debugger import Debugger
from stepper.debug.moments.moment import MomentKind
from stepper.debug.moments.texts import moment_text
from stepper.errors import UsageError
from stepper.records import Record
from stepper.tensors.tolerances import Tolerances
from tui.actions.registry import action
from tui.application import Application
from tui.worker.requests import CompareWithin


@runtime_checkable
class HasDifferences(Protocol):
    """A pane of all iterations of two moments."""

    def seek_difference(self, *, backward: bool) -> str:
        """Return the line that goes to where the next operation begins to differ; empty if there is none."""
        ...


class OpenReference(Record):
    """Open a reference; the answer is its title."""

    file: str

    def answer(self, debugger: Debugger) -> str:
        """Return its title; empty for a branch, which A is then. UsageError or InputError for what is none."""
        if self.file in debugger.branches:
            debugger.pin(self.file)
            return ""
        return set_reference(debugger, self.file)


@action("reference", syntax="FILE", help="a reference to compare with: another model, a recorded run, an .npz")
def _reference(app: Application, text: str) -> None:
    if not text:
        raise UsageError("expected a model (.xml), a recorded run, or an .npz with keys NAME@ITERATION")
    app.driver.ask(OpenReference(text), partial(_opened, app))


def _opened(app: Application, title: str) -> None:
    app.perform("A reference" if title else "A")


@action("compare", syntax="[FILE]", help="the run beside a reference: where they part, op by op")
def _compare(app: Application, text: str) -> None:
    if text:
        app.perform(f"reference {text}")
    a = app.state.a
    if not text and a is not None and a.moment.kind in (MomentKind.ITERATION, MomentKind.BRANCH):
        app.open_view("main")
        told = moment_text(a.moment, a.iteration)
        app.say(f"A, {told}, and now stand side by side here; reference FILE names a model or a run to compare with")
        return
    if not text and (a is None or a.moment.kind is not MomentKind.REFERENCE):
        app.perform("A reference")
    app.open_view("compare")


@action("beside-reference", help="from the compare screen to the two moments: now, and the reference as A")
def _beside_reference(app: Application, _text: str) -> None:
    a = app.state.a
    if a is None or a.moment.kind is not MomentKind.REFERENCE:
        app.perform("A reference")
    if app.state.frame is None and app.state.comparison is not None:
        _go_to_first(app, app.state.comparison)
    app.open_view("main")


@action("tolerance", syntax="RTOL [ATOL]", help="how far values may be from the reference")
def _tolerance(app: Application, text: str) -> None:
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2 or not all(0 <= one < float("inf") for one in numbers):
        raise UsageError("expected a relative tolerance, and maybe an absolute one, such as tolerance 1e-4 1e-6")
    wanted = Tolerances(relative=numbers[0], absolute=numbers[1] if len(numbers) == 2 else 0.0)
    app.driver.adjust(CompareWithin(wanted))


@action("difference", syntax="next|previous|first", help="the next operation that is above its tolerance")
def _difference(app: Application, text: str) -> None:
    focused = app.focused_pane
    if focused is not None and isinstance(focused, HasDifferences):
        line = focused.seek_difference(backward=text == "previous")
        if not line:
            raise UsageError("no operation begins to differ in this direction, as far as it is compared")
        app.perform(line)
        return
    comparison, cursor = app.state.comparison, app.state.cursor
    if comparison is None:
        raise UsageError("nothing is compared: reference FILE names a reference")
    if text == "first":
        _go_to_first(app, comparison)
        return
    above = comparison.above
    if text == "previous":
        found = [index for index in reversed(above) if cursor is None or index < cursor]
    else:
        found = [index for index in above if cursor is None or index > cursor]
    if found:
        app.select(found[0])
    elif _is_first_elsewhere(app, comparison, backward=text == "previous"):
        _go_to_first(app, comparison)
    else:
        searching = comparison.first is None
        more = "; the first difference of the run is still looked for" if searching else ""
        where = "before" if text == "previous" else "after"
        raise UsageError(f"no operation {where} this one is above its tolerance{more}")


def _go_to_first(app: Application, comparison: StopComparison) -> None:
    first = comparison.first
    if first is None or first.difference is None:
        raise UsageError("there is no first difference, or it is not found yet")
    name = first.difference.layer.name
    app.perform(f"goto `{name}`" + ("" if first.iteration is None else f"@{first.iteration}"))


def _is_first_elsewhere(app: Application, comparison: StopComparison, *, backward: bool) -> bool:
    """True if the first difference of the run lies in this direction, and not among the operations that are seen."""
    first, view = comparison.first, app.state.view
    if first is None or first.difference is None or view is None or first.difference.index in comparison.above:
        return False
    return backward == (view.tick >= first.tick)
