"""Edits of operations: replaced by a neighbour, removed, or applied twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from stepper.ir.model import Layer, Scope, Source
from stepper.operation_types import NO_OPERATIONS, VARIABLES
from stepper.ops.registry import STRUCTURAL
from stepper.repair.changes import redirect, repeat, set_operation, set_type
from stepper.repair.edit import EditKind, GraphSite, RepairEdit, ValueForm
from stepper.repair.patch import ModelPatch

_NEIGHBOURS = (
    "Add Subtract Multiply Divide Maximum Minimum SquaredDifference Power",
    "Mod FloorMod Divide Multiply Subtract Add Minimum Maximum",
    "Less LessEqual Greater GreaterEqual Equal NotEqual",
    "LogicalAnd LogicalOr LogicalXor",
    "BitwiseAnd BitwiseOr BitwiseXor",
    "BitwiseLeftShift BitwiseRightShift",
    "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2",
    "ReduceLogicalAnd ReduceLogicalOr",
    "Sin Cos Tan Asin Acos Atan",
    "Sinh Cosh Tanh Asinh Acosh Atanh",
    "Floor Ceiling Round",
    "Sigmoid HSigmoid Tanh Relu SoftPlus SoftSign Exp Gelu Swish Mish HSwish Erf Sign Abs Negative Sqrt Log Identity",
    "Softmax LogSoftmax",
    "MaxPool AvgPool",
    "ScatterUpdate ScatterElementsUpdate",
)
"""Types that are easily mistaken for each other."""
_TYPES = {
    name: tuple(
        dict.fromkeys(other for row in _NEIGHBOURS if name in row.split() for other in row.split() if other != name)
    )
    for name in " ".join(_NEIGHBOURS).split()
}
_CLOSE = tuple(
    map(
        frozenset,
        (
            ("Add", "Subtract"), ("Multiply", "Divide"), ("Maximum", "Minimum"), ("Sin", "Cos"), ("Tanh", "Sigmoid"),
            ("ReduceSum", "ReduceMean"), ("ReduceMax", "ReduceMin"), ("LogicalAnd", "LogicalOr"), ("Less", "LessEqual"),
            ("Greater", "GreaterEqual"), ("Less", "Greater"), ("LessEqual", "GreaterEqual"), ("Less", "GreaterEqual"),
            ("LessEqual", "Greater"), ("Equal", "NotEqual"), ("Softmax", "LogSoftmax"), ("Floor", "Round"),
            ("Floor", "Ceiling"), ("Sigmoid", "HSigmoid"), ("Swish", "HSwish"), ("Relu", "Gelu"), ("Gelu", "Swish"),
            ("ReduceSum", "ReduceL1"), ("Mod", "FloorMod"),
        ),
    )
)  # fmt: skip
"""Pairs that are exchanged most often."""
_HARD_SIGMOID = ((0.2, 0.5), (1 / 6, 0.5))


def operation_edits(site: GraphSite) -> Iterator[RepairEdit]:
    """Yield replacements, removals and repetitions of the operations of a graph."""
    for layer in site.operations:
        if layer.type in STRUCTURAL:
            continue
        yield from _replaced(site, layer)
        yield from _hard_sigmoid(site, layer)
        yield from _gathered(site, layer)
        yield from _removed(site, layer)
        yield from _repeated(site, layer)
        yield from _in_other_order(site, layer)


def _replaced(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    form = site.form(site.sources(layer)[0]) if site.sources(layer) else None
    for name in _TYPES.get(layer.type, ()):
        if form is not None and not form.is_float and name in _FLOAT_ONLY:
            continue
        kept = {key: text for key, text in layer.attributes.items() if key in _KEPT.get(name, ())}
        yield site.edit(
            EditKind.OPERATION,
            layer,
            1.5 if frozenset((layer.type, name)) in _CLOSE else 3.0,
            partial(set_type, site.scope, layer.id, name, {**kept, **_NEEDED.get(name, {})}),
            before=layer.type,
            after=name,
        )


_FLOAT_ONLY = (
    "Sin", "Cos", "Tan", "Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Gelu", "Swish", "Mish", "HSwish", "HSigmoid", "Erf",
    "SoftPlus",
)  # fmt: skip
_KEPT: Final[Mapping[str, tuple[str, ...]]] = {
    **{name: ("keep_dims",) for row in _NEIGHBOURS for name in row.split() if name.startswith("Reduce")},
    **dict.fromkeys(("Softmax", "LogSoftmax", "ScatterElementsUpdate"), ("axis",)),
    **{name: ("auto_broadcast", "m_pythondiv") for row in _NEIGHBOURS[:5] for name in row.split()},
    **dict.fromkeys(
        ("MaxPool", "AvgPool"),
        ("strides", "pads_begin", "pads_end", "kernel", "rounding_type", "auto_pad", "dilations"),
    ),
}
"""Attributes that an operation takes over from its neighbour."""
_NEEDED: Final[Mapping[str, Mapping[str, str]]] = {
    "Round": {"mode": "half_to_even"},
    "AvgPool": {"exclude-pad": "true"},
    "MaxPool": {"dilations": "1"},
}


def _hard_sigmoid(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield Sigmoid for HardSigmoid, and the reverse; HardSigmoid reads its slope and its offset."""
    sources, form = tuple(site.sources(layer)), site.output_form(layer)
    if layer.type == "HardSigmoid":
        change = partial(set_operation, site.scope, layer.id, "Sigmoid", {}, sources[:1])
        yield site.edit(EditKind.OPERATION, layer, 1.5, change, before=layer.type, after="Sigmoid")
    if layer.type == "Sigmoid" and form is not None:
        for slope, offset in _HARD_SIGMOID:
            harden = partial(_harden, site, layer.id, form, slope, offset)
            after = f"HardSigmoid of slope {slope:.3g}"
            yield site.edit(EditKind.OPERATION, layer, 2.5, harden, before=layer.type, after=after)


