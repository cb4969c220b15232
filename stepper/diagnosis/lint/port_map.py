"""Rules of port maps: entries and purposes, slices and concatenations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from stepper.diagnosis.lint.subjects import (
    ELEMENTWISE,
    PASSING,
    Declared,
    IfSubject,
    LoopSubject,
    known_value,
    of_parameter,
)
from stepper.diagnosis.rule import NOTE, WARNING, Hits, found_by, inside, outside
from stepper.engine.loops import is_backward, whole_axis
from stepper.ir.model import (
    CURRENT_ITERATION,
    EXECUTION_CONDITION,
    NO_LAYER,
    InputMapping,
    LayerSite,
    OutputMapping,
    Slicing,
    Source,
)
from stepper.wording import enumerated, near_names

# Rules of the port map: entries that connect nothing, connect twice, or are not what they say.


_PURPOSES = (CURRENT_ITERATION, EXECUTION_CONDITION)


@found_by
def duplicate_outer_output(loop: LoopSubject) -> Hits:
    """Outputs that an entry before them with the same number makes count for nothing."""
    for entry in loop.body.ignored:
        if entry.result in loop.inner.by_id and entry.counts in loop.inner.by_id:
            first, second = loop.name(entry.counts), loop.name(entry.result)
            yield inside(entry, number=entry.number, first=first, second=second)


@found_by
def input_feeds_two_parameters(loop: LoopSubject) -> Hits:
    """Two entries of one input, where another input has none."""
    unused = _unmapped_inputs(loop)
    counts = Counter(entry.input for entry in loop.body.inputs if entry.input is not None)
    for entry in loop.body.inputs:
        if not unused or entry.input is None or counts[entry.input] < 2:
            continue
        first = next(one for one in loop.body.inputs if one.input == entry.input)
        if first is not entry:
            left = f"input {unused[0]}"
            yield inside(
                entry,
                number=entry.input,
                unused=left,
                first=loop.name(first.parameter),
                second=loop.name(entry.parameter),
            )


@found_by
def input_without_entry(loop: LoopSubject) -> Hits:
    """Inputs of the layer that no entry names."""
    if loop.body.first_draft:
        return
    unmapped = _unmapped_inputs(loop)
    read = [loop.site(one) for one in loop.roles.unfed if loop.is_read(one.id)]
    unfed = f", and {read[0]} gets nothing" if len(read) == 1 else _fed_otherwise(loop)
    for index in unmapped if len(unmapped) > loop.body.unread_inputs else ():
        yield loop.hit(number=index, value=loop.graph.maker(loop.layer, index).name, unfed=unfed)


def _fed_otherwise(loop: LoopSubject) -> str:
    """Return which Parameters share an input, or take trip count or condition: one may be meant for what is left."""
    taken = Counter(entry.input for entry in loop.body.inputs if entry.input is not None)
    doubtful = [number for number, count in taken.items() if count > 1 or number in loop.control_inputs]
    if len(doubtful) != 1:
        return ""
    names = [str(loop.name(entry.parameter)) for entry in loop.body.inputs if entry.input == doubtful[0]]
    return f", while input {doubtful[0]} feeds {enumerated(names)}"


def _unmapped_inputs(loop: LoopSubject) -> list[int]:
    mapped = {entry.input for entry in loop.body.inputs}
    control = loop.control_inputs if loop.is_loop else ()
    return [index for index in range(len(loop.layer.inputs)) if index not in mapped and index not in control]


@found_by
def second_unconnected_output(loop: LoopSubject) -> Hits:
    """Outputs with -1 after the first one."""
    unconnected = [entry for entry in loop.body.outputs if entry.output is None]
    for entry in unconnected[1:]:
        yield inside(unconnected[0], first=loop.name(unconnected[0].result), second=loop.name(entry.result))


@found_by
def parameter_without_entry(loop: LoopSubject) -> Hits:
    """Parameters that something reads and nothing feeds."""
    if loop.role_error is not None or loop.body.first_draft:
        return
    for parameter in loop.roles.unfed:
        readers = loop.inner.readers[parameter.id]
        if readers and not _looks_like_iteration(loop, parameter.id):
            yield inside(parameter, reader=readers[0][0], id=parameter.id)


@found_by
def unused_parameter(loop: LoopSubject) -> Hits:
    """Parameters that nothing feeds and nothing reads."""
    for parameter in loop.roles.unfed:
        if not loop.is_read(parameter.id):
            yield inside(parameter)


@found_by
def iteration_not_marked(loop: LoopSubject) -> Hits:
    """A Parameter that can only be meant for the iteration number."""
    if loop.body.first_draft or not loop.is_loop:
        return
    for parameter in loop.inner.parameters:
        readers = loop.inner.readers[parameter.id]
        if readers and _looks_like_iteration(loop, parameter.id):
            yield inside(parameter, reader=readers[0][0], id=parameter.id)


def _looks_like_iteration(loop: LoopSubject, parameter: int) -> bool:
    if not loop.is_loop or any(entry.purpose == CURRENT_ITERATION for entry in loop.body.inputs):
        return False
    if any(entry.parameter == parameter and entry.input is not None for entry in loop.body.inputs):
        return False
    declared = of_parameter(loop.inner.by_id[parameter])
    return declared.type is not None and declared.type.name in ("i32", "i64") and declared.may_be_one_element


@found_by
def iteration_type(loop: LoopSubject) -> Hits:
    """A Parameter that cannot hold the iteration number."""
    error = loop.role_error
    if error is not None:
        entry = next(one for one in loop.body.inputs if one.line == error.line and one.purpose == CURRENT_ITERATION)
        yield inside(entry, fault=str(error))


@found_by
def iteration_from_outside(loop: LoopSubject) -> Hits:
    """Entries of the iteration number that name an input."""
    for entry in loop.body.inputs:
        if loop.is_loop and entry.purpose == CURRENT_ITERATION and entry.input is not None:
            yield inside(entry, number=entry.input)


@found_by
def unknown_purpose(loop: LoopSubject) -> Hits:
    """Purposes that no reader knows."""
    for entry, purpose, inner in _purposes(loop):
        meant = CURRENT_ITERATION if isinstance(entry, InputMapping) else EXECUTION_CONDITION
        if purpose not in _PURPOSES:
            near = near_names(purpose, _PURPOSES)
            text = f" (meant is maybe '{near[0]}')" if near else ""
            yield inside(entry, layer=inner, purpose=purpose, not_one="does not exist", near=text)
        elif loop.is_loop and purpose != meant:
            side = "an output has" if isinstance(entry, InputMapping) else "an input has"
            yield inside(entry, layer=inner, purpose=purpose, not_one=side, near=f" (here it is '{meant}')")


def _purposes(loop: LoopSubject) -> Iterator[tuple[InputMapping | OutputMapping, str, LayerSite]]:
    """Yield the entries that have a purpose, with the layer of the body that they name."""
    for entry in loop.body.inputs:
        if entry.purpose:
            yield entry, entry.purpose, loop.name(entry.parameter)
    for output in loop.body.outputs:
        if output.purpose:
            yield output, output.purpose, loop.name(output.result)


@found_by
def purpose_in_tensor_iterator(loop: LoopSubject) -> Hits:
    """Purposes in a TensorIterator."""
    for entry, purpose, inner in _purposes(loop) if not loop.is_loop else ():
        if purpose in _PURPOSES:
            yield inside(entry, layer=inner, purpose=purpose)


@found_by
def parameter_mapped_twice(loop: LoopSubject) -> Hits:
    """A second entry of a Parameter."""
    first: dict[int, InputMapping] = {}
    for entry in loop.body.inputs:
        if entry.input is None:
            continue
        before = first.setdefault(entry.parameter, entry)
        if before is not entry:
            yield inside(entry, first=before.input, second=entry.input)


@found_by
def condition_missing(loop: LoopSubject) -> Hits:
    """Loops without a condition; the Result that is left over, where there is one."""
    if not loop.is_loop or loop.body.first_draft or loop.condition_result is not None:
        return
    if any(entry.purpose and entry.purpose != EXECUTION_CONDITION for entry in loop.body.outputs):
        return  # that its purpose is misspelt says more
    named = {entry.result for entry in loop.body.outputs} | {edge.from_layer for edge in loop.body.back_edges}
    left = [result for result in loop.inner.results if result.id not in named]
    boolean = [one for one in left if (found := loop.of_result(one.id).type) is None or found.name == "boolean"]
    if len(boolean) == 1:
        yield inside(boolean[0], left=f" ({loop.site(boolean[0])} is left over)")
    else:
        yield loop.hit(left="")


@found_by
def two_conditions(loop: LoopSubject) -> Hits:
    """A second entry of the condition."""
    marked = [entry for entry in loop.body.outputs if entry.purpose == EXECUTION_CONDITION]
    for entry in marked[1:] if loop.is_loop else ():
        if entry.result != marked[0].result:
            yield inside(entry, first=loop.name(marked[0].result), second=loop.name(entry.result))


@found_by
def if_parameter_without_entry(facts: IfSubject) -> Hits:
    """Parameters of a side that something reads and nothing feeds."""
    for side in facts.sides():
        fed = {entry.parameter for entry in side.body.inputs}
        unfed = [one for one in side.inner.parameters if one.id not in fed and side.is_read(one.id)]
        for parameter in unfed if len(unfed) > side.body.unread_inputs else ():
            reader = side.inner.readers[parameter.id][0][0]
            yield outside(parameter, role=side.body.role.replace("_", " "), id=parameter.id, reader=reader)


@found_by
def if_condition_as_value(facts: IfSubject) -> Hits:
    """Entries that map the condition into a side."""
    for side in facts.sides():
        for entry in side.body.inputs:
            parameter = side.inner.by_id.get(entry.parameter)
            if entry.input == 0 and parameter is not None:
                yield outside(parameter, role=side.body.role.replace("_", " "))


# Rules of slices and concatenations: axis, order, part size, and how many there are.


_IN_ORDER = (*PASSING, "Transpose")
"""Operations that leave a sequence in its order."""
_MOST_READERS = 64


def _sliced(loop: LoopSubject) -> Iterator[tuple[InputMapping, Slicing]]:
    for entry in loop.roles.sliced:
        if entry.slicing is not None:
            yield entry, entry.slicing


def _joined(loop: LoopSubject) -> Iterator[tuple[OutputMapping, Slicing]]:
    for entry in loop.body.outputs:
        if entry.slicing is not None:
            yield entry, entry.slicing


def _ends(loop: LoopSubject) -> Iterator[tuple[InputMapping | OutputMapping, Slicing, int, Declared]]:
    """Yield what is cut and what is joined: entry, slicing, layer of the body, and the whole tensor or a piece."""
    for entry, slicing in _sliced(loop):
        yield entry, slicing, entry.parameter, loop.outer(entry)
    for output, slicing in _joined(loop):
        yield output, slicing, output.result, loop.of_result(output.result)


@found_by
def negative_input_axis(loop: LoopSubject) -> Hits:
    """Axes of slices below 0."""
    return _negative_axes(loop, InputMapping)


@found_by
def negative_output_axis(loop: LoopSubject) -> Hits:
    """Axes of concatenations below 0."""
    return _negative_axes(loop, OutputMapping)


def _negative_axes(loop: LoopSubject, kind: type) -> Hits:
    for entry, slicing, _inner, tensor in _ends(loop):
        if isinstance(entry, kind) and slicing.axis < 0:
            rank = tensor.rank if tensor.rank is None or kind is InputMapping else max(tensor.rank, 1)
            instead = "the number from the front" if rank is None else f"axis {slicing.axis + rank}"
            yield inside(entry, instead=instead)


@found_by
def axis_out_of_range(loop: LoopSubject) -> Hits:
    """Axes that the tensor does not have."""
    for entry, slicing, inner, tensor in _ends(loop):
        if (rank := tensor.rank) is None:
            continue
        axes = rank if isinstance(entry, InputMapping) else max(rank, 1)
        if not -axes <= slicing.axis < axes:
            yield inside(entry, layer=loop.name(inner), rank=rank, last=max(rank - 1, 0))


@found_by
def slice_range_ignored(loop: LoopSubject) -> Hits:
    """Slices that are not of the whole axis, where the rule books part."""
    for entry, slicing in _sliced(loop):
        if slicing.stride == 0:
            continue
        start, end = whole_axis(slicing)
        # An end before the end of the axis is as expected in both books (TensorIterator-1, port_map); a start is not.
        if slicing.start != start or (loop.is_loop and slicing.end != end):
            yield inside(
                entry,
                first="last" if is_backward(slicing) else "first",
                start_whole=start,
                end_whole=end,
            )


@found_by
def stride_zero(loop: LoopSubject) -> Hits:
    """Strides of 0."""
    for entry, slicing, inner, _tensor in _ends(loop):
        if slicing.stride == 0:
            yield inside(entry, layer=loop.name(inner))


@found_by
def part_size_against_stride(loop: LoopSubject) -> Hits:
    """Part sizes that are not the length of the stride."""
    for entry, slicing, inner, _tensor in _ends(loop):
        if slicing.stride == 0 or slicing.part_size in (None, abs(slicing.stride)):
            continue
        size = abs(slicing.stride)
        yield inside(entry, layer=loop.name(inner), part=slicing.part_size or 0, size=size)


@found_by
def reverse_with_default_range(loop: LoopSubject) -> Hits:
    """Backward slices with the bounds of forward ones."""
    for entry, slicing in _sliced(loop):
        if is_backward(slicing) and (slicing.start, slicing.end) == (0, -1):
            yield inside(
                entry,
            )


@found_by
def slices_do_not_divide(loop: LoopSubject) -> Hits:
    """Axes that leave a rest."""
    for entry, slicing in _sliced(loop):
        size = loop.outer(entry).size(slicing.axis)
        if size is None or not slicing.stride or (slicing.start, slicing.end) != whole_axis(slicing):
            continue
        if size % abs(slicing.stride):
            yield inside(
                entry,
                size=size,
            )


@found_by
def slices_of_different_count(loop: LoopSubject) -> Hits:
    """Inputs of a TensorIterator whose slices do not end together."""
    if loop.is_loop:
        return
    counts = [(entry, count) for entry, _slicing in _sliced(loop) if (count := loop.slices(entry)) is not None]
    for entry, count in counts[1:]:
        first, first_count = counts[0]
        if count != first_count:
            yield inside(
                entry,
                first=loop.name(first.parameter),
                count=first_count,
                second=loop.name(entry.parameter),
                other=count,
            )


@found_by
def trip_count_beyond_slices(loop: LoopSubject) -> Hits:
    """Trip counts above the number of slices, where the condition is always true."""
    yield from _against_slices(loop, 1)


@found_by
def slices_left_over(loop: LoopSubject) -> Hits:
    """Trip counts below the number of slices, where the condition is always true."""
    yield from _against_slices(loop, -1)


def _against_slices(loop: LoopSubject, sign: int) -> Hits:
    trip = loop.trip_count
    if not loop.is_loop or trip is None or trip <= 0 or (sign > 0 and loop.body_condition is not True):
        return
    for entry, _slicing in _sliced(loop):
        slices = loop.slices(entry)
        if slices is not None and (trip - slices) * sign > 0:
            layer = loop.maker(loop.control_inputs[0])
            hit = outside(
                layer,
                layer=layer,
                trip=trip,
                parameter=loop.name(entry.parameter),
                slices=slices,
                left=slices - trip,
            )
            # One that is missing is counted wrong; more are mostly left on purpose.
            yield hit if sign > 0 or slices - trip == 1 else hit.graded(NOTE)


@found_by
def piece_size(loop: LoopSubject) -> Hits:
    """Results that do not have the size of a part along the axis of their output."""
    for entry, slicing in _joined(loop):
        declared = loop.of_result(entry.result)
        size = declared.size(slicing.axis)
        if size is None or not slicing.stride or size == abs(slicing.stride):
            continue
        fitting = [axis for axis in range(declared.rank or 0) if declared.size(axis) == abs(slicing.stride)]
        remedy = (
            f"join along axis {fitting[0]}, which is {abs(slicing.stride)} long"
            if len(fitting) == 1
            else f"unsqueeze the value before the Result, so that the axis is {abs(slicing.stride)} long"
        )
        yield inside(
            entry,
            size=size,
            part=abs(slicing.stride),
            remedy=remedy,
        )


@found_by
def order_of_input_and_output(loop: LoopSubject) -> Hits:
    """Inputs that all go one way, where an output goes the other."""
    sliced, joined = list(_sliced(loop)), list(_joined(loop))
    backward = {is_backward(slicing) for _entry, slicing in sliced}
    if len(backward) != 1:
        return
    is_back = backward.pop()
    if any(is_backward(slicing) is is_back for _output, slicing in joined):
        return
    first = sliced[0][0]
    for output, _slicing in joined:
        orders = ("backward", "forward") if is_back else ("forward", "backward")
        hit = inside(
            output if is_back else first,
            parameter=loop.name(first.parameter),
            result=loop.name(output.result),
            input_order=orders[0],
            output_order=orders[1],
        )
        yield hit if _meets_another_order(loop, output) else hit.graded(NOTE)


def _meets_another_order(loop: LoopSubject, output: OutputMapping) -> bool:
    """True if a reader joins or combines an output with what has the order of the sequence: another loop's, or it."""
    if output.output is None:
        return False
    sequences = {source.layer for entry, _slicing in _sliced(loop) if (source := loop.source(entry.input))}
    waiting, seen = [(loop.layer.id, output.output)], set[tuple[int, int]]()
    while waiting and len(seen) < _MOST_READERS:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        for reader, index in loop.graph.readers.get(place[0], ()):
            given = loop.graph.sources[reader.id]
            if given[index] != Source(*place):
                continue
            if reader.type in _IN_ORDER:
                waiting.append((reader.id, 0))
            elif reader.type == "Concat" or reader.type in ELEMENTWISE:
                others = [one for one in given if one is not None and one != given[index]]
                if any(_is_a_sequence(loop, one, sequences) for one in others):
                    return True
    return False


