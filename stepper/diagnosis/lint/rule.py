"""Rules: each with an id and a name that stay, a sentence with places for values, and what finds the places in a file.

The sentence is a template of `str.format`; what it is filled with are the details of a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from stepper.diagnosis.findings import Detail, Severity
from stepper.ir.model import BackEdge, IgnoredOutput, InputMapping, Layer, OutputMapping


class Scope(StrEnum):
    """What a rule is asked about, each in turn."""

    FILE = "file"
    """Found while the file is read."""
    MODEL = "model"
    LOOP = "loop"
    """A TensorIterator or a Loop."""
    IF = "if"
    LAYER = "layer"


class Example(Struct, frozen=True):
    """How to break a rule, and how it is right: a text of the model `base` (`examples/BASE.xml`), and what is wrong.

    `also` is what else must be changed, so that nothing else is wrong, or that the rule can be broken at all.
    """

    base: str
    right: str
    wrong: str
    also: tuple[tuple[str, str], ...] = ()


class Rule(Struct, frozen=True):
    """A rule. `says` is the sentence of a finding, `means` what comes of it in a run, `do` what to do about it, and
    `source` what says so."""

    id: str
    name: str
    scope: Scope
    severity: Severity
    says: str
    means: str
    do: str
    source: str
    example: Example | None = None


At: TypeAlias = Layer | InputMapping | OutputMapping | IgnoredOutput | BackEdge


class Hit(NamedTuple):
    """A place where a rule is broken; `is_inside` a body of the loop, else it is the loop or what is around it."""

    at: At
    details: Mapping[str, Detail]
    is_inside: bool


def inside(at: At, **details: Detail) -> Hit:
    """Return a hit in the body of the loop that was asked about."""
    return Hit(at, details, is_inside=True)


def outside(at: At, **details: Detail) -> Hit:
    """Return a hit in the graph in which the layer stands that was asked about."""
    return Hit(at, details, is_inside=False)


Finder: TypeAlias = Callable[[Any], Iterator[Hit]]

_rules: Final[dict[str, Rule]] = {}
_finders: Final[dict[Scope, list[tuple[Rule, Finder]]]] = {scope: [] for scope in Scope}


def add(rule: Rule) -> None:
    """Add a rule that the reader of files finds broken."""
    assert rule.name not in _rules and all(known.id != rule.id for known in _rules.values()), rule.name
    _rules[rule.name] = rule


def found_by(rule: Rule) -> Callable[[Finder], Finder]:
    """Add a rule, and what finds the places where it is broken."""
    add(rule)

    def decorate(finder: Finder) -> Finder:
        _finders[rule.scope].append((rule, finder))
        return finder

    return decorate


def rules() -> Mapping[str, Rule]:
    """Return all rules by name, in the order of their ids."""
    import stepper.diagnosis.lint.rules  # noqa: F401  # each of its modules adds its own

    return MappingProxyType(dict(sorted(_rules.items(), key=lambda item: item[1].id)))


def finders(scope: Scope) -> tuple[tuple[Rule, Finder], ...]:
    """Return the rules that are asked about each of these, with what finds where they are broken."""
    rules()
    return tuple(_finders[scope])
