"""Data breakpoints, and the registry of their kinds: how each is written, what it means, its checks.

A kind is a function that is entered with how it is written and what that means:

    @kind("saturated>LIMIT VALUE", "...", limit="0.9")
    def saturated(wanted, setting): ...

It returns checks of a run. Each kind is a file in `kinds/`; the cause that its checks find is frozen data, a class in
the same file, with its sentences below it. `help breaks`, the reference, errors, JSON and sessions ask here: nothing
else has a list of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from stepper.debug.breakpoints.checks import Check, bodies
from stepper.debug.breakpoints.iteration_window import IterationWindow
from stepper.debug.breakpoints.targets import loop_body
from stepper.debug.causes.locations import file_of
from stepper.debug.reference_values import ReferenceValues
from stepper.debug.timeline import Timeline
from stepper.engine.program import CompiledModel, Program
from stepper.errors import UsageError
from stepper.query.address_syntax import Address, parse_address
from stepper.wording import near_text


class DataBreakpoint(Struct, frozen=True):
    """A data breakpoint as it is written: the word of its kind, a limit where it has one, and what it is about."""

    word: str
    limit: float = 0.0
    address: Address | None = None


class Setting(Struct, frozen=True):
    """A run in which a data breakpoint is set, seen from the graph `where`.

    `expected` are the operations in which NaN and Inf are expected: (id of the program, index).
    """

    timeline: Timeline
    where: Program
    expected: frozenset[tuple[int, int]] = frozenset()

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
    """Checks of a breakpoint, and the iteration windows that they read."""

    checks: Sequence[Check]
    windows: Sequence[IterationWindow] = ()

    @classmethod
    def joined(cls, parts: Sequence[Checks]) -> Checks:
        """Return the checks and windows of all parts."""
        return cls(
            [check for part in parts for check in part.checks], [window for part in parts for window in part.windows]
        )


MakeChecks = Callable[[DataBreakpoint, Setting], Checks]
F = TypeVar("F", bound=MakeChecks)


class DataBreakpointKind(Struct, frozen=True):
    """A kind of data breakpoint. `syntax` is how it is written, `meaning` when it stops the run, in a sentence.

    In the syntax LIMIT stands for a number, of which `limit` is an example, LOOP and VALUE for an address; what is in
    brackets may be left out. `make_checks` raises UsageError for what a run does not have.
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
        """Return the syntax as help has it, with examples in place of LIMIT, LOOP and VALUE."""
        return self.syntax.replace("LIMIT", self.limit).replace("LOOP", "my_loop").replace("VALUE", "x")

    def example(self, address: str = "") -> str:
        """Return the kind as one would type it, about that address or about all."""
        without = re.sub(r" ?\[?\b(?:LOOP|VALUE)\b\]?", f" {address}" if address else "", self.syntax)
        return without.replace("LIMIT", self.limit)


_PLACEHOLDERS: Final = {
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

_KINDS: Final[dict[str, DataBreakpointKind]] = {}


def kind(syntax: str, meaning: str, *, limit: str = "") -> Callable[[F], F]:
    """Enter the decorated function as a kind of data breakpoint; see DataBreakpointKind."""

    def enter(make_checks: F) -> F:
        word = re.split(r"\W", syntax)[0]
        assert word not in _KINDS, f"two kinds are written '{word}'"
        _KINDS[word] = DataBreakpointKind(word, syntax, meaning, limit, make_checks)
        return make_checks

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


def near_word(text: str) -> str:
    """Return which kind a misspelt word looks like, as `near is nan`; empty where none does."""
    match = re.match(r"[A-Za-z]{3,}", text.strip())
    return near_text(match[0], kinds(), 0.7) if match else ""


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
