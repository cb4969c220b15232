"""Runs with one tensor as one likes it, inside a loop, for tests of the value screen."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from stepper import element_types
from stepper.debug.debugger import Debugger
from tests.models import Graph, carried, invariant, last


def passing_on(value: Any) -> Debugger:
    """A model that reshapes its input, of any element type, to its own shape: the operation `big`."""
    array = np.asarray(value)
    net = Graph()
    given = net.parameter("given", element_types.name_of(array.dtype), array.shape)
    shape = net.constant(np.array(array.shape, np.int64), name="shape")
    net.result(net.apply("Reshape", given, shape, name="big", special_zero="false"))
    return _debugger(net, array)


def growing_by(start: Any, step: Any, iterations: int = 6) -> Debugger:
    """A Loop that adds `step` to a carried tensor in each iteration: the operation `sum`."""
    first, more = np.asarray(start), np.asarray(step)
    net = Graph()
    body = net.body()
    name = element_types.name_of(first.dtype)
    h, x = (body.parameter(which, name, array.shape) for which, array in (("h", first), ("x", more)))
    following = body.result(body.apply("Add", h, x, name="sum"), "h_out")
    outer = [net.parameter(which, name, array.shape) for which, array in (("h0", first), ("x0", more))]
    entries = [carried(outer[0], h, following), invariant(outer[1], x)]
    for index, output in enumerate(net.loop("adding", body, iterations, True, entries, [last(following)])):
        net.result(output, f"out_{index}")
    return _debugger(net, first, more)


def _debugger(net: Graph, *inputs: Any) -> Debugger:
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), dict(enumerate(inputs)))
