"""Manage the breakpoints of a client: the client sends all of a kind each time.

Breakpoints that the client had before keep their counts. A faulty breakpoint gets its error as its message, and the
others stay active. Each is a breakpoint of the debugger: on a line it stops at the operation listed there; by name or
for an exception it works as in `break`; on a value it is `changes X` or `new X`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from stepper.debug.breakpoints.breakpoint import BreakDescription, BreakKind
from stepper.debug.breakpoints.conditions import value_place
from stepper.debug.breakpoints.data_breakpoints import break_description, data_breakpoint
from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import BreakView, break_views
from stepper.debug.scopes import is_body
from stepper.diagnosis.rule import Finding
from stepper.errors import StepperError, UsageError
from stepper.integrations.dap.listing import ModelListing
from stepper.integrations.dap.messages import (
    ExceptionOption,
    LineBreakpoint,
    NamedBreakpoint,
    ShownBreakpoint,
    ShownSource,
    ValueBreakpoint,
)
from stepper.query.address_syntax import parse_address

LINES, NAMES, VALUES, EXCEPTIONS = "breakpoint", "function breakpoint", "data breakpoint", "exception"
"""Kinds of breakpoints, in the words of the protocol for the reason of a stop."""

FILTERS = {
    "nan": "NaN first appears",
    "inf": "Inf first appears",
    "shape": "Shape or type changes",
    "stuck": "State no longer changes",
    "period": "State repeats",
    "cond": "Condition turns false",
    "limit": "Trip count or slices used up",
    "last": "Last iteration of a loop",
    "end": "Loop ends",
}
"""Exception filters that are words of `break`, and what each stops for; a narrow sidebar shows 28 letters."""
FINDINGS = "check"
"""The filter for what `check` finds."""
USUAL = ("nan",)

_MODEL_LINES = "breakpoint in the model"
"""Kind of breakpoints on lines of the .xml; they report the reason LINES."""
_REASONS = {FINDINGS: EXCEPTIONS, _MODEL_LINES: LINES}

_OF_VALUES = ("changes", "new")
"""Words of the breakpoints on values."""
_MOST = 10_000
_HIT = re.compile(r"(>=|>|==|=|)\s*([0-9]{1,18})")

_Wanted = Callable[[], tuple[BreakDescription, int | None]]
"""Gives a breakpoint and its line. Raises StepperError for one that cannot be."""


class ClientBreakpoints:
    """The breakpoints that a client wants, and which of the debugger's they are."""

    def __init__(self, debugger: Debugger, listing: ModelListing, source: ShownSource) -> None:
        self._debugger, self._listing, self._source = debugger, listing, source
        self._set: dict[str, dict[BreakDescription, int]] = {}
        self._own: set[int] = set()
        """Numbers of breakpoints that did not exist before the client set them."""
        self._found: dict[BreakDescription, Finding] = {}
        self._seen: set[int] = set()
        """Numbers of those that the client has been told of, or need not be."""

    def kind_of(self, number: int) -> str:
        """Return the kind of the breakpoint with this number.

        A breakpoint that no client has set counts as a breakpoint on a line.
        """
        found = next((kind for kind, known in self._set.items() if number in known.values()), LINES)
        return _REASONS.get(found, found)

    # --- beside others that set some ---------------------------------------------------------------------------

    @property
    def _there(self) -> set[int]:
        return {one.number for one in self._debugger.breakpoints}

    def pass_over(self) -> None:
        """Take those that there are as known to the client."""
        self._seen = self._there

    def news(self, offset: int) -> Iterator[tuple[str, ShownBreakpoint]]:
        """Yield those on a line that the client has not set as `new`, and those of its own that are gone as `removed`.

        A new one is from then on one of the client: where it sends all of its source without it, it goes.
        """
        there = self._there
        if there == self._seen:
            return
        for known in self._set.values():
            for description, number in list(known.items()):
                if number not in there:
                    del known[description]
                    yield "removed", ShownBreakpoint(verified=False, id=number)
        set_here = {number for known in self._set.values() for number in known.values()}
        new = there - self._seen - set_here
        self._seen = there
        for view in break_views(one for one in self._debugger.breakpoints if one.number in new):
            line = None if view.description.once else self._line_of(view)
            place = None if line is None else self._listing.place(line)
            if line is not None and place is not None:
                plain = BreakDescription(BreakKind.AT, self._listing.address(place))
                if self._set.setdefault(LINES, {}).setdefault(plain, view.number) == view.number:
                    yield "new", ShownBreakpoint(verified=True, id=view.number, source=self._source, line=line - offset)

    def _line_of(self, view: BreakView) -> int | None:
        """Return the line of one that sits at one operation; None for all else."""
        if view.kind not in (BreakKind.AT, BreakKind.LOG) or len(view.places) != 1:
            return None
        ((program, index),) = view.first_places
        return self._listing.line_of(program, index, closed=False) if index >= 0 else None

    @property
    def brought(self) -> frozenset[BreakDescription]:
        """Return those that were not there before the client wanted them."""
        return frozenset(one.description for one in self._debugger.breakpoints if one.number in self._own)

    def claim(self, brought: frozenset[BreakDescription]) -> None:
        """Take those as brought by the client that it brought to the run which this one follows."""
        self._own |= {one.number for one in self._debugger.breakpoints if one.description in brought}

    def count_anew(self) -> None:
        """Have those of the client that have a hit count count from here."""
        numbers = {number for known in self._set.values() for number in known.values()}
        for one in [one for one in self._debugger.breakpoints if one.number in numbers and one.description.hit]:
            self._debugger.breakpoints.change(one.number, one.description)

    def leave(self) -> None:
        """Take those away that were not there before the client wanted them."""
        for number in self._own & self._there:
            self._debugger.breakpoints.delete(number)
        self._set.clear()

    # --- setting -------------------------------------------------------------------------------------------------

    def set_lines(self, wanted: Sequence[LineBreakpoint], offset: int) -> list[ShownBreakpoint]:
        """Set the breakpoints on lines; `offset` is added to the client's line numbers."""

        def made(one: LineBreakpoint) -> _Wanted:
            return lambda: self._on_line(one, one.line + offset)

        return self._replaced(LINES, [made(one) for one in wanted], offset)

    def set_model_lines(self, wanted: Sequence[LineBreakpoint], offset: int) -> list[ShownBreakpoint]:
        """Set the breakpoints on lines of the .xml, each at the listed line of its layer."""

        def made(one: LineBreakpoint) -> _Wanted:
            return lambda: self._on_line(one, self._listing.line_of_xml(one.line + offset))

        return self._replaced(_MODEL_LINES, [made(one) for one in wanted], offset)

    def _on_line(self, wanted: LineBreakpoint, at: int) -> tuple[BreakDescription, int | None]:
        line = self._listing.nearest(at)
        place = None if line is None else self._listing.place(line)
        if line is None or place is None:
            raise UsageError("a run stops nowhere from this line on")
        line = self._listing.standing(line)
        address, condition = self._listing.address(place), wanted.condition or ""
        if wanted.log_message:
            if wanted.hit_condition:
                raise UsageError("a log message has no hit count; write a condition")
            return BreakDescription(BreakKind.LOG, address, condition, line=wanted.log_message), line
        return _with_hits(BreakDescription(BreakKind.AT, address, condition), wanted.hit_condition), line

    def set_names(self, wanted: Sequence[NamedBreakpoint]) -> list[ShownBreakpoint]:
        """Set the breakpoints by name: of operations, loops and iterations, or all else that `break` takes."""

        def made(one: NamedBreakpoint) -> _Wanted:
            condition = f" if {one.condition}" if one.condition else ""
            return lambda: (_with_hits(break_description(f"{one.name}{condition}"), one.hit_condition), None)

        return self._replaced(NAMES, [made(one) for one in wanted])

    def set_values(self, wanted: Sequence[ValueBreakpoint]) -> list[ShownBreakpoint]:
        """Set the breakpoints on values."""
        return self._replaced(VALUES, [lambda one=one: (_on_value(one), None) for one in wanted])  # type: ignore[misc]

    def set_exceptions(
        self, filters: Sequence[str], options: Sequence[ExceptionOption], findings: Callable[[], Iterable[Finding]]
    ) -> list[ShownBreakpoint]:
        """Set the exception filters; `findings` gives what `check` finds at a place, and is asked if that is wanted."""
        pairs = [(name, "") for name in filters]
        pairs += [(one.filter_id, one.condition or "") for one in options]
        made: list[_Wanted] = [
            lambda name=name, about=about: (_for_exception(name, about), None)  # type: ignore[misc]
            for name, about in pairs
            if name != FINDINGS
        ]
        shown = iter(self._replaced(EXCEPTIONS, made))
        if all(name != FINDINGS for name, _ in pairs):
            self._replaced(FINDINGS, [])
        return [self._findings(findings) if name == FINDINGS else next(shown) for name, _ in pairs]

    def finding(self, number: int) -> Finding | None:
        """Return what `check` finds where the breakpoint with this number sits; None for all others."""
        known = self._set.get(FINDINGS, {})
        return next((self._found.get(one) for one, other in known.items() if other == number), None)

    def _findings(self, findings: Callable[[], Iterable[Finding]]) -> ShownBreakpoint:
        try:
            asked = [(BreakDescription(BreakKind.AT, one.address), one) for one in findings()]
        except StepperError as error:
            return ShownBreakpoint(verified=False, message=str(error))
        self._found = dict(reversed(asked))  # the gravest of a place
        made: list[_Wanted] = [lambda one=one: (one, None) for one in dict.fromkeys(one for one, _ in asked)]  # type: ignore[misc]
        count = sum(one.verified for one in self._replaced(FINDINGS, made))
        return ShownBreakpoint(verified=True, message=f"check finds {count or 'no'} place{'' if count == 1 else 's'}")

    def _replaced(self, kind: str, wanted: Sequence[_Wanted], offset: int = 0) -> list[ShownBreakpoint]:
        """Have these breakpoints of a kind and no others; those that are there, of others too, stay as they are."""
        before = self._set.get(kind, {})
        there = self._there
        known = {number for numbers in self._set.values() for number in numbers.values()}
        others = {one.description: one.number for one in self._debugger.breakpoints if one.number not in known}
        kept: dict[BreakDescription, int] = {}
        usable = {**others, **before}
        shown = [self._one(one, usable, kept, there, offset) for one in wanted[:_MOST]]
        excess = ShownBreakpoint(verified=False, message=f"at most {_MOST:,} are set")
        shown += [excess] * (len(wanted) - len(shown))
        for number in set(before.values()) - set(kept.values()):
            if number in there:
                self._debugger.breakpoints.delete(number)
        self._set[kind] = kept
        return shown

    def _one(
        self,
        wanted: _Wanted,
        before: dict[BreakDescription, int],
        kept: dict[BreakDescription, int],
        there: set[int],
        offset: int,
    ) -> ShownBreakpoint:
        try:
            description, line = wanted()
            number = kept.get(description) or before.get(description, 0)
            if number not in there:
                number = self._debugger.breakpoints.add(description).number
                there.add(number)
                self._own.add(number)
        except StepperError as error:
            return ShownBreakpoint(verified=False, message=str(error))
        kept[description] = number
        if line is None:
            return ShownBreakpoint(verified=True, id=number, message=self._debugger.breakpoints[number].note)
        return ShownBreakpoint(verified=True, id=number, source=self._source, line=line - offset)


