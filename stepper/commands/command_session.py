"""Session at a prompt: a debugger with history, marks and depth, on which commands work; and their answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

from msgspec import field
from msgspec.structs import asdict, replace

from stepper.debug.causes.cause import cause_data
from stepper.debug.debugger import Debugger
from stepper.debug.inspection.text import WIDTH, by_text
from stepper.debug.scopes import Names
from stepper.debug.stop import Mark, Reason, SearchedRange, Stop, is_branch
from stepper.debug.stop_scope import Watch
from stepper.engine.frames import Phase
from stepper.engine.program import Operation, Program
from stepper.errors import UsageError
from stepper.ir.model import Model, layer_data
from stepper.query.address_resolution import address_of
from stepper.query.address_syntax import Address
from stepper.query.expression_values import described
from stepper.records import Record
from stepper.tensors.number_text import array_text, numbers_text
from stepper.wording import near_text

MOST_DIGITS = 30
"""Most digits in a number of a command; no run has more moments than that."""


class Answer(Record):
    """Answer of a command: lines of text, and the same as data for JSON; `command` is its full name."""

    lines: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""


class Session:
    """A debugger at its prompt.

    `level` is how many frames `up` went outwards; `history` are the commands carried out so far; `sources` how many
    files of commands are inside one another; `ended`: it was asked to quit. `file` is where `session save` keeps it
    where no other name is said. `width` is how many columns there are for a line. `collecting` is the breakpoint whose
    commands are being typed, with those so far; where lines are not typed one after another, `multiline` is False.
    """

    def __init__(self, debugger: Debugger, *, multiline: bool = True) -> None:
        self.debugger = debugger
        self.names = Names(debugger.machine.compiled)
        self.history: list[str] = []
        self.file = ""
        self.width = WIDTH
        self.level = 0
        self.sources = 0
        self.ended = False
        self.multiline = multiline
        self.collecting: tuple[int, list[str]] | None = None
        self.execute: Callable[[str], Answer] = _not_connected

    @property
    def marks(self) -> dict[str, Mark]:
        """The moments with names."""
        return self.debugger.marks

    @property
    def depth(self) -> int:
        """The depth of the frame that is looked at, 0 for the model's own graph. Raises UsageError at the end."""
        debugger = self.debugger
        assert debugger.frame is not None
        return debugger.depth - 1 - self.level

    @property
    def where(self) -> Program:
        """The graph of the frame that is looked at, from which names in expressions are seen."""
        stack = self.debugger.machine.stack
        return stack[len(stack) - 1 - self.level].program if self.level < len(stack) else self.debugger.machine.program

    def named(self, address: Address) -> Address:
        """Return an address as the debugger has it, to which the innermost frame is the nearest. UsageError."""
        if not self.level:
            return address
        found = address_of(self.names.target(address, self.where), self.debugger.machine.compiled)
        return replace(found, iterations=address.iterations, index=address.index)

    def marked(self, name: str) -> int:
        """Return the tick of a mark. Raises UsageError where there is none, or it is of another branch."""
        mark = self.marks.get(name)
        if mark is None:
            raise UsageError(f"there is no mark '{name}'; there are {', '.join(self.marks) or 'none'}")
        if mark.branch != self.debugger.branches.name:
            raise UsageError(f"mark '{name}' is in the branch '{mark.branch}'; go there first: branch {mark.branch}")
        return mark.tick


def _not_connected(_line: str) -> Answer:
    raise UsageError("no interpreter carries out commands here")


def without_arguments(text: str) -> None:
    """Raise UsageError for anything behind the word of a command that takes nothing."""
    if text:
        raise UsageError(f"nothing is expected behind the command, and there is '{text}'")


def required(text: str, what: str) -> str:
    """Return the text. UsageError where there is none."""
    if not text:
        raise UsageError(f"{what} is missing")
    return text


def number(text: str, what: str = "a number") -> int:
    """Return the integer that is written there, of at most MOST_DIGITS digits. Raises UsageError."""
    if re.fullmatch(r"[+-]?[0-9]+", text) is None:
        raise UsageError(f"{what} is expected, not '{text}'")
    if len(text.lstrip("+-")) > MOST_DIGITS:
        raise UsageError(f"a number has at most {MOST_DIGITS} digits, '{text[:10]}...' has {len(text.lstrip('+-'))}")
    return int(text)


def count(text: str) -> int:
    """Return a repeat count, 1 if there is none. Raises UsageError."""
    return number(text, "a repeat count") if text else 1


# --- the commands ---------------------------------------------------------------------------------------------------


Action = Callable[[Session, str], Answer]
"""Carries out a command, given the text behind its name."""


_MOST_LISTED = 10


class Command(Record):
    """Describe a command.

    `syntax` is the text behind the name. `moves`: an empty line repeats the command.
    """

    name: str
    abbreviations: tuple[str, ...]
    syntax: str
    help: str
    moves: bool
    action: Action

    @property
    def usage(self) -> str:
        """Return how it is written."""
        return f"{self.name} {self.syntax}".rstrip()

    @property
    def title(self) -> str:
        """Return its name and its abbreviations."""
        return ", ".join((self.name, *self.abbreviations))

    @property
    def group(self) -> str:
        """Return the name of its module, one of GROUPS."""
        return self.action.__module__.rpartition(".")[-1]


GROUPS = (
    "movement_commands",
    "breakpoint_commands",
    "inspection",
    "edit_commands",
    "moment_commands",
    "session_commands",
)
"""The modules of the commands, imported when the first of them is called for: a screen is painted before."""

_COMMANDS: dict[str, Command] = {}


def command(
    name: str, *abbreviations: str, help: str, syntax: str = "", moves: bool = False
) -> Callable[[Action], Action]:
    """Register a function as a command. One without a syntax gets no arguments."""

    def register(action: Action) -> Action:
        _COMMANDS[name] = Command(name, abbreviations, syntax, help, moves, action)
        return action

    return register


@cache
def _all() -> dict[str, Command]:
    for group in GROUPS:
        import_module(f"{__package__}.{group}")
    return {one.name: one for one in sorted(_COMMANDS.values(), key=lambda one: GROUPS.index(one.group))}


def commands() -> tuple[Command, ...]:
    """Return all commands, group by group, in the order in which they were registered."""
    return tuple(_all().values())


def command_called(word: str) -> Command:
    """Return the command of this name or abbreviation, or the only one that begins so. Raises UsageError."""
    known_commands = _all()
    for known in known_commands.values():
        if word == known.name or word in known.abbreviations:
            return known
    return known_commands[one_of(word, known_commands, "command")]


def one_of(word: str, names: dict[str, Command] | tuple[str, ...], what: str) -> str:
    """Return the name that this is, or the only one that begins so. Raises UsageError with the candidates."""
    if word in names:
        return word
    fitting = [name for name in names if name.startswith(word)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"'{word}' is ambiguous: {', '.join(sorted(fitting))}")
    near = near_text(word, names)
    few = f"there are {', '.join(names)}" if len(names) <= _MOST_LISTED else "help lists them"
    raise UsageError(f"there is no {what} '{word}'; {near or few}")


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
    """Return how far a search backward had looked when it was paused, and how to continue it."""
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
        room = width - len(head) - len(by)
        values = [debugger.frame.current(slot) for slot in stop.done.outputs]
        each = (room - len(" = ")) // max(len(values), 1)
        shown = [array_text(value, each) for value in values if value is not None]
        lines.append(head + (f" = {'; '.join(shown)}" if shown else "") + by)
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
