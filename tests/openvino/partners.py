"""A partner of the engine that needs no other runtime, and a loop for it to work in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stepper.ir.model import Layer, Model
from tests.models import Graph, carried, joined, last

TRIPLES = "somebody else"


class Tripling:
    """Computes operations of the type Triple, which no operation set has, and of those given to it."""

    def __init__(self, *types: str, description: str = "--engine tripling") -> None:
        self.description = description
        self.calls: list[str] = []
        self._types = {"Triple", *types}

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        return layer.type in self._types

    def bind(self, layer: Layer, constants: Sequence[Any]) -> tuple[Any, str]:
        def triple(*inputs: Any) -> tuple[Any, ...]:
            self.calls.append(layer.name)
            return (inputs[0] * np.asarray(3, inputs[0].dtype),)

        return triple, TRIPLES


def tripling_loop(version: str = "extension") -> Graph:
    """Five iterations of (x * 3) - 1 with all pieces joined."""
    net = Graph()
    x, body = net.parameter("x"), net.body()
    state = body.parameter("state")
    tripled = body.apply("Triple", state, name="tripled", version=version)
    less = body.result(body.apply("Subtract", tripled, body.constant(1.0), name="less"))
    final, pieces = net.loop("powers", body, 5, True, [carried(x, state, less)], [last(less), joined(less)])
    net.result(final, "final")
    net.result(pieces, "pieces")
    return net


def expected(x: float) -> list[float]:
    """What the loop gives in each iteration, by the formula."""
    return [3**n * x - (3**n - 1) / 2 for n in range(1, 6)]


def read(folder: Path, version: str = "extension") -> Model:
    """The loop from a file."""
    return tripling_loop(version).read(folder)
