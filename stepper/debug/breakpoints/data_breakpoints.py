"""Data breakpoints, and the registry of their kinds: how each is written, what it means, its checks.

A kind is a function that is entered with how it is written and what that means:

    @kind("saturated>LIMIT VALUE", "...", limit="0.9")
    def saturated(wanted, setting): ...

It returns checks of a run. Each kind is a file in `kinds/`; the cause that its checks find is frozen data, a class in
the same file, with its sentences below it. `help breaks`, the reference, errors, JSON and sessions ask here: nothing
else has a list of them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import import_module
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import (
    BEGUN,
    BreakDescription,
    BreakKind,
    Causes,
    Check,
    Expected,
    IterationWindow,
    bodies,
    closed,
    iteration_in,
    named,
    plan_of,
)
from stepper.debug.breakpoints.conditions import (
    BreakpointPlace,
    Condition,
    LogLine,
    condition_at,
    conditions_of,
    destinations,
    ensure_elements,
    known_ahead,
    loop_body,
    operations_of,
    places,
    value_place,
    whole_value,
)
from stepper.debug.causes.cause import Became, Carried, Cause, Location, NonFiniteKind, Reached, Unevaluated
from stepper.debug.provenance.operation_at import carried_of, file_of, location_of
from stepper.debug.scopes import ReferenceValues, is_body
from stepper.debug.timeline import Timeline
from stepper.engine.frames import Frame, Frames
from stepper.engine.loops import MergedInput
from stepper.engine.program import CompiledModel, Program, Value
from stepper.errors import StepperError, UsageError
from stepper.query.address_syntax import Address, numpy_index, parse_address
from stepper.records import Record
from stepper.tensors.difference import magnitude
from stepper.wording import near_text


class DataBreakpoint(Record):
    """Hold a data breakpoint as the user writes it: its kind's word, a limit, and its subject.

    Some kinds have no limit.
    """

    word: str
    limit: float
    address: Address | None


class Setting(Record):
    """A run in which a data breakpoint is set, seen from the graph `where`.

    `expected` are the operations in which NaN and Inf are expected: (id of the program, index).
    """

    timeline: Timeline
    where: Program
    expected: frozenset[tuple[int, int]]

    @property
    def compiled(self) -> CompiledModel:
        """Return the model that runs."""
        return self.timeline.machine.compiled

    @property
    def file(self) -> str:
        """Return its XML file, as causes name it."""
        return file_of(self.compiled)

    @property
    def reference(self) -> ReferenceValues | None:
        """Return the run that this one is compared with; None if there is none."""
        return self.timeline.reference


class Checks(NamedTuple):
    """Checks of a breakpoint, the iteration windows that they read, and the line that a logpoint writes."""

    checks: Sequence[Check]
    windows: Sequence[IterationWindow] = ()
    line: LogLine | None = None

    @classmethod
    def joined(cls, parts: Sequence[Checks]) -> Checks:
        """Return the checks and windows of all parts."""
        return cls(
            [check for part in parts for check in part.checks], [window for part in parts for window in part.windows]
        )


MakeChecks = Callable[[DataBreakpoint, Setting], Checks]
MakeLoopChecks = Callable[[Setting, Program], Checks]
F = TypeVar("F", bound=MakeChecks)


class DataBreakpointKind(Record):
    """Describe a kind of data breakpoint.

    `syntax` is how it is written; `meaning` says in a sentence when it stops the run. In the syntax LIMIT stands for a
    number; `limit` is an example of the number. LOOP and VALUE stand for an address; text in brackets may be left out.
    `make_checks` raises UsageError for what a run does not have.
    """

    word: str
    syntax: str
    meaning: str
    limit: str
    make_checks: MakeChecks

    def parse(self, text: str) -> DataBreakpoint | None:
        """Return what a text asks for; None if it is no such breakpoint. Raise AddressError."""
        match = _pattern(self.syntax).fullmatch(text)
        if match is None:
            return None
        found = match.groupdict()
        address = None if found.get("address") is None else parse_address(found["address"])
        return DataBreakpoint(self.word, float(found.get("limit", 0.0)), address)

    @property
    def shown(self) -> str:
        """Return the syntax as help has it, with examples instead of LIMIT, LOOP and VALUE."""
        return self.syntax.replace("LIMIT", self.limit).replace("LOOP", "my_loop").replace("VALUE", "x")

    def example(self, address: str = "") -> str:
        """Return the kind as one would type it, about that address or about all."""
        without = re.sub(r" ?\[?\b(?:LOOP|VALUE)\b\]?", f" {address}" if address else "", self.syntax)
        return without.replace("LIMIT", self.limit)


_PLACEHOLDERS = {
    "LIMIT": r"(?P<limit>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
    "LOOP": r"(?P<address>[^\s<>=!+*/%-].*)",  # what goes on with an operator is an expression about an operation `end`
    "VALUE": r"(?P<address>\S.*?)",
}


@cache
def _pattern(syntax: str) -> re.Pattern[str]:
    parts = re.findall(r" \[\w+\]|[>]|\w+| ", syntax)
    written = {">": r"\s*>\s*", " ": r"\s+"} | _PLACEHOLDERS
    written |= {f" [{name}]": rf"(?:\s+{pattern})?" for name, pattern in _PLACEHOLDERS.items()}
    return re.compile("".join(written.get(part, part) for part in parts))


# --- the registry ---------------------------------------------------------------------------------------------------

_KINDS: dict[str, DataBreakpointKind] = {}


def kind(syntax: str, meaning: str, *, limit: str = "") -> Callable[[F], F]:
    """Enter the decorated function as a kind of data breakpoint; see DataBreakpointKind."""

    def enter(make_checks: F) -> F:
        word = re.split(r"\W", syntax)[0]
        assert word not in _KINDS, f"two kinds are written '{word}'"
        _KINDS[word] = DataBreakpointKind(word, syntax, meaning, limit, make_checks)
        return make_checks

    return enter


def loop_kind(syntax: str, meaning: str) -> Callable[[MakeLoopChecks], MakeLoopChecks]:
    """Enter the decorated function as a kind: of the bodies of all loops, or of the one that is named."""

    def enter(make: MakeLoopChecks) -> MakeLoopChecks:
        kind(syntax, meaning)(lambda wanted, setting: checks_of_loops(wanted, setting, partial(make, setting)))
        return make

    return enter


@cache
def kinds() -> Mapping[str, DataBreakpointKind]:
    """Return all kinds by their words, in alphabetical order."""
    for file in Path(__file__).parent.joinpath("kinds").glob("[!_]*.py"):
        import_module(f"{__package__}.kinds.{file.stem}")
    return MappingProxyType(dict(sorted(_KINDS.items())))


def data_breakpoint(text: str) -> DataBreakpoint | None:
    """Return the data breakpoint that is written there; None for what must be an expression. Raise AddressError."""
    text = text.strip()
    found = kinds().get(re.split(r"\W", text, maxsplit=1)[0])
    return None if found is None else found.parse(text)


def unfinished(text: str) -> str:
    """Return what a text that begins as a data breakpoint lacks, in a sentence; empty for any other."""
    match = re.fullmatch(r"(\w+)\b[\s>=<]*(.*)", text.strip())
    found = None if match is None else kinds().get(match[1])
    if match is None or found is None or found.parse(text.strip()) is not None:
        return ""
    if found.limit:
        about = f"'{match[2]}' is not a number" if match[2] else "it needs one"
        return f"'{found.word}' has a limit, and {about}: {found.example()}, or {found.example('h_next')} for one value"
    if found.syntax.endswith(" VALUE"):
        element = found.example("h_next[0,3]")
        return f"'{found.word}' needs a value: {found.example('h_next')}, or {element} for an element"
    return ""


# --- parts that kinds share -----------------------------------------------------------------------------------------


def checks_of_loops(wanted: DataBreakpoint, setting: Setting, make: Callable[[Program], Checks]) -> Checks:
    """Return the checks of the bodies of all loops, or of the one that is named.

    Raise UsageError if no loop is named there, or if nothing is to be checked in any.
    """
    programs = bodies(setting.compiled)
    if wanted.address is not None:
        body = loop_body(wanted.address, setting.compiled, setting.where)
        if body is None:
            raise UsageError(f"'{wanted.address}' is not a loop; '{wanted.word}' applies to loops")
        programs = [body]
    found = Checks.joined([make(program) for program in programs])
    if not found.checks:
        raise UsageError(f"'{wanted.word}' applies to no loop of this model")
    return found


# --- values compared with those of the iteration before -------------------------------------------------------------


class Compared(NamedTuple):
    """A value at a stop and one iteration before, None if it is not there.

    `first` returns the magnitude that it began with, `locate` where it is; `edge` by which back edge.
    """

    wanted: DataBreakpoint
    now: Value | None
    before: Value | None
    first: Callable[[], float]
    locate: Callable[[], Location]
    edge: Callable[[], Carried] | None = None

    @property
    def carried(self) -> Carried | None:
        """Return the back edge; None for a value that is named."""
        return None if self.edge is None else self.edge()

    @property
    def address(self) -> str:
        """Return the address of the value as it was written; empty for what a loop carries."""
        return str(self.wanted.address) if self.edge is None else ""


Compare = Callable[[Compared], Cause | None]


def compared(wanted: DataBreakpoint, setting: Setting, compare: Compare, *, needs_first: bool = False) -> Checks:
    """Return checks of the value that is named, or of all that loops carry. Raise UsageError for what is neither.

    `needs_first`: `compare` asks for the magnitude that a value began with.
    """
    if wanted.address is None or loop_body(wanted.address, setting.compiled, setting.where) is not None:
        return checks_of_loops(
            wanted, setting, lambda body: _checks_of_carried(wanted, setting, body, compare, needs_first=needs_first)
        )
    return checks_of_value(wanted, setting, compare, needs_first=needs_first)


def carried_entries(body: Program, setting: Setting) -> list[MergedInput]:
    """Return what a body carries from an iteration to the next and may change."""
    plan = plan_of(body, setting.compiled)
    return [entry for entry in plan.merged if entry.result != entry.parameter]


def _checks_of_carried(
    wanted: DataBreakpoint, setting: Setting, body: Program, compare: Compare, *, needs_first: bool
) -> Checks:
    carried = carried_entries(body, setting)
    if not carried:
        return Checks([])
    depth, file = len(body.path), setting.file

    def magnitudes(stack: Frames) -> dict[int, float]:
        return {entry.parameter: magnitude(stack[depth].values[entry.result]) for entry in carried}

    window = IterationWindow(setting.timeline, body, magnitudes, keeps_first=True)

    def began_with(stack: Frames, entry: MergedInput) -> float:
        """Return the magnitude of the initial value, or of the first result where that is 0."""
        activation = stack[depth].active
        initial = magnitude(stack[depth - 1].values[activation.operation.inputs[entry.input]])
        if initial == 0 and activation.iteration > 0:
            initial = window.at(stack, 0)[entry.parameter]
        return initial

    def test(stack: Frames) -> Causes | None:
        frame = stack[depth]
        if iteration_in(frame) < 0:
            return None
        pairs = (
            Compared(
                wanted,
                frame.values[entry.result],
                frame.values[entry.parameter],
                partial(began_with, stack, entry),
                partial(location_of, stack[: depth + 1], file, body.parameter(entry.parameter)),
                partial(carried_of, body, entry, file),
            )
            for entry in carried
        )
        return tuple(cause for cause in map(compare, pairs) if cause is not None) or None

    return Checks([Check(body, closed(body), test)], [window] if needs_first else [])


def checks_of_value(
    wanted: DataBreakpoint, setting: Setting, compare: Compare, *, needs_first: bool = False, from_first: bool = False
) -> Checks:
    """Return a check of the value that is named. Raise UsageError for one that is compared with nothing.

    `from_first`: where there is no iteration before, it is compared with None; otherwise it is passed over there.
    """
    assert wanted.address is not None
    place = value_place(wanted.address, setting.compiled, setting.where)
    is_repeated = is_body(place.program)
    if not is_repeated and not from_first:
        raise UsageError(_why_not_compared(wanted, place.program))
    target = place.target
    assert target is not None
    depth, file, index = len(place.program.path), setting.file, numpy_index(wanted.address.index)

    def value(stack: Frames) -> Value | None:
        found = stack[depth].values[target.slot]
        try:
            return found[index] if index and found is not None else found
        except IndexError:
            return None  # it has no such element in this iteration

    window = IterationWindow(setting.timeline, place.program, value, keeps_first=needs_first) if is_repeated else None

    def began_with(stack: Frames) -> float:
        first = None if window is None else window.at(stack, 0)
        return 0.0 if first is None else magnitude(first)

    def test(stack: Frames) -> Causes | None:
        is_first = window is None or iteration_in(stack[depth]) < 1
        if is_first and not from_first:
            return None
        now, before = value(stack), None if window is None or is_first else window.past(stack)
        if now is None and before is None:
            return None
        locate = partial(location_of, stack[: depth + 1], file, target.layer)
        cause = compare(Compared(wanted, now, before, partial(began_with, stack), locate))
        return None if cause is None else (cause,)

    return Checks([Check(place.program, place.index, test)], [] if window is None else [window])


def _why_not_compared(wanted: DataBreakpoint, program: Program) -> str:
    """Return why a value outside of the bodies of loops has none before it; `program` is its graph."""
    if program.path:
        return f"'{wanted.address}' is in a side of {named(program.path[-1])}, where nothing is compared"
    return f"'{wanted.address}' is not in the body of a loop, so it is computed once and never compared"


# --- the syntax of all breakpoints ----------------------------------------------------------------------------------


_ONCE = re.compile(r"(.*\S)\s+once")
_HIT = re.compile(r"(.*\S)\s+hit\s+([0-9]{1,18})(\s+exactly)?")
_WHEN = re.compile(r"(?:when|if)\s+(\S.*)")
_QUOTED = re.compile(r"`[^`]*`|/(?:[^/\s]|\\/)+/")
_IF = re.compile(r"\sif(?:\s|$)")


def break_description(text: str) -> BreakDescription:
    """Return the breakpoint that is written there; whether its target exists is for `Breakpoints.add` to say.

    UsageError.
    """
    rest, once, hit, exactly = text.strip(), False, 0, False
    while True:
        if match := _ONCE.fullmatch(rest):
            rest, once = match[1], True
        elif match := _HIT.fullmatch(rest):
            rest, hit, exactly = match[1], int(match[2]), match[3] is not None
            if hit < 1:
                raise UsageError("hit 0: the first hit is 1, as in hit 1")
        else:
            break
    return replace(_plain(rest), hit=hit, exactly=exactly, once=once)


def _plain(text: str) -> BreakDescription:
    if match := _WHEN.fullmatch(text):
        return BreakDescription(BreakKind.WHEN, match[1])
    place = _IF.search(_QUOTED.sub(lambda quoted: "x" * len(quoted[0]), text))
    target, condition = (text, "") if place is None else (text[: place.start()].strip(), text[place.end() :].strip())
    if place is not None and not condition:
        raise UsageError(f"'{text}': the condition behind 'if' is missing")
    if data_breakpoint(target) is None:
        return BreakDescription(BreakKind.AT, target, condition)
    if condition:
        raise UsageError(f"'{target}' is a condition itself; write both as one: break when EXPR")
    return BreakDescription(BreakKind.WHEN, target)


def specification(description: BreakDescription) -> str:
    """Return what stands behind `break` or `log` to have the breakpoint again; without what was to be ignored."""
    condition = f"if {description.condition}" if description.condition else ""
    if description.kind is BreakKind.LOG:
        parts = [description.text, f'"{description.line}"', condition]
    else:
        is_expression = description.kind is BreakKind.WHEN and data_breakpoint(description.text) is None
        parts = [f"when {description.text}" if is_expression else description.text, condition]
        parts += [f"hit {description.hit}{' exactly' if description.exactly else ''}" if description.hit else ""]
    return " ".join(part for part in (*parts, "once" if description.once else "") if part)


# --- breakpoints from their descriptions: what is wrong in one is refused here ----------------------------------------


class BreakpointFactory:
    """Maker of breakpoints of a run; `exceptions` are the operations in which NaN and Inf are expected."""

    def __init__(self, timeline: Timeline, exceptions: Sequence[Expected]) -> None:
        self._timeline = timeline
        self._exceptions = exceptions
        self._compiled = timeline.machine.compiled
        self._file = file_of(self._compiled)

    def ensure_elements(self, description: BreakDescription, where: Program) -> str:
        """Return a note about an element that the value of a data breakpoint may lack; it may be empty.

        Raise UsageError for one that it does not have.
        """
        wanted = data_breakpoint(description.text) if description.kind is BreakKind.WHEN else None
        if wanted is not None and wanted.address is not None and wanted.address.index:
            target = value_place(wanted.address, self._compiled, where).target
            if target is not None:
                return ensure_elements(wanted.address, target, self._timeline.machine.stack)
        return ""

    def has_exceptions(self, description: BreakDescription) -> bool:
        """True if a breakpoint asks nothing of the operations in which NaN and Inf are expected."""
        return description.kind is BreakKind.WHEN and description.text in set(NonFiniteKind)

    def until(self, text: str, where: Program) -> Checks:
        """Return what is watched by a movement that ends where a condition holds."""
        conditions = conditions_of(text, self._timeline, where)
        return Checks.joined([Checks([is_true(condition)], condition.windows) for condition in conditions])

    def anomalies(self, where: Program) -> Checks:
        """Return the same of one that ends where NaN or Inf appears, or a shape changes.

        Of what a carried value grows by in each iteration, and of what follows from it, no shape is an anomaly.
        """
        found = [self._when(kind, where) for kind in NonFiniteKind]
        with contextlib.suppress(UsageError):  # a model without loops carries no shapes
            shapes = self._when("shape", where)
            is_odd = (check.index not in check.program.growing for check in shapes.checks)
            found.append(Checks(list(compress(shapes.checks, is_odd)), shapes.windows))
        return Checks.joined(found)

    def watched(self, description: BreakDescription, where: Program) -> Checks:
        """Return what a breakpoint watches. Raise UsageError."""
        if description.kind is BreakKind.WHEN:
            return self._when(description.text, where)
        if description.kind is BreakKind.LOG:
            return self._log(description, where)
        return self._at(description, lambda text: places(text, self._compiled, where))

    def aims(self, description: BreakDescription, where: Program) -> Checks:
        """Return what is watched by a movement that ends at a place: of a loop that does not run now, inside of it."""
        running = [layer for frame in self._timeline.machine.stack for layer in frame.program.path]

        def found(text: str) -> tuple[BreakpointPlace, ...]:
            text = whole_value(text, self._compiled, where)
            inside = known_ahead(destinations(text, self._compiled, where))
            left: list[BreakpointPlace] = []
            with contextlib.suppress(UsageError):  # the type of that name may have no such output
                left = [place for place in places(text, self._compiled, where) if place.layer in running]
            return (*inside, *left)

        return self._at(description, found)

    def _at(self, description: BreakDescription, places_of: Callable[[str], tuple[BreakpointPlace, ...]]) -> Checks:
        try:
            found = places_of(description.text)
        except UsageError as error:
            if hint := unfinished(description.text):
                raise UsageError(hint) from None
            word = re.match(r"[A-Za-z]{3,}", description.text.strip())
            if word and (near := near_text(word[0], kinds(), 0.7)):
                raise UsageError(f"{error}; among the words of break {near}") from None
            raise
        parts: list[Checks] = []
        problem: UsageError | None = None
        prompt = not description.condition and not description.hit
        for place in found:
            try:
                condition = self._condition(description.condition, place)
            except UsageError as error:
                problem = error
                continue
            windows = () if condition is None else condition.windows
            parts.append(Checks([at_place(place, condition, self._file, prompt=prompt)], windows))
        if not parts and problem is not None:
            raise problem
        return Checks.joined(parts)

    def _condition(self, text: str, place: BreakpointPlace) -> Condition | None:
        return condition_at(text, self._timeline, place.program, place.index) if text else None

    def _log(self, description: BreakDescription, where: Program) -> Checks:
        found = places(description.text, self._compiled, where)
        if len(found) > 1:
            raise UsageError(f"'{description.text}' names {len(found)} places; a logpoint is at one")
        place = found[0]
        condition = self._condition(description.condition, place)
        line = LogLine(description.line, self._timeline, place.program, place.index)
        windows = [*line.windows, *(() if condition is None else condition.windows)]
        return Checks([at_place(place, condition, self._file, prompt=False)], windows, line)

    def _when(self, text: str, where: Program) -> Checks:
        wanted = data_breakpoint(text)
        if wanted is None:
            conditions = conditions_of(text, self._timeline, where)
            return Checks.joined([becomes_true(condition, self._timeline) for condition in conditions])
        expected = [operations_of(one.pattern, self._compiled, one.where) for one in self._exceptions]
        setting = Setting(self._timeline, where, frozenset[tuple[int, int]]().union(*expected))
        return kinds()[wanted.word].make_checks(wanted, setting)


# --- an expression --------------------------------------------------------------------------------------------------


def becomes_true(condition: Condition, timeline: Timeline) -> Checks:
    """Return a check that holds where the condition is true and was not in the iteration before, if there is one."""
    program = condition.program
    window = IterationWindow(timeline, program, condition.holds) if is_body(program) else None

    def test(stack: Frames) -> Causes | None:
        try:
            holds = condition.holds(stack)
            before = window is not None and window.past(stack)
        except StepperError as error:
            return (_unevaluated(condition, error, stack),)
        if window is not None:
            window.put(stack, holds)
        return (_became(condition, stack, was_false=True),) if holds and not before else None

    # What the window needs the test puts there itself, so it is not to be told of closed iterations.
    return Checks([Check(program, condition.index, test)], condition.windows)


def is_true(condition: Condition) -> Check:
    """Return a check that holds wherever the condition is true."""

    def test(stack: Frames) -> Causes | None:
        try:
            return (_became(condition, stack, was_false=False),) if condition.holds(stack) else None
        except StepperError as error:
            return (_unevaluated(condition, error, stack),)

    return Check(condition.program, condition.index, test, may_hold=condition.holds, of_values=condition.of_values)


def _became(condition: Condition, stack: Frames, *, was_false: bool) -> Became:
    location = location_of(stack[: len(condition.program.path) + 1], condition.file)
    return Became(location=location, expression=condition.expression.text, was_false=was_false)


def _unevaluated(condition: Condition, error: StepperError, stack: Frames) -> Unevaluated:
    location = location_of(stack[: len(condition.program.path) + 1], condition.file)
    text = condition.expression.text
    return Unevaluated(location=location, expression=text, message=str(error).splitlines()[0])


# --- a place --------------------------------------------------------------------------------------------------------


def at_place(place: BreakpointPlace, condition: Condition | None, file: str, *, prompt: bool) -> Check:
    """Return a check at a place, in its iterations, where the condition is true.

    `file` is the file of the model.
    """
    depth = len(place.program.path)
    holds, of_values = (None, None) if condition is None else (condition.holds, condition.of_values)

    def test(stack: Frames) -> Causes | None:
        try:
            if holds is not None and not holds(stack):
                return None
        except StepperError as error:
            return (_unevaluated(condition, error, stack),) if condition is not None and place.is_now(stack) else None
        if not place.is_now(stack):
            return None
        entry = _passed(place, stack[depth])
        reached = Reached(
            location=location_of(stack[: depth + 1], file, place.layer),
            what=place.what,
            condition="" if condition is None else condition.expression.text,
            edge=None if entry is None else carried_of(place.program, entry, file),
            passing=None if entry is None else iteration_in(stack[depth]) - (place.index == BEGUN),
        )
        return (reached,)

    return Check(place.program, place.index, test, prompt=prompt, may_hold=holds, of_values=of_values)


def _passed(place: BreakpointPlace, frame: Frame) -> MergedInput | None:
    """Return the back edge over which a value passes at this place; None if none does."""
    if place.target is None or not is_body(place.program) or place.index not in (BEGUN, closed(place.program)):
        return None
    activation = frame.active
    plan: Any = activation.plan
    outward = place.index != BEGUN
    entries = [one for one in plan.merged if place.target.slot == (one.result if outward else one.parameter)]
    if not entries or (outward and activation.ended is not None) or (not outward and activation.iteration == 0):
        return None
    found: MergedInput = entries[0]
    return found
