"""Where the run stands, as text and as data."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from stepper.commands.command_session import Answer, Session
from stepper.debug.causes.cause import cause_data
from stepper.debug.debugger import Debugger
from stepper.debug.inspection.text import WIDTH, by_text
from stepper.debug.stop import Reason, SearchedRange, Stop, is_branch
from stepper.debug.watches import Watch
from stepper.engine.frames import Phase
from stepper.engine.program import Operation
from stepper.ir.model import Model, layer_data
from stepper.query.expression_values import described
from stepper.tensors.number_text import array_text, numbers_text

_UNSAID = (Reason.MOVED, Reason.BREAK)


def moved(session: Session, stop: Stop) -> Answer:
    """Return the answer of a movement; the innermost frame is looked at again."""
    session.level = 0
    return Answer(tuple(stop_lines(session.debugger, session.width)), {"reason": str(stop.reason)})


def stop_lines(debugger: Debugger, width: int = WIDTH) -> list[str]:
    """Return the present stop: place, last and next operation, why it stopped, and the watches.

    Values are shown as far as there is room for them in lines of `width`.
    """
    stop, branches = debugger.stop, debugger.branches
    reason = "" if stop.reason in _UNSAID else f"  ({stop.reason})"
    branch = f"  [{branches.title}]" if branches.title else ""
    lines = [f"tick {stop.tick}  {stop.place}{reason}{branch}"]
    if not debugger.machine.stack:
        outputs = debugger.machine.outputs or ()
        heads = [f"  output {index}  " for index in range(len(outputs))]
        lines += [head + array_text(value, width - len(head)) for head, value in zip(heads, outputs, strict=True)]
    else:
        lines += _position_lines(debugger, width)
    lines += [f"  {detail}" for detail in stop.details]
    if stop.searched is not None:
        lines.append(f"  {searched_text(stop.searched)}")
    for watch in debugger.watches:
        if watch.now is not None:
            head = f"  watch {watch.number}  "
            lines += [head + watch_text(watch, width - len(head))]
    return lines


def searched_text(searched: SearchedRange) -> str:
    """Return how far a search backward had looked when it was paused, and how it goes on."""
    there = f"iteration {searched.iteration:,}" if searched.iteration is not None else searched.place
    if searched.passed is None:
        found = f"no stop found between {there} and here"
    else:
        found = f"paused while going back, {searched.passed:,} events before here, at {there}"
    return f"{found}; `{searched.verb}` continues from there"


def watch_text(watch: Watch, room: int = WIDTH) -> str:
    """Return a watched expression with what it is now, or why it has no value."""
    now = watch.now
    if now is None:
        return watch.title
    head = f"{watch.title}{':' if now.error else ' ='} "
    if now.shown:
        return head + now.shown
    if now.value is None or now.value.ndim == 0 or now.value.dtype.names is not None:
        return head + now.text.splitlines()[0]
    return head + (numbers_text(now.value, room - len(head)) or described(now.value))


def _position_lines(debugger: Debugger, width: int) -> list[str]:
    stop, frame = debugger.stop, debugger.frame
    lines = []
    if stop.done is not None:
        head, by = f"  after {_operation_text(stop.done)}", by_text(stop.done.computed_by)
        lines.append(head + _results(debugger, stop.done, width - len(head) - len(by)) + by)
    if stop.next is not None:
        lines.append(f"  next  {_operation_text(stop.next)}{by_text(stop.next.computed_by)}")
    elif frame.phase is Phase.RUNNING:
        lines.append("  next  the iteration is closed" if stop.iteration is not None else "  next  the graph ends")
    elif is_branch(frame):
        lines.append("  next  the branch is left")
    elif stop.closed:
        activation = frame.activation
        ended = None if activation is None else activation.ended
        lines.append(f"  iteration {stop.iteration} is closed{f', the last: {ended}' if ended else ''}")
    else:
        lines.append("  before its first iteration")
    return lines


def _operation_text(operation: Operation) -> str:
    return f"{operation.layer.type} '{operation.layer.name}'"


def _results(debugger: Debugger, operation: Operation, room: int) -> str:
    values = [debugger.frame.current(slot) for slot in operation.outputs]
    each = (room - len(" = ")) // max(len(values), 1)
    shown = [array_text(value, each) for value in values if value is not None]
    return f" = {'; '.join(shown)}" if shown else ""


def stop_data(debugger: Debugger) -> dict[str, Any]:
    """Return the present stop as data."""
    stop, branches = debugger.stop, debugger.branches
    return {
        "tick": stop.tick,
        "reason": str(stop.reason),
        "place": stop.place,
        "depth": stop.depth,
        "iteration": stop.iteration,
        "closed": stop.closed,
        "done": _operation_data(stop.done, debugger.model),
        "next": _operation_data(stop.next, debugger.model),
        "cause": None if stop.cause is None else cause_data(stop.cause),
        "causes": [cause_data(cause) for cause in stop.causes],
        "details": list(stop.details),
        "searched": None if stop.searched is None else asdict(stop.searched),
        "branch": branches.name,
        "edited": branches.is_edited,
        "watches": {
            watch.title: {"text": watch.now.shown or watch.now.text, "error": watch.now.error}
            for watch in debugger.watches
            if watch.now is not None
        },
    }


def _operation_data(operation: Operation | None, model: Model) -> dict[str, Any] | None:
    if operation is None:
        return None
    data = layer_data(operation.layer, model)
    return {**data, "computed_by": operation.computed_by} if operation.computed_by else data
