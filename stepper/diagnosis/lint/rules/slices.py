"""Rules of slices and concatenations: axis, order, part size, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import ELEMENTWISE, PASSING, Declared, LoopSubject, known_value
from stepper.diagnosis.rule import LOOP, Hits, found_by, inside, outside
from stepper.engine.loops import is_backward, whole_axis
from stepper.ir.model import InputMapping, OutputMapping, Slicing, Source

_IN_ORDER: Final = (*PASSING, "Transpose")
"""Operations that leave a sequence in its order."""
_MOST_READERS: Final = 64


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


@found_by(
    "S201",
    "negative-input-axis",
    LOOP,
    ERROR,
    says="the slices of {parameter} are along axis {axis}; the axis of an input is counted from the front",
    means="OpenVINO cannot read the file; here it is counted from the end",
    do="write {instead}",
)
def negative_input_axis(loop: LoopSubject) -> Hits:
    """Axes of slices below 0."""
    for entry, slicing in _sliced(loop):
        if slicing.axis < 0:
            rank = loop.outer(entry).rank
            instead = "the number from the front" if rank is None else f"axis {slicing.axis + rank}"
            yield inside(entry, axis=slicing.axis, instead=instead)


@found_by(
    "S202",
    "negative-output-axis",
    LOOP,
    ERROR,
    says="the pieces of {result} are joined along axis {axis}; OpenVINO's CPU plugin does not count from the end",
    means="it fails, or gives the last piece in place of all",
    do="write {instead}",
    source="OpenVINO 2026.4.1, measured",
)
def negative_output_axis(loop: LoopSubject) -> Hits:
    """Axes of concatenations below 0."""
    for entry, slicing in _joined(loop):
        if slicing.axis < 0:
            rank = loop.of_result(entry.result).rank
            instead = "the number from the front" if rank is None else f"axis {slicing.axis + max(rank, 1)}"
            yield inside(entry, axis=slicing.axis, instead=instead)


@found_by(
    "S203",
    "axis-out-of-range",
    LOOP,
    ERROR,
    says="{layer} is cut or joined along axis {axis}, and the tensor has {rank} dimensions",
    means="the model cannot run",
    do="write an axis from 0 to {last}",
)
def axis_out_of_range(loop: LoopSubject) -> Hits:
    """Axes that the tensor does not have."""
    for entry, slicing, inner, tensor in _ends(loop):
        if (rank := tensor.rank) is None:
            continue
        axes = rank if isinstance(entry, InputMapping) else max(rank, 1)
        if not -axes <= slicing.axis < axes:
            yield inside(entry, layer=loop.name(inner), axis=slicing.axis, rank=rank, last=max(rank - 1, 0))


@found_by(
    "S204",
    "slice-range-ignored",
    LOOP,
    WARNING,
    says="the slices of {parameter} have start {start} and end {end}: OpenVINO takes them for the count alone, "
    "and begins with the {first} element",
    means="by the specification the loop begins at the start; OpenVINO gives other elements",
    do="cut the tensor with StridedSlice or Slice before the loop, and write start {start_whole}, end {end_whole}",
    source="OpenVINO 2026.4.1, measured",
)
def slice_range_ignored(loop: LoopSubject) -> Hits:
    """Slices that are not of the whole axis, where the rule books part."""
    for entry, slicing in _sliced(loop):
        if slicing.stride == 0:
            continue
        start, end = whole_axis(slicing)
        # An end before the end of the axis is as expected in both books (semantics 1.4); a start is not.
        if slicing.start != start or (loop.is_loop and slicing.end != end):
            yield inside(
                entry,
                start=slicing.start,
                end=slicing.end,
                first="last" if is_backward(slicing) else "first",
                start_whole=start,
                end_whole=end,
            )


@found_by(
    "S205",
    "stride-zero",
    LOOP,
    ERROR,
    says="the stride of {layer} is 0",
    means="the loop would never advance; OpenVINO dies or refuses the file",
    do="write 1, or -1 to go backward",
)
def stride_zero(loop: LoopSubject) -> Hits:
    """Strides of 0."""
    for entry, slicing, inner, _tensor in _ends(loop):
        if slicing.stride == 0:
            yield inside(entry, layer=loop.name(inner))


@found_by(
    "S206",
    "part-size-against-stride",
    LOOP,
    ERROR,
    says="{layer} has stride {stride} and part_size {part}: they must agree",
    means="OpenVINO counts the iterations in two ways, and refuses the file or reads other elements",
    do="write part_size {size}, or a stride of {part}",
)
def part_size_against_stride(loop: LoopSubject) -> Hits:
    """Part sizes that are not the length of the stride."""
    for entry, slicing, inner, _tensor in _ends(loop):
        if slicing.stride == 0 or slicing.part_size in (None, abs(slicing.stride)):
            continue
        size = abs(slicing.stride)
        yield inside(entry, layer=loop.name(inner), stride=slicing.stride, part=slicing.part_size or 0, size=size)


@found_by(
    "S207",
    "reverse-with-default-range",
    LOOP,
    ERROR,
    says="the stride of {parameter} is {stride}, with start {start} and end {end}, which is no backward range",
    means="the model cannot run: backward over everything is start -1, end 0",
    do="write start -1 and end 0",
)
def reverse_with_default_range(loop: LoopSubject) -> Hits:
    """Backward slices with the bounds of forward ones."""
    for entry, slicing in _sliced(loop):
        if is_backward(slicing) and (slicing.start, slicing.end) == (0, -1):
            yield inside(
                entry,
                stride=slicing.stride,
                start=slicing.start,
                end=slicing.end,
            )


@found_by(
    "S208",
    "slices-do-not-divide",
    LOOP,
    ERROR,
    says="axis {axis} of {parameter} is {size} long, which the stride {stride} does not divide",
    means="the model cannot run",
    do="pad or cut the tensor before the loop, or change the stride",
)
def slices_do_not_divide(loop: LoopSubject) -> Hits:
    """Axes that leave a rest."""
    for entry, slicing in _sliced(loop):
        size = loop.outer(entry).size(slicing.axis)
        if size is None or not slicing.stride or (slicing.start, slicing.end) != whole_axis(slicing):
            continue
        if size % abs(slicing.stride):
            yield inside(
                entry,
                axis=slicing.axis,
                size=size,
                stride=slicing.stride,
            )


@found_by(
    "S209",
    "slices-of-different-count",
    LOOP,
    ERROR,
    says="{first} has {count} slices, {second} has {other}: all inputs of a TensorIterator must have as many",
    means="the model cannot run",
    do="give both the same length along their axis",
)
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


@found_by(
    "S210",
    "trip-count-beyond-slices",
    LOOP,
    ERROR,
    says="the trip count {layer} is {trip}, and {parameter} has {slices} slices: iteration {slices} has none",
    means="the run fails there, unless the condition ends the loop before",
    do="give a trip count of {slices}",
)
def trip_count_beyond_slices(loop: LoopSubject) -> Hits:
    """Trip counts above the number of slices, where the condition is always true."""
    yield from _against_slices(loop, 1)


@found_by(
    "S211",
    "slices-left-over",
    LOOP,
    WARNING,
    says="the trip count {layer} is {trip}, and {parameter} has {slices} slices: the last {left} are never read",
    means="the loop ends before its input does: one iteration too few, if the trip count was meant to cover it",
    do="give a trip count of {slices}, or cut the input before the loop",
)
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


@found_by(
    "S212",
    "piece-size",
    LOOP,
    ERROR,
    says="{result} is {size} long along axis {axis}, and the pieces are joined as parts of {part}",
    means="OpenVINO fails after the first iteration; the axis is most likely another one",
    do="{remedy}",
)
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
            axis=slicing.axis,
            part=abs(slicing.stride),
            remedy=remedy,
        )


@found_by(
    "S213",
    "order-of-input-and-output",
    LOOP,
    WARNING,
    says="{parameter} is read {input_order} and {result} is joined {output_order}: the first element of the output "
    "belongs to the last of the input",
    means="the output is in the opposite order of the input; a note where nothing shows which order its readers "
    "expect, a warning where they join it with what has the order of the input",
    do="give both the same stride, start and end, unless the opposite order is meant",
)
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
    sequences = {
        source.layer
        for entry, _slicing in _sliced(loop)
        if entry.input is not None and (source := loop.source(entry.input))
    }
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
    for _ in range(_MOST_READERS):
        layer = loop.graph.by_id[source.layer]
        if layer.id in sequences or (layer.bodies and layer.id != loop.layer.id):
            return True
        before = loop.graph.sources[layer.id][0] if layer.type in _IN_ORDER else None
        if before is None:
            return False
        source = before
    return False


@found_by(
    "S214",
    "output-from-old-state",
    LOOP,
    NOTE,
    says="the pieces of {result} are {parameter}, the state from before the iteration; the new one is {next}",
    means="piece k is the state after iteration k - 1, and the state after the last iteration is not among them",
    do="if the output is late by one, let {layer} read {next}",
    source="specification/Loop-5, concatenated outputs",
)
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


@found_by(
    "S215",
    "scan-range-of-loop",
    LOOP,
    ERROR,
    says="the output {result} of a {kind} has start {start}, end {end}, stride {stride}: only {official} are official",
    means="start and end of an output count for nothing; in a Loop with an input that the body does not read "
    "OpenVINO (EliminateLoopInputsOutputs) refuses to compile it, and the reverse order alone is a note",
    do="give 0, -1 and 1; reverse the output after the loop, and leave out inputs that the body does not read",
    source="OpenVINO 2026.4.1, measured",
)
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
            start=slicing.start,
            end=slicing.end,
            stride=slicing.stride,
        )
        yield hit if refused else hit.graded(NOTE if is_whole else WARNING)


@found_by(
    "S216",
    "empty-slices",
    LOOP,
    ERROR,
    says="axis {axis} of {parameter} is 0 long: there is nothing to slice",
    means="OpenVINO refuses a TensorIterator without iterations; here it has none",
    do="give the axis a length, or use a Loop",
)
def empty_slices(loop: LoopSubject) -> Hits:
    """Sliced axes of size 0."""
    for entry, slicing in _sliced(loop):
        if not loop.is_loop and loop.outer(entry).size(slicing.axis) == 0:
            yield inside(entry, axis=slicing.axis)


@found_by(
    "S217",
    "slice-range-outside",
    LOOP,
    ERROR,
    says="the slices of {parameter} go from {start} to {end} with stride {stride}, and the axis is {size} long: "
    "there is no such range",
    means="the model cannot run",
    do="write start 0 and end -1, or start -1, end 0 and stride -1",
)
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
                start=slicing.start,
                end=slicing.end,
                stride=slicing.stride,
                size=size,
            )


@found_by(
    "S218",
    "two-iteration-counts",
    LOOP,
    ERROR,
    says="{parameter} has {count} slices, and OpenVINO counts {other} iterations for the outputs: it reads start "
    "{start} and end {end} in two ways",
    means="OpenVINO refuses to compile the model: there are at least two different iterations numbers",
    do="count the end from the end (-1 is all), or cut the tensor before the loop",
    source="OpenVINO 2026.4.1, measured",
)
def two_iteration_counts(loop: LoopSubject) -> Hits:
    """Bounds of which the size of an output is inferred otherwise than the number of slices."""
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
                start=slicing.start,
                end=slicing.end,
            )


@found_by(
    "S219",
    "trip-count-of-another-axis",
    LOOP,
    WARNING,
    says="the trip count {layer} is the size of axis {counted} of {tensor}, and {parameter} is cut along {axis}",
    means="the loop runs as often as another dimension is long: too often, or not to the end",
    do="take the size of axis {axis}",
)
def trip_count_of_another_axis(loop: LoopSubject) -> Hits:
    """Trip counts that are read off the shape of what is sliced, at another axis."""
    index = loop.control_inputs[0]
    source = None if index is None else loop.source(index)
    gather = None
    for _ in range(8):
        layer = None if source is None else loop.graph.by_id[source.layer]
        if layer is not None and layer.type in PASSING and loop.graph.sources[layer.id]:
            source = loop.graph.sources[layer.id][0]
            continue
        gather = layer if layer is not None and layer.type == "Gather" and len(layer.inputs) == 3 else None
        break
    given = None if gather is None else loop.graph.sources[gather.id]
    if gather is None or given is None or given[0] is None:
        return
    shape, which = loop.graph.by_id[given[0].layer], known_value(loop.model, loop.graph, given[1])
    if shape.type != "ShapeOf" or which is None or which.size != 1 or which.dtype.kind not in "iu":
        return
    of = loop.graph.sources[shape.id][0]
    for entry, slicing in _sliced(loop):
        rank = loop.outer(entry).rank
        if entry.input is None or loop.source(entry.input) != of:
            continue
        if rank is None or of is None or slicing.axis % rank == int(which.reshape(-1)[0]) % rank:
            continue
        yield outside(
            gather,
            counted=int(which.reshape(-1)[0]) % rank,
            tensor=loop.graph.by_id[of.layer],
            parameter=loop.name(entry.parameter),
            axis=slicing.axis,
        )