def _with_hits(description: BreakDescription, hits: str | None) -> BreakDescription:
    """Return the breakpoint with a hit count: `N` or `>= N` from that one on, `== N` at that alone."""
    if not hits or not hits.strip():
        return description
    match = _HIT.fullmatch(hits.strip())
    count = 0 if match is None else int(match[2]) + (match[1] == ">")
    if match is None or count < 1:
        raise UsageError(f"'{hits[:60]}' is no hit count; write 5 or >= 5 (from the fifth on), or == 5")
    return replace(description, hit=count, exactly=match[1] in ("==", "="))


def value_break(debugger: Debugger, address: str) -> str:
    """Return the breakpoint on what has this address, which is how a client knows it: `changes X`.

    It is `new X` for what is not computed so far, or once. UsageError for what no run computes.
    """
    place = value_place(parse_address(address), debugger.machine.compiled, debugger.machine.program)
    try:
        debugger.value(address)
    except StepperError:
        return f"new {address}"
    return f"changes {address}" if is_body(place.program) else f"new {address}"


def _on_value(wanted: ValueBreakpoint) -> BreakDescription:
    if wanted.access_type not in (None, "write", "readWrite"):
        raise UsageError(f"'{wanted.access_type[:20]}': a value is watched for changes alone")
    if wanted.condition:
        raise UsageError("a breakpoint on a value has no condition; write one by name: when EXPR")
    if (kind := data_breakpoint(wanted.data_id)) is None or kind.word not in _OF_VALUES:
        raise UsageError(f"'{wanted.data_id[:60]}' is not of the form 'changes VALUE' or 'new VALUE'")
    return _with_hits(BreakDescription(BreakKind.WHEN, wanted.data_id), wanted.hit_condition)


def is_of_a_loop(name: str) -> bool:
    """True if an exception filter may be for one loop alone, which is its condition then."""
    return data_breakpoint(f"{name} x") is not None


def _for_exception(name: str, about: str) -> BreakDescription:
    if name not in FILTERS:
        raise UsageError(f"there is no filter '{name[:60]}'; there are {', '.join((*FILTERS, FINDINGS))}")
    if about and not is_of_a_loop(name):
        raise UsageError(f"'{name}' is for all operations and has no condition")
    return BreakDescription(BreakKind.WHEN, f"{name} {about}".strip())
