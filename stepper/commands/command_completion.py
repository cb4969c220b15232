"""How a line can go on: commands, the words that they take, and values by name with type, shape and what they are now.

The same answers Tab at a prompt, an ambiguous name, and `complete LINE`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from stepper.commands.command_session import Session, command_called, commands
from stepper.debug.inspection.views import FrameView, frame_views
from stepper.element_types import Array
from stepper.engine.program import CompiledModel
from stepper.errors import StepperError
from stepper.ops.operands import form_text
from stepper.query.address_resolution import resolve
from stepper.query.address_syntax import parse_address
from stepper.query.known_names import MOST, KnownNames, NamedValue
from stepper.records import Record
from stepper.tensors.number_text import numbers_text

_TAKES_NAMES = re.compile(r"ADDR|TARGET|EXPR|PATTERN|NAME \[FILE")
_LAST_NAME = re.compile(r"(?:`[^`]*|[^\s`()\[\]{},+*=<>!&|\"'])*$")
_TEXT = "TEXT"
"""The syntax of a command that searches a text in names."""
_LAST_PART = re.compile(r"`[^`]*`$|[^:`]*$")
_LITERAL = re.compile(r"[a-z][a-z-]*")


class Completion(Record, eq=False):
    """Describe one way to continue a line.

    `line` is the whole completed line, `word` its new part. `what` describes the completion: the help of a command, or
    the type of the layer and the loops around the layer. For a value, `form` is its type and shape, and `array` is its
    present value; each is None if the value has none.
    """

    line: str
    word: str
    what: str = ""
    form: str = ""
    array: Array | None = None

    def value_text(self, room: int) -> str:
        """Return the numbers in so many characters, as far as there is room for them."""
        return "" if self.array is None or self.array.dtype.names is not None else numbers_text(self.array, room)


class LineWord(NamedTuple):
    """A word with which a line can begin, beside the commands of the debugger."""

    name: str
    syntax: str
    help: str


class Completer:
    """Completes lines for a model."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        self._names = KnownNames(compiled)

    def completions(
        self,
        line: str,
        frames: Sequence[FrameView],
        *,
        more: Iterable[LineWord] = (),
        words: Mapping[str, Sequence[str]] | None = None,
        most: int = MOST,
    ) -> list[Completion]:
        """Return how a line can go on where the last of the frames is looked at.

        `more` are words beside the commands; `words` what may stand behind some of them, such as marks.
        """
        head, blank, rest = line.partition(" ")
        known = [*(LineWord(one.name, one.syntax, one.help) for one in commands()), *more]
        if not blank:
            fitting = sorted({one.name: one for one in known if one.name.startswith(head)}.items())
            return [Completion(name, name, one.help) for name, one in fitting]
        command = _called(head, known)
        if command is None:
            return []
        # The words that a command takes as they are: `first` and `last` of `N|first|last`
        starts = (part.strip().split(" ")[0].strip("[]") for part in command.syntax.split("|"))
        given = [
            *list(dict.fromkeys(word for word in starts if _LITERAL.fullmatch(word))),
            *(words or {}).get(command.name, ()),
        ]
        found = [Completion(f"{head} {word}", word) for word in given if word.startswith(rest)]
        if command.syntax == _TEXT:
            return self._texts(f"{head} ", rest, frames, most)
        if not _TAKES_NAMES.search(command.syntax) or len(found) >= most:
            return found
        return [*found, *self._values(f"{head} ", rest, frames, most)]

    def of_session(self, line: str, session: Session) -> list[Completion]:
        """Return how a line can go on at a prompt without a screen."""
        debugger = session.debugger
        frames = frame_views(debugger.machine.stack)
        words = {"goto": [f"'{name}" for name in session.marks], "branch": [one.name for one in debugger.branches]}
        return self.completions(line, frames[: len(frames) - session.level], words=words)

    def instead(self, line: str, error: StepperError, frames: Sequence[FrameView]) -> list[Completion]:
        """Return the lines that an ambiguous one may have meant."""
        found = []
        head, _, rest = line.strip().partition(" ")
        for candidate in error.candidates:
            if rest in (error.ambiguous, "") and error.ambiguous.lstrip("-").isdecimal():
                meant = f"goto {candidate.address}"  # an iteration, of one of several loops
            elif error.ambiguous in rest:
                meant = f"{head} {rest.replace(error.ambiguous, candidate.address, 1)}"
            else:
                meant = f"{head} {candidate.address}"
            found.append(self._described(candidate.address, candidate.type, meant, frames))
        return found

    def _values(self, head: str, rest: str, frames: Sequence[FrameView], most: int) -> list[Completion]:
        place = _LAST_NAME.search(rest)
        word = "" if place is None else place[0]
        if "@" in word:
            return []
        before = f"{head}{rest[: len(rest) - len(word)]}"
        where = frames[-1].program if frames else self.compiled.main
        found = []
        for value in self._names.fitting(word, where, most=most):
            typed = self._names.typed(value)
            level = f" in {value.level}" if value.level and value.distance else ""
            array = _array_of(value, frames)
            form = "" if value.layer.is_loop else value.declared if array is None else form_text(array)
            found.append(Completion(before + typed, typed, f"{_kind(value)}{level}", form, array))
        return found

    def _texts(self, head: str, rest: str, frames: Sequence[FrameView], most: int) -> list[Completion]:
        """Return the names that have a text in them, each once, as a search takes them."""
        found = self._values(head, rest, frames, most)
        named = ((one, _LAST_PART.findall(one.word)[0].strip("`")) for one in found)
        texts = {text: Completion(head + text, text, one.what, one.form, one.array) for one, text in reversed([*named])}
        return list(reversed(texts.values()))

    def _described(self, address: str, kind: str, line: str, frames: Sequence[FrameView]) -> Completion:
        """Return a candidate with its type and shape."""
        form, array = "", None
        try:
            target = resolve(parse_address(address), self.compiled, self.compiled.main)
        except StepperError:
            return Completion(line, address, kind)
        if not target.layer.is_loop and target.layer.outputs:
            value = NamedValue("", target.program, target.layer, 0, is_plain=False)
            array = _array_of(value, frames)
            form = value.declared if array is None else form_text(array)
        return Completion(line, address, kind, form, array)


def _called(word: str, known: Sequence[LineWord]) -> LineWord | None:
    exact = next((one for one in known if word == one.name), None)
    if exact is not None:
        return exact
    try:
        found = command_called(word)
    except StepperError:
        fitting = [one for one in known if one.name.startswith(word)]
        return fitting[0] if len(fitting) == 1 else None
    return LineWord(found.name, found.syntax, found.help)


def _kind(value: NamedValue) -> str:
    return "carried or given" if value.layer.type == "Parameter" else value.layer.type


def _array_of(value: NamedValue, frames: Sequence[FrameView]) -> Array | None:
    """Return what the value is now, in the innermost frame that runs its graph."""
    frame = next((one for one in reversed(frames) if one.program is value.program), None)
    return None if frame is None else frame.value(value.layer.id).array
