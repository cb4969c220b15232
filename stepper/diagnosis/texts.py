"""The words of findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from stepper.diagnosis.findings import Finding
from stepper.diagnosis.registry import rules
from stepper.ir.model import LayerSite

_MOST_NAMED: Final = 12


def sentence(finding: Finding) -> str:
    """Return what is wrong."""
    return rules()[finding.rule].says.format(**_worded(finding))


def consequence(finding: Finding) -> str:
    """Return what comes of it."""
    return rules()[finding.rule].means.format(**_worded(finding))


def headline(finding: Finding) -> str:
    """Return in which loop and iteration it shows, and what is wrong."""
    iterations = ", ".join(map(str, finding.iterations))
    where = f"iteration{'s' if len(finding.iterations) > 1 else ''} {iterations}" if iterations else ""
    loops = [*finding.spot.path, *([] if finding.spot.loop is None else [finding.spot.loop])]
    path = " > ".join(dict.fromkeys(map(str, loops)))
    place = ", ".join(part for part in (path, where) if part)
    return f"{place}: {sentence(finding)}" if place else sentence(finding)


def remedy(finding: Finding) -> str:
    """Return what to do."""
    return rules()[finding.rule].do.format(**_worded(finding))


def _worded(finding: Finding) -> dict[str, Any]:
    return {name: _WORDS[name](value) if name in _WORDS else value for name, value in finding.details.items()}


def _element(indices: Sequence[int]) -> str:
    return f"element [{', '.join(map(str, indices))}]" if indices else "it"


def _layers(layers: Sequence[LayerSite]) -> str:
    named = [f"'{layer.name}'" for layer in layers[:_MOST_NAMED]]
    more = [f"{len(layers) - _MOST_NAMED} more"] if len(layers) > _MOST_NAMED else []
    return ", ".join(named + more)


def _loss(error: float) -> str:
    return f"is off by {error:.2%}" if math.isfinite(error) else "is lost"


_WORDS: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType({
    "index": _element,
    "layers": _layers,
    "loss": _loss,
    "most": lambda error: f" by more than {error:.2%}" if error else " at all",
})  # fmt: skip
"""How details of these names are written, where it is not as Python writes them."""
