"""Rules: each with an id and a name that stay, a sentence with places for values, and what finds the places in a file.

The texts are in `rules.json`, in the order of the ids. A sentence is a template of `str.format`; what it is filled with
are the details of a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from msgspec import convert, json

from stepper.diagnosis.findings import Detail, Severity
from stepper.ir.model import BackEdge, IgnoredOutput, InputMapping, Layer, OutputMapping
from stepper.records import Record

_T = TypeVar("_T")


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


class Example(Record):
    """How to break a rule: a text of the model `base` (`examples/BASE.xml`), and the wrong text in its place.

    `also` are further changes, without which another rule is broken, too, or none.
    """

    base: str
    right: str
    wrong: str
    also: tuple[tuple[str, str], ...] = ()


@cache
def _examples() -> Mapping[str, Example]:
    import tomllib  # a run of lint needs no example

    text = (files("stepper.diagnosis.lint") / "examples" / "examples.toml").read_text()
    return convert(tomllib.loads(text), dict[str, Example])


class Rule(Record):
    """A rule. `says` is the sentence of a finding. `means` is the consequence in a run. `do` is the fix, and `source`
    the evidence.
    """

    id: str
    name: str
    scope: SubjectKind
    severity: Severity
    says: str
    means: str
    do: str
    source: str

    def named(self, details: Mapping[str, _T]) -> dict[str, _T]:
        """Return those of the details that the texts of the rule name."""
        text = f"{self.says} {self.means} {self.do}"
        return {name: one for name, one in details.items() if f"{{{name}}}" in text}

    @property
    def example(self) -> Example | None:
        """How to break the rule; None for a rule of runs."""
        return _examples().get(self.name)


@cache
def rules() -> Mapping[str, Rule]:
    """Return all rules by name, in the order of their ids."""
    content = (files("stepper.diagnosis") / "rules.json").read_bytes()
    return {rule.name: rule for rule in json.decode(content, type=list[Rule])}


At: TypeAlias = Layer | InputMapping | OutputMapping | IgnoredOutput | BackEdge


class RuleHit(NamedTuple):
    """A place where a rule is broken; `is_inside` a body of the loop, else it is the loop or what is around it.

    The place itself need not be among the `details`: where the texts of the rule name {layer}, {parameter} or {result},
    they mean the layer, or the ends of the entry or back edge, at which it is broken; {axis}, {start}, {end} and
    {stride} are those of the entry.
    `severity` is given where it is another than that of the rule.
    """

    at: At
    details: Mapping[str, Detail | Layer]
    is_inside: bool
    severity: Severity | None = None

    def graded(self, severity: Severity) -> RuleHit:
        """Return the hit with a severity of its own."""
        return self._replace(severity=severity)


Hits: TypeAlias = Iterator[RuleHit]


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


FINDERS: Final[dict[SubjectKind, list[RuleFinder]]] = {scope: [] for scope in SubjectKind}


def found_by(finder: Finder) -> Finder:
    """Say that a function finds the places where the rule of its name is broken."""
    return found_in()(finder)


def found_in(*types: str, suspects: Callable[[Any], bool] | None = None) -> Callable[[Finder], Finder]:
    """Say that a function finds the places where the rule of its name is broken; of layers only those of these types.

    Layers come by the thousand and in few kinds (`LayerKinds`): `suspects` says of which of them the rule is asked.
    """

    def decorate(finder: Finder) -> Finder:
        rule = rules()[finder.__name__.replace("_", "-")]
        FINDERS[rule.scope].append(RuleFinder(rule, finder, frozenset(types), suspects))
        return finder

    return decorate


def found_in_kinds(*types: str) -> Callable[[Finder], Finder]:
    """Say the same of a rule that looks at nothing but what the layers of a kind share.

    Where it finds nothing in the first it is not asked about the others.
    """
    return lambda finder: found_in(*types, suspects=lambda facts: any(True for _hit in finder(facts)))(finder)
