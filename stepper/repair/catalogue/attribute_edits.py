"""Edits of attributes: flags, choices, axes, numbers, activations. The kernels say which attributes there are."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from functools import partial
from inspect import Parameter
from typing import Any, Literal

from stepper.ir.model import Layer
from stepper.operation_types import NO_OPERATIONS, VARIABLES
from stepper.ops.registry import Kernel, find, without_none
from stepper.repair.changes import set_attributes
from stepper.repair.edit import EditKind, GraphSite, RepairEdit

_PLAIN = ("special_zero", "m_pythondiv", "stable", "hidden_size", "precise", "shape_type")
"""Attributes that change no number, or that follow from the inputs."""
_AXES = ("axis", "axes", "batch_dims", "batch_axis", "seq_axis", "split_dim")
_LIKELY = (
    "transpose_a", "transpose_b", "keep_dims", "exclusive", "reverse", "direction", "linear_before_reset", "mode",
    "approximation_mode", "across_channels", "normalize_variance", "eps_mode", "exclude_pad", "sort", "causal",
)  # fmt: skip
"""Attributes that converters and engineers get wrong most often."""
_ACTIVATIONS = ("sigmoid", "tanh", "relu", "hardsigmoid")


def attribute_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield the edits of the attributes of a graph."""
    for layer in site.operations:
        if layer.bodies or layer.type in (*NO_OPERATIONS, *VARIABLES, "Convert", "ConvertLike"):
            continue
        kernel = None if layer.definition is None else find(layer.type, layer.definition)
        if kernel is None:
            continue
        for name, parameter in kernel.attributes.items():
            if name not in _PLAIN:
                yield from _of_attribute(site, layer, kernel, name, parameter)


def _of_attribute(
    site: GraphSite, layer: Layer, kernel: Kernel, name: str, parameter: Parameter
) -> Iterator[RepairEdit]:
    now = _text(layer, name, parameter)
    annotation, _is_optional = without_none(kernel.annotations.get(name))
    price = 1.0 if name in _LIKELY else 2.0
    for text, dearer in _others(site, layer, name, now, annotation):
        yield _edit(site, layer, name, now, text, price + dearer)


def _edit(site: GraphSite, layer: Layer, name: str, now: str, text: str, price: float) -> RepairEdit:
    key = next((one for one in layer.attributes if one.replace("-", "_") == name), name)
    change = partial(set_attributes, site.scope, layer.id, {key: text})
    return site.edit(EditKind.ATTRIBUTE, layer, price, change, subject=name, before=now, after=text)


def _text(layer: Layer, name: str, parameter: Parameter) -> str:
    given = {key.replace("-", "_"): text for key, text in layer.attributes.items()}
    if name in given:
        return given[name]
    default = parameter.default
    return (
        str(default).lower()
        if isinstance(default, bool)
        else ""
        if default in (None, parameter.empty)
        else str(default)
    )


def _others(site: GraphSite, layer: Layer, name: str, now: str, annotation: Any) -> Iterator[tuple[str, float]]:
    """Yield other texts of an attribute, each with what it adds to the price."""
    if name == "auto_broadcast":
        yield from (("numpy", 0.0),) if now.lower() not in ("numpy", "") else ()
    elif annotation is bool:
        yield ("false" if now.strip().lower() in ("true", "1") else "true"), 0.0
    elif typing.get_origin(annotation) is Literal:
        yield from ((one, 0.0) for one in map(str, typing.get_args(annotation)) if one.lower() != now.lower())
    elif name in ("activations",):
        yield from _activations(now)
    elif annotation is int and name in _AXES:
        yield from ((one, 0.0) for one in _axes(site, layer, name, now))
    elif annotation is int and now.lstrip("-").isdigit():
        yield from ((str(int(now) + step), float(abs(step))) for step in (1, -1, 2, -2))
    elif annotation is float:
        yield from _floats(name, now)
    elif typing.get_origin(annotation) is tuple:
        yield from _lists(now)


def _axes(site: GraphSite, layer: Layer, name: str, now: str) -> Iterator[str]:
    forms = [site.form(source) for source in site.sources(layer)]
    rank = max((len(form.shape) for form in forms if form is not None), default=0)
    if not now.lstrip("-").isdigit():
        return
    current = int(now) % rank if rank and name != "batch_dims" else int(now)
    for axis in range(min(rank + (layer.type == "OneHot"), 8)):
        if axis != current:
            yield str(axis)


def _floats(name: str, now: str) -> Iterator[tuple[str, float]]:
    try:
        value = float(now)
    except ValueError:
        return
    if "eps" in name:
        yield from ((f"1e-{power}", 0.5) for power in (3, 5, 6, 12, 8, 9, 7, 2) if float(f"1e-{power}") != value)
        return
    yield from ((repr(one), 1.0) for one in (value * 2, value / 2, -value, 1 - value, 0.0, 1.0) if one != value)


def _lists(now: str) -> Iterator[tuple[str, float]]:
    parts = [part.strip() for part in now.strip("[]").split(",") if part.strip()]
    if not parts or not all(part.lstrip("-").isdigit() for part in parts) or len(parts) > 8:
        return
    numbers = list(map(int, parts))
    if numbers[::-1] != numbers:
        yield ",".join(map(str, numbers[::-1])), 0.0
    for step in (1, -1):
        yield ",".join(str(one + step) for one in numbers), 1.0
        for index in range(len(numbers) if len(numbers) > 1 else 0):
            yield ",".join(str(one + step * (at == index)) for at, one in enumerate(numbers)), 1.5


def _activations(now: str) -> Iterator[tuple[str, float]]:
    words = [word.strip().lower() for word in now.split(",") if word.strip()]
    if words[::-1] != words:
        yield ",".join(words[::-1]), 0.5
    for index, word in enumerate(words):
        for other in _ACTIVATIONS:
            if other != word:
                yield ",".join([*words[:index], other, *words[index + 1 :]]), 0.5
