"""`stepper inspect MODEL`: what the model is made of, as text or JSON."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence

from stepper.cli.printing import print_answer
from stepper.cli.specs import opened_model
from stepper.engine.loops import ControlOrigin, OutputRole, Role
from stepper.engine.program import mark_of
from stepper.engine.run import LoopOutline, Outline, PortEntry, TensorOutline, WithoutKernel, outline
from stepper.errors import UsageError
from stepper.ir.model import LayerSite, Model
from stepper.ir.reader import open_sequences
from stepper.openvino.program import is_installed
from stepper.openvino.runtime import INSTALL, Runtime
from stepper.operation_types import NO_OPERATIONS
from stepper.records import as_data
from stepper.wording import counted, near_text

_MOST_SEQUENCES = 10


def execute(options: Namespace) -> int:
    """Read, outline, report; 0 if all went well."""
    model = opened_model(options)
    found = outline(open_sequences(model) if options.open_sequences else model)
    lines = () if options.json else _about(found, _own_names(model, options.names)) if options.names else _text(found)
    print_answer(options, {"model": options.model, **as_data(found)}, lines)
    return 0


def _own_names(model: Model, names: Sequence[str]) -> list[str]:
    """Return names, those of outputs as the names of the layers that give them."""
    layers = [layer for _, graph in model.graphs() for layer in graph.layers]
    own = {name: layer.name for layer in layers for port in layer.outputs for name in port.names}
    known = {layer.name for layer in layers}
    return [name if name in known else own.get(name, name) for name in names]


def _about(found: Outline, names: Sequence[str]) -> list[str]:
    """Return the loops of these names, and how values of these names go in, out and round."""
    lines = []
    for loop in found.loops:
        path = loop.path.removeprefix("model > ")
        if loop.layer.name in names:
            lines += _loop(loop)
            continue
        concerned = [one for one in loop.entries if any(site.name in names for site in (one.inner, *one.around))]
        carried = {one.inner for one in concerned}
        lines += [f"{path}: {_way(loop, one)}" for one in concerned]
        lines += [
            f"{path}: {_inner(one.result)} -> {_inner(one.parameter)}: back edge, from the next iteration on  "
            f"(line {one.line})"
            for one in loop.back_edges
            if any(site in carried or site.name in names for site in (one.result, one.parameter))
        ]
    if not lines:
        known = {site.name for loop in found.loops for one in loop.entries for site in (one.inner, *one.around)}
        known |= {loop.layer.name for loop in found.loops}
        near = "; ".join(filter(None, (near_text(name, known) for name in names)))
        raise UsageError(
            f"no loop and nothing that goes into one is named {', '.join(map(repr, names))}"
            + (f"; {near}" if near else "")
        )
    return lines


def _way(loop: LoopOutline, entry: PortEntry) -> str:
    """Return how a value goes into a body or out of it, from layer to layer."""
    outside = ", ".join(map(str, entry.around))
    port = [] if entry.outer is None else [f"{entry.direction} {entry.outer}"]
    steps = [*([outside] if outside else []), *port, _inner(entry.inner)]
    way = " -> ".join(steps if entry.direction == "input" else reversed(steps))
    return f"{way}: {entry.role}{_explained(loop, entry)}  (line {entry.line})"


def _explained(loop: LoopOutline, entry: PortEntry) -> str:
    """Return what a role means for the value."""
    if entry.role == Role.CURRENT_ITERATION:
        return f", which counts 0, 1, 2, ...; the trip count is {_origin(loop.control.trip_count, 'not connected')}"
    if entry.role == OutputRole.CONCATENATED and entry.slicing is not None:
        return f", {entry.slicing}: the pieces are laid end to end along this axis, which each of them has"
    if entry.role == Role.MERGED:
        return ", the value of the first iteration"
    return "" if entry.slicing is None else f", {entry.slicing}"


def _text(found: Outline) -> list[str]:
    weights = "no .bin" if found.weights is None else f"{found.weights:,} bytes of weights"
    lines = [f"model {found.name or '(unnamed)'}, IR version {found.version}, {weights}"]
    lines += ["inputs", *(f"  {index}  {_tensor(tensor)}" for index, tensor in enumerate(found.inputs))]
    lines += ["outputs", *(f"  {index}  {_tensor(tensor)}" for index, tensor in enumerate(found.outputs))]
    if found.variables:
        lines += ["variables", *(f"  {_tensor(tensor)}" for tensor in found.variables)]
    for loop in found.loops:
        lines += _loop(loop)
    if found.sequences:
        lines += ["sequences, which --open-sequences opens as loops"]
        lines += [f"  {layer}" for layer in found.sequences[:_MOST_SEQUENCES]]
        more = len(found.sequences) - _MOST_SEQUENCES
        lines += [f"  and {more} more"] if more > 0 else []
    lines += ["in all graphs", f"  {_counted(found.operations)}"]
    if found.without_kernel:
        who = (
            f"{mark_of(str(Runtime()))}: computed by OpenVINO, where it can"
            if is_installed()
            else f"a run stops there; OpenVINO may compute it: {INSTALL}"
        )
        mark = f"{mark_of(str(Runtime()))}  " if is_installed() else ""
        lines += [f"without a kernel ({who})", *(f"  {mark}{_lacking(one)}" for one in found.without_kernel)]
    if found.departures:
        lines += ["where OpenVINO's CPU plugin departs", *(f"  {fact.type}: {fact.text}" for fact in found.departures)]
    return lines


def _tensor(tensor: TensorOutline) -> str:
    also = f"  (also: {', '.join(tensor.tensor_names)})" if tensor.tensor_names else ""
    return f"{tensor.name}  {tensor.type}{tensor.shape}{also}"


def _loop(loop: LoopOutline) -> list[str]:
    opened = f", opened from {loop.opened_from}" if loop.opened_from else ""
    lines = [f"{loop.path.removeprefix('model > ')}  ({loop.type}, id {loop.layer.id}, line {loop.layer.line}{opened})"]
    lines += [f"  {word:12} {text}" for word, text in _control(loop)]
    lines += [f"  {_entry(entry)}" for entry in loop.entries]
    lines += [
        f"  back edge    {_inner(edge.result)} -> {_inner(edge.parameter)}  (line {edge.line})"
        for edge in loop.back_edges
    ]
    return [*lines, f"  body         {_counted(loop.operations)}"]


def _control(loop: LoopOutline) -> Iterator[tuple[str, str]]:
    """Yield what begins and ends a loop, or chooses the side of an If, line by line."""
    control = loop.control
    if loop.type.startswith("If-"):
        yield "condition", _origin(control.condition, "not connected")
    elif loop.type.startswith("TensorIterator-"):
        ports = " and ".join(map(str, control.slices_of))
        yield "trip count", f"as many as input {ports} has slices" if ports else "as its outputs say"
    else:
        yield "trip count", _origin(control.trip_count, "not connected: unlimited")
        yield "starts if", _origin(control.condition, "not connected: the first iteration runs")
        yield "goes on if", _origin(control.goes_on, "not connected")


def _origin(origin: ControlOrigin | None, absent: str) -> str:
    if origin is None:
        return absent
    output = "" if origin.output is None else f", output {origin.output}"
    value = "" if origin.value is None else f" = {origin.value}"
    shape = "" if origin.shape is None else f" of shape {list(origin.shape)}"
    return f"{origin.layer}{output}{value}{shape}"


def _entry(entry: PortEntry) -> str:
    outer = "-" if entry.outer is None else f"{entry.direction} {entry.outer}"
    arrow = f"{outer} -> {_inner(entry.inner)}" if entry.direction == "input" else f"{_inner(entry.inner)} -> {outer}"
    slicing = "" if entry.slicing is None else f", {entry.slicing}"
    return f"{entry.direction:12} {arrow}: {entry.role}{slicing}  (line {entry.line})"


def _inner(layer: LayerSite) -> str:
    """Return a layer of a body, with its id; one that the body lacks has no type."""
    return f"{layer.type} {layer.id} '{layer.name}'" if layer.type else f"{layer.id} (no layer of the body)"


def _lacking(one: WithoutKernel) -> str:
    return f"{one.operation} '{one.layer.name}' in {one.path} (line {one.layer.line})"


def _counted(operations: dict[str, int]) -> str:
    """Return the number of operations by type, and what else there is."""
    count = sum(count for name, count in operations.items() if name not in NO_OPERATIONS)
    types = [f"{name} {count}" for name, count in operations.items() if name not in NO_OPERATIONS]
    others = [f"{name} {count}" for name, count in operations.items() if name in NO_OPERATIONS]
    return "; ".join(filter(None, (f"{counted(count, 'operation')}: {', '.join(types)}", ", ".join(others))))
