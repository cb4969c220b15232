"""Inputs and outputs of the model in short: their numbers where they are few, texts as text."""

from __future__ import annotations

from typing import Final

import numpy as np

from stepper.debug.causes.cause import Scalar
from stepper.debug.causes.locations import brief_of
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.overview.facts import ModelPortFacts
from stepper.element_types import FLOATING, Array
from stepper.engine.program import Value

MOST_NUMBERS: Final = 64
"""Elements of a value that is given with all of them."""
MOST_LETTERS: Final = 256


def port_facts(name: str, value: Value | None) -> ModelPortFacts:
    """Return the facts of an input or output of the model."""
    if value is None:
        return ModelPortFacts(name, None)
    array = np.asarray(value)
    floating = array.dtype in FLOATING
    return ModelPortFacts(
        name,
        brief_of(value),
        _numbers_of(array),
        text_of(array),
        int(array.size),
        int(np.isnan(array).sum()) if floating else 0,
        int(np.isinf(array).sum()) if floating else 0,
    )


def _numbers_of(value: Array) -> tuple[Scalar, ...]:
    if value.size > MOST_NUMBERS:
        return ()
    return tuple(found for one in value.reshape(-1) if (found := scalar_of(one)) is not None)


def text_of(value: Array) -> str:
    """Return texts as one; empty for numbers, and where it is long."""
    if not 0 < value.size <= MOST_NUMBERS or value.dtype.kind not in "UT":
        return ""
    text = " ".join(value.reshape(-1).tolist())
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."