def _harden(site: GraphSite, layer: int, form: ValueForm, slope: float, offset: float, patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    numbers = [graph.constant(form.dtype.type(number)) for number in (slope, offset)]
    set_operation(site.scope, layer, "HardSigmoid", {}, (graph.sources[layer][0], *numbers), patch)


def _gathered(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield a Gather of rows for one of elements, and the reverse, where the indices have the rank of the data."""
    sources, forms = tuple(site.sources(layer)), [site.form(source) for source in site.sources(layer)[:2]]
    data, indices = forms if len(forms) == 2 else (None, None)
    if data is None or indices is None or len(indices.shape) != len(data.shape):
        return
    axis = site.value(sources[2]) if layer.type == "Gather" and len(sources) == 3 else None
    if axis is not None and axis.size == 1:
        texts = {"axis": str(int(axis.reshape(-1)[0]))}
        change = partial(set_operation, site.scope, layer.id, "GatherElements", texts, sources[:2])
        yield site.edit(EditKind.OPERATION, layer, 2.5, change, before=layer.type, after="GatherElements")
    if layer.type == "GatherElements":
        gather = partial(_gather_rows, site, layer.id, int(layer.attributes.get("axis", "0")))
        yield site.edit(EditKind.OPERATION, layer, 2.5, gather, before=layer.type, after="Gather")


def _gather_rows(site: GraphSite, layer: int, axis: int, patch: ModelPatch) -> None:
    graph = patch.graph(site.scope)
    sources = (*graph.sources[layer][:2], graph.integers(axis))
    set_operation(site.scope, layer, "Gather", {"batch_dims": "0"}, sources, patch)


def _removed(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    source = Source(layer.id, 0)
    form, readers = site.output_form(layer), site.reader_ids(source)
    if len(layer.outputs) != 1 or layer.type in VARIABLES or form is None or not readers:
        return
    seen = set[Source]()
    for index, input in enumerate(site.sources(layer)):
        if input is None or input in seen or site.form(input) != form:
            continue
        seen.add(input)
        yield site.edit(
            EditKind.REMOVED,
            layer,
            2.0 + (site.graph.by_id[input.layer].type == "Constant") + 0.25 * index,
            partial(redirect, site.scope, source, input),
            after=site.name(input),
            roots=readers,
        )


def _repeated(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield an operation that is applied once more to its own output."""
    form, readers = site.output_form(layer), site.reader_ids(Source(layer.id, 0))
    if len(layer.outputs) != 1 or layer.type in (*VARIABLES, *_IDEMPOTENT) or form is None or not readers:
        return
    for index, input in enumerate(site.sources(layer)):
        if site.form(input) == form:
            yield site.edit(EditKind.REPEATED, layer, 4.0, partial(repeat, site.scope, layer.id, index), roots=readers)
            break


def _in_other_order(site: GraphSite, layer: Layer) -> Iterator[RepairEdit]:
    """Yield an operation that comes before the one whose value it reads, as an eps before a root."""
    form = site.output_form(layer)
    if form is None or not form.is_float or len(layer.outputs) != 1 or not site.readers(Source(layer.id, 0)):
        return
    for index, source in enumerate(site.sources(layer)):
        before = site.graph.layer_of(source)
        if source is None or len(before.outputs) != 1 or before.bodies or len(site.readers(source)) != 1:
            continue
        if before.type in (*NO_OPERATIONS, *VARIABLES) or (before.type == layer.type and len(layer.inputs) > 1):
            continue
        for inner, value in enumerate(site.sources(before)):
            if value is not None and site.form(value) == site.form(source) == form:
                change = partial(_swap, site.scope, layer.id, index, before.id, inner)
                what = f"comes before {before.type} '{before.name}' instead of after it"
                yield site.edit(EditKind.REWRITE, layer, 2.25, change, after=what, roots=(before.id, layer.id))
                break


def _swap(scope: Scope, layer: int, index: int, before: int, inner: int, patch: ModelPatch) -> None:
    graph = patch.graph(scope)
    value, made = graph.sources[before][inner], Source(before, 0)
    graph.redirect(Source(layer, 0), made)
    graph.read(before, inner, Source(layer, 0))
    graph.read(layer, index, value)


_IDEMPOTENT = (
    "Relu", "Abs", "Sign", "Floor", "Ceiling", "Round", "Maximum", "Minimum", "LogicalAnd", "LogicalOr", "Clamp",
    "Identity", "Convert", "Reshape", "Broadcast", "Select",
)  # fmt: skip
