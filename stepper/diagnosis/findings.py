"""Findings: what is wrong, how grave it is, and where it stands in the file; typed, words are made of it by `texts`."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import Final, Literal, TypeAlias

from stepper.debug.causes.cause import NonFinite
from stepper.ir.model import LayerSite
from stepper.records import Record


class Severity(StrEnum):
    """How grave a finding is: an error cannot run or gives wrong values, a warning may, a note is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


ERROR, WARNING, NOTE = Severity
GRAVITY: Final = {ERROR: 0, WARNING: 1, NOTE: 2}

Part: TypeAlias = Literal["file", "layer", "port map entry", "back edge", "edge", "run"]
"""Which part of the file a finding is about."""

Detail: TypeAlias = str | int | float | bool | LayerSite | NonFinite | tuple[int, ...] | tuple[LayerSite, ...] | None


_TEXTS: Final = "stepper.diagnosis.texts"
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
    """One finding of a rule (by name); `details` are the values that the sentence of the rule speaks of.

    Of a run, `iterations` are those of the loops around it, the outermost first, in which it shows first, and `address`
    is what to look at in the debugger; `tick` orders findings in time.
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
        """True if it is about where NaN or Inf is born, which overviews of a run tell themselves."""
        return any(isinstance(one, NonFinite) for one in self.details.values())