def _is_a_sequence(loop: LoopSubject, source: Source, sequences: set[int]) -> bool:
    layer = loop.graph.layer_of(source)
    for _ in range(_MOST_READERS):
        if layer.id in sequences or (layer.bodies and layer.id != loop.layer.id):
            return True
        layer = loop.graph.maker(layer) if layer.type in _IN_ORDER else NO_LAYER
    return False


@found_by
def output_from_old_state(loop: LoopSubject) -> Hits:
    """Concatenated outputs of what was carried in."""
    for entry, _slicing in _joined(loop):
        source = loop.given_to(entry.result)
        origin = loop.origin(source)
        if source is None or origin is None or origin.layer not in loop.roles.merged_from:
            continue
        new = loop.given_to(loop.roles.merged_from[origin.layer])
        if new is None or new.layer == origin.layer:
            continue
        layer = loop.inner.by_id[source.layer if source.layer != origin.layer else entry.result]
        yield inside(
            layer,
            result=loop.name(entry.result),
            parameter=loop.name(origin.layer),
            next=loop.inner.by_id[new.layer],
        )


@found_by
def scan_range_of_loop(loop: LoopSubject) -> Hits:
    """Concatenated outputs that are not plain: start and end of an output count for nothing."""
    refused = loop.is_loop and any(not loop.is_read(entry.parameter) for entry in loop.roles.fed)
    for entry, slicing in _joined(loop):
        if (slicing.start, slicing.end, slicing.stride) == (0, -1, 1):
            continue
        is_whole = (slicing.start, slicing.end) == ((0, -1) if slicing.stride > 0 else (-1, 0))
        is_counting = not loop.is_loop and not loop.roles.sliced  # they say how often it runs
        if is_counting or (not loop.is_loop and is_whole):
            continue
        hit = inside(
            entry,
            kind=loop.layer.type,
            official="0, -1, 1" if loop.is_loop else "0, -1, 1 and -1, 0, -1",
        )
        yield hit if refused else hit.graded(NOTE if is_whole else WARNING)


