"""Rules: each with an id and a name that stay, a sentence with places for values, and what finds the places in a file.

The sentence is a template of `str.format`; what it is filled with are the details of a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct

from stepper.diagnosis.findings import Detail, Severity
from stepper.ir.model import BackEdge, IgnoredOutput, InputMapping, Layer, OutputMapping


class SubjectKind(StrEnum):
    """Kinds of subjects: a rule is asked about each of a kind in turn."""

    FILE = "file"
    """Found while the file is read."""
    MODEL = "model"
    LOOP = "loop"
    """A TensorIterator or a Loop."""
    IF = "if"
    LAYER = "layer"
    RUN = "run"
    """A run that was made: asked by `stepper check` alone."""
    NARROW_RUN = "run in fewer bits"
    """Runs of `stepper check --as`."""

    @property
    def is_of_runs(self) -> bool:
        """True if the file alone is not enough."""
        return self in (SubjectKind.RUN, SubjectKind.NARROW_RUN)


FILE, MODEL, LOOP, IF, LAYER, RUN, NARROW_RUN = SubjectKind


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
    scope: SubjectKind
    severity: Severity
    says: str
    means: str
    do: str
    source: str
    example: Example | None = None


At: TypeAlias = Layer | InputMapping | OutputMapping | IgnoredOutput | BackEdge


class RuleHit(NamedTuple):
    """A place where a rule is broken; `is_inside` a body of the loop, else it is the loop or what is around it.

    The place itself need not be among the `details`: where the texts of the rule name {layer}, {parameter} or {result},
    they mean the layer, or the ends of the entry or back edge, at which it is broken.
    `severity` is given where it is another than that of the rule.
    """

    at: At
    details: Mapping[str, Detail | Layer]
    is_inside: bool
    severity: Severity | None = None

    def graded(self, severity: Severity) -> RuleHit:
        """Return the hit with a severity of its own."""
        return self._replace(severity=severity)


def inside(at: At, **details: Detail | Layer) -> RuleHit:
    """Return a hit in the body of the loop that was asked about."""
    return RuleHit(at, details, is_inside=True)


def outside(at: At, **details: Detail | Layer) -> RuleHit:
    """Return a hit in the graph in which the layer stands that was asked about."""
    return RuleHit(at, details, is_inside=False)


Finder: TypeAlias = Callable[[Any], Iterator[Any]]
"""From the subject of a rule to the places where it is broken: a `RuleHit` of a file, a `RunFinding` of a run."""


class RuleFinder(NamedTuple):
    """A rule, and what finds the places where it is broken.

    Of layers it is asked about those of `types`, of all where there are none, and, where there are `suspects`, about
    those of the kinds of whose first layer this is true.
    """

    rule: Rule
    find: Finder
    types: frozenset[str]
    suspects: Callable[[Any], bool] | None


REGISTERED: Final[dict[str, Rule]] = {}
FINDERS: Final[dict[SubjectKind, list[RuleFinder]]] = {scope: [] for scope in SubjectKind}


def add(rule: Rule) -> None:
    """Add a rule that the reader of files finds broken."""
    assert rule.name not in REGISTERED and all(known.id != rule.id for known in REGISTERED.values()), rule.name
    REGISTERED[rule.name] = rule


def found_by(
    id: str,
    name: str,
    scope: SubjectKind,
    severity: Severity,
    *types: str,
    of_kinds: bool = False,
    suspects: Callable[[Any], bool] | None = None,
    says: str,
    means: str,
    do: str,
    source: str,
    example: Example | None = None,
) -> Callable[[Finder], Finder]:
    """Add a rule, and what finds the places where it is broken; of layers only those of these types are asked about.

    Layers come by the thousand and in few kinds (`LayerKinds`). A rule that looks at nothing but what the layers of a
    kind share is one `of_kinds`: where it finds nothing in the first it is not asked about the others. For one that
    looks at more, `suspects` says of which kinds it is asked.
    """
    rule = Rule(id, name, scope, severity, says, means, do, source, example)
    add(rule)

    def decorate(finder: Finder) -> Finder:
        def finds(facts: Any) -> bool:
            return any(True for _hit in finder(facts))

        FINDERS[rule.scope].append(RuleFinder(rule, finder, frozenset(types), finds if of_kinds else suspects))
        return finder

    return decorate
