"""Constants of a few bytes: read once for all of the same bytes, and only where nothing is wrong with them."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

import numpy as np

from stepper.ir.constants import constant_value, small_constant
from stepper.ir.model import Layer, Model
from tests.models import Graph
from tests.tables import each_row

KINDS = (np.int64, np.int32, np.uint8, np.float32, np.float16, np.float64, np.bool_)


def constants(folder: Path) -> tuple[Model, list[Layer]]:
    net = Graph()
    for kind in (*KINDS, np.int64):
        for value in ([1, 0, 1], [[1, 2]], 1, list(range(40))):
            net.result(net.constant(value, kind))
    model = net.read(folder)
    return model, [layer for layer in model.graph.layers if layer.type == "Constant"]


def test_small_constants_are_what_the_file_has(tmp_path: Path) -> None:
    model, found = constants(tmp_path)
    known = 0
    for layer in found:
        small, value = small_constant(layer, model.weights), constant_value(model, layer)
        if small is not None:
            known += 1
            assert small.dtype == value.dtype and not small.flags.writeable
            np.testing.assert_array_equal(small, value, strict=True)
        else:
            assert value.nbytes > 99 or value.dtype == bool
    assert known >= 3 * 6
    same = [small_constant(layer, model.weights) for layer in (found[0], found[-4])]
    assert same[0] is same[1] is not None


@each_row(
    "damage",
    [
        {"size": "23"},
        {"size": "-24"},
        {"shape": "1,-3"},
        {"shape": "2,3"},
        {"element_type": "i65"},
        {"offset": "99999"},
    ],
)
def test_one_that_is_unsound_is_left_to_who_tells_why(damage: dict[str, str], tmp_path: Path) -> None:
    model, found = constants(tmp_path)
    layer = found[0]
    assert small_constant(layer, model.weights) is not None
    damaged = layer._replace(attributes=MappingProxyType({**layer.attributes, **damage}))
    assert small_constant(damaged, model.weights) is None and small_constant(layer, None) is None