@found_by
def empty_slices(loop: LoopSubject) -> Hits:
    """Sliced axes of size 0."""
    for entry, slicing in _sliced(loop):
        if not loop.is_loop and loop.outer(entry).size(slicing.axis) == 0:
            yield inside(entry)


@found_by
def slice_range_outside(loop: LoopSubject) -> Hits:
    """Bounds beyond the axis, or in the wrong order; what other rules say of a range is not said again."""
    for entry, slicing in _sliced(loop):
        size = loop.outer(entry).size(slicing.axis)
        if not size or not slicing.stride or loop.slices(entry) is not None:
            continue
        backward = is_backward(slicing)
        if (slicing.start, slicing.end) in (whole_axis(slicing), (0, -1)) and (not backward or slicing.start):
            continue
        begin, end = (one if one >= 0 else size + 1 + one for one in (slicing.start, slicing.end))
        low, high = (end, begin) if backward else (begin, end)
        if not 0 <= low < high <= size and (slicing.start, slicing.end) != (0, -1):
            yield inside(
                entry,
                size=size,
            )


@found_by
def two_iteration_counts(loop: LoopSubject) -> Hits:
    """Find bounds for which the inferred output size differs from the number of slices."""
    if loop.is_loop or not any(_joined(loop)):
        return
    for entry, slicing in _sliced(loop):
        count, size = loop.slices(entry), loop.outer(entry).size(slicing.axis)
        if count is None or size is None:
            continue
        begin, end = (one if one >= 0 else size + one for one in (slicing.start, slicing.end))
        other = (abs(end - begin) + 1) // (slicing.part_size or 1)
        if other != count:
            yield inside(
                entry,
                count=count,
                other=other,
            )


@found_by
def trip_count_of_another_axis(loop: LoopSubject) -> Hits:
    """Trip counts that are read off the shape of what is sliced, at another axis."""
    graph = loop.graph
    gather = graph.layer_of(loop.source(loop.control_inputs[0]))
    for _ in range(7):
        gather = graph.maker(gather) if gather.type in PASSING else gather
    shape, which = graph.maker(gather), known_value(loop.model, graph, graph.source(gather.id, 1))
    if gather.type != "Gather" or len(gather.inputs) != 3 or shape.type != "ShapeOf":
        return
    if which is None or which.size != 1 or which.dtype.kind not in "iu":
        return
    of = graph.source(shape.id)
    for entry, slicing in _sliced(loop):
        rank, counted = loop.outer(entry).rank, int(which.item())
        if rank is None or of is None or loop.source(entry.input) != of or (slicing.axis - counted) % rank == 0:
            continue
        yield outside(
            gather,
            counted=counted % rank,
            tensor=graph.layer_of(of),
            parameter=loop.name(entry.parameter),
            axis=slicing.axis,
        )
