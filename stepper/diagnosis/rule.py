"""Define rules and findings, and select rules by name or id.

A rule has a permanent id and name, a sentence with placeholders, and a function that finds places in a file. The texts
are in `rules.json`, in the order of the ids. A sentence is a template of `str.format`; the details of a finding fill
it.

A finding says what is wrong, how severe it is, and where it stands in the file. Findings are typed; `texts` turns them
into words.

The command line or a settings file selects rules by name, by id, or by the beginning of ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import convert, json

from stepper.debug.causes.cause import NonFinite
from stepper.errors import UsageError
from stepper.files.allowed import ALLOWED, SettingsFile
from stepper.files.configuration import read_toml
from stepper.ir.model import BackEdge, IgnoredOutput, InputMapping, Layer, LayerSite, OutputMapping
from stepper.records import Record
from stepper.wording import near_names, near_sentence


class Severity(StrEnum):
    """How grave a finding is: an error cannot run or gives wrong values, a warning may, a note is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


ERROR, WARNING, NOTE = Severity
GRAVITY = {ERROR: 0, WARNING: 1, NOTE: 2}

Part: TypeAlias = Literal["file", "layer", "port map entry", "back edge", "edge", "run"]
"""Part of the file that a finding is about."""

Detail: TypeAlias = str | int | float | bool | LayerSite | NonFinite | tuple[int, ...] | tuple[LayerSite, ...] | None


_TEXTS = "stepper.diagnosis.texts"
"""Loaded by notebooks alone; facts import no texts."""


class FilePart(Record):
    """Where a finding stands: the file, the line (0: none), the part; the loops around it, the outermost first; its
    layer; and the TensorIterator, Loop or If that it is about, which may have the layer outside of it, as a trip count.
    """

    file: str
    line: int
    part: Part
    path: tuple[LayerSite, ...] = ()
    layer: LayerSite | None = None
    loop: LayerSite | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class Finding(Record):
    """Hold one finding of a rule (by name); `details` are the values for the rule's sentence.

    For a finding of a run, `iterations` are the iterations of the loops around it, outermost first, in which it first
    appears. `address` is the value to open in the debugger; `tick` orders findings in time.
    """

    rule: str
    severity: Severity
    spot: FilePart
    details: dict[str, Detail]
    iterations: tuple[int, ...] = ()
    address: str = ""
    tick: int = 0

    def _repr_html_(self) -> str:
        """Return a table of one row, for notebooks."""
        html: str = import_module(_TEXTS).findings_html([self])
        return html

    @property
    def is_birth(self) -> bool:
        """Return True if it is about the first NaN or Inf, which the overview of a run shows itself."""
        return any(isinstance(one, NonFinite) for one in self.details.values())


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
    """Hold a place where a rule is broken.

    `is_inside`: the place is in a body of the loop, else at or around the loop.

    The `details` need not contain the place. In the texts of the rule, {layer}, {parameter} and {result} mean the
    layer, or the ends of the entry or back edge, where the rule is broken. {axis}, {start}, {end} and {stride} belong
    to the entry. `severity` is set where it differs from the rule's severity.
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
    """Register a function that finds where its rule (by name) is broken, for these layer types.

    A model has thousands of layers but few kinds (`LayerKinds`): `suspects` selects the kinds that the rule checks.
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


def chosen_rules(select: Iterable[str], ignore: Iterable[str]) -> frozenset[str]:
    """Return the names of the rules that are selected and not ignored. UsageError for a word that is none.

    Where none is selected those are that the settings of the project select, else all; what they ignore is ignored.
    """
    selected, ignored = settings(Path.cwd())
    return (_named(tuple(select) or selected) or frozenset(rules())) - _named((*ignored, *ignore))


def _named(words: Iterable[str]) -> frozenset[str]:
    return frozenset(rule.name for word in words for rule in rules_named(word))


def rules_named(word: str) -> list[Rule]:
    """Return the rules of a name, an id, or with ids that begin so. UsageError where there are none."""
    known = rules()
    if word in known:
        return [known[word]]
    found = [rule for rule in known.values() if word and rule.id.startswith(word.upper())]
    if found:
        return found
    near = near_sentence(near_names(word, [*known, *(rule.id for rule in known.values())]))
    raise UsageError(f"there is no rule '{word}'" + (f"; {near}" if near else "; stepper lint --rules lists them"))


def settings(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what a project selects and ignores: in [lint] of stepper.toml, or [tool.stepper.lint] of pyproject.toml.

    The nearest such table of the folder or one around it counts. UsageError for a table that cannot be understood.
    """
    for place in (folder, *folder.parents):
        for name, keys in (("stepper.toml", ("lint",)), ("pyproject.toml", ("tool", "stepper", "lint"))):
            table = _table(place / name, keys)
            if table is not None:
                return _words(place / name, table, "select"), _words(place / name, table, "ignore")
    return (), ()


def _table(file: Path, keys: tuple[str, ...]) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    found: Any = read_toml(file)
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    if found is None:
        return None
    if not isinstance(found, dict) or (unknown := [key for key in found if key not in ALLOWED[SettingsFile.LINT]]):
        what = f"has no setting '{unknown[0]}'" if isinstance(found, dict) else "is no table"
        raise UsageError(f"{file}: [{'.'.join(keys)}] {what}; it may have select and ignore")
    return found


def _words(file: Path, table: dict[str, Any], key: str) -> tuple[str, ...]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise UsageError(f'{file}: {key} is a list of names or ids of rules, such as ["N2", "loop-never-ends"]')
    return tuple(found)
