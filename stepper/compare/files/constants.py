"""Constant values of a graph: the Constants of the file, and in bodies whatever follows from them alone."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from stepper.element_types import STRING_DTYPE
from stepper.engine.program import CompiledModel
from stepper.errors import ModelError
from stepper.ir.constants import constant_value
from stepper.ir.model import Graph, Layer, Model, Source


class ConstantValues:
    """Constant values of one model, by graph and layer. Without `compiled`, of the file's Constants alone."""

    def __init__(self, model: Model, compiled: CompiledModel | None = None) -> None:
        self._model = model
        self._programs = {id(program.graph): program for program in compiled.programs} if compiled else {}
        self._digests: dict[tuple[int, int, int], str] = {}

    def value(self, graph: Graph, source: Source | None) -> Any:
        """Return the constant value of an output of a layer; None where it is computed by the run."""
        if source is None:
            return None
        layer = graph.by_id[source.layer]
        if layer.type in ("Parameter", "Result"):
            return None
        program = self._programs.get(id(graph))
        slot = None if program is None else program.slots.get((source.layer, source.output))
        if program is not None and slot is not None:
            return program.template[slot]
        return self.of_layer(layer)

    def of_layer(self, layer: Layer) -> Any:
        """Return the value of a Constant; None for anything else, or where the .bin does not have it."""
        if layer.type != "Constant":
            return None
        try:
            return constant_value(self._model, layer)
        except ModelError:
            return None

    def digest(self, graph: Graph, source: Source) -> str | None:
        """Return a hash of type, shape and content of a constant; None where it is computed by the run."""
        key = (id(graph), source.layer, source.output)
        if key not in self._digests:
            value = self.value(graph, source)
            if value is None:
                return None
            self._digests[key] = _digest(np.asarray(value))
        return self._digests[key]


def _digest(value: np.ndarray[Any, Any]) -> str:
    content = "\0".join(map(str, value.reshape(-1))).encode() if value.dtype == STRING_DTYPE else value.tobytes()
    return f"{value.dtype}{value.shape}{hashlib.blake2b(content, digest_size=12).hexdigest()}"


def same_numbers(ours: Any, theirs: Any) -> bool:
    """True if two constants are the same, bit for bit."""
    if ours is theirs:
        return True
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return bool((a == b).all()) or (a.dtype != STRING_DTYPE and a.tobytes() == b.tobytes())
