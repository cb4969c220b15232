"""A model whose outputs are compared where they are made, so that of what agrees nothing is handed over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from stepper.element_types import Array
from stepper.openvino.functions.kinds import Judgement
from stepper.tensors.difference import is_within


class Viewed(Protocol):
    """A function whose outputs may be looked at in the runtime's own memory."""

    def views(self, *inputs: Any, lends: bool = False) -> Sequence[Array]:
        """Return its outputs, good until the next call; `lends`: nobody else has the inputs."""


class JudgedText:
    """A function that takes `taken` arguments, and more to compare with: which outputs agree, and then the others.

    `lends`: its arguments are nobody else's.
    """

    def __init__(self, text: Viewed, judged: Sequence[Judgement], taken: int, *, lends: bool) -> None:
        self._text, self._judged, self._taken, self._lends = text, tuple(judged), taken, lends

    def __call__(self, *arguments: Any) -> tuple[Array, ...]:
        """Return booleans, True for each output that is within its tolerance, and the outputs that are not."""
        outputs = self._text.views(*arguments[: self._taken], lends=self._lends)
        agrees = [
            is_within(arguments[judged.place], output, judged.tolerance)
            for output, judged in zip(outputs, self._judged, strict=True)
        ]
        others = [np.array(output) for output, is_fine in zip(outputs, agrees, strict=True) if not is_fine]
        return np.array(agrees, np.bool_), *others
