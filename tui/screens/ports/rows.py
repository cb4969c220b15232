"""The entries of a port map as they are drawn: what stands outside, the arrow with its role, what stands in the body.

A pure function of the loop's view. Roles, slices and sentences are those of stepper.debug; here they become words.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final

from msgspec import field

from stepper import element_types
from stepper.debug.inspection.views import BackEdgeView, InputView, LoopView, OutputView, ScanView, ValueView
from stepper.element_types import Array
from stepper.engine.loops import OutputRole, Role, in_axis_order, is_backward
from stepper.ir.model import Layer
from stepper.records import Record
from stepper.tensors.number_text import fitted
from stepper.tensors.statistics import number_of
from stepper.wording import counted
from tui.paint.names import carried_name, layer_name
from tui.paint.rows import Row, printable
from tui.paint.slices import slice_words
from tui.screens.main.frames import COUNTED, verdict_words
from tui.screens.ports.axis_picture import AxisPicture, picture_of_scan, picture_of_slice
from tui.screens.timeline.bar import none_ran
from tui.theme import GLYPHS


class PortSide(Enum):
    """Which way an entry leads."""

    IN = auto()
    OUT = auto()


class End(Record):
    """One end of an arrow: what it is called, and its type or another short word."""

    name: str
    type: str = ""


class PortArrow(Record, eq=False):
    """One arrow of the picture. `words` say the same at different lengths, the longest first; `below` stands under the
    outer end: text, or the picture of the axis.

    `layer` is what the value in the body is (to open it), `sentence` the whole of it with the rule, `entry` the XML.
    """

    side: PortSide
    glyph: str
    role: str
    words: tuple[str, ...]
    outer: End
    inner: End
    sentence: str
    entry: str
    line: int
    below: Row | AxisPicture = field(default_factory=list)
    layer: Layer | None = None
    is_carried: bool = False


Pair = tuple[PortArrow | None, PortArrow | None]
"""Entries side by side: an entry that leads into the body, and one that leads out of it."""

_WORDS: Final = {
    Role.SLICED: "slice",
    Role.MERGED: "carried",
    Role.INVARIANT: "same",
    Role.CURRENT_ITERATION: "count",
    Role.NOT_CONNECTED: "nothing",
    Role.NOT_USED: "no effect",
}


Course = Callable[[int], Row]
"""The last iterations of what a back edge carries, by the id of its Parameter, as a picture of one line."""


def _no_course(_parameter: int) -> Row:
    return []


def port_pairs(loop: LoopView, course: Course = _no_course) -> list[Pair]:
    """Return all entries: each carried value with its back edge, then the others, slices and pieces first."""
    edges = {edge.parameter.layer.id: edge for edge in loop.back_edges if edge.counts and edge.parameter.layer}
    first: list[Pair] = []
    left: list[PortArrow] = []
    for entry in sorted(loop.inputs, key=_input_order):
        port = _input(loop, entry)
        edge = edges.pop(entry.inner.layer.id, None) if entry.role is Role.MERGED and entry.inner.layer else None
        if edge is None:
            left.append(port)
        else:
            first.append((port, _edge(loop, edge, course)))
    left += _controls(loop)
    right = [_output(loop, entry) for entry in sorted(loop.outputs, key=_output_order)]
    right += [_edge(loop, edge, course) for edge in loop.back_edges if not edge.counts]
    longest = max(len(left), len(right))
    return first + [
        (left[at] if at < len(left) else None, right[at] if at < len(right) else None) for at in range(longest)
    ]


def _input_order(entry: InputView) -> int:
    order = (Role.MERGED, Role.SLICED, Role.CURRENT_ITERATION, Role.INVARIANT)
    return order.index(entry.role) if entry.role in order else len(order)


def _output_order(entry: OutputView) -> int:
    return 0 if entry.role.is_concatenated else 1 if entry.role is OutputRole.LAST_VALUE else 2


# --- what comes in --------------------------------------------------------------------------------------------------


def _input(loop: LoopView, entry: InputView) -> PortArrow:
    role = entry.role
    glyph, words, below = _input_words(loop, entry, role)
    outer = _outer(entry, role)
    return PortArrow(
        side=PortSide.IN,
        glyph=glyph,
        role=_WORDS[role],
        words=words,
        outer=outer,
        inner=End(_inner_name(entry.inner), _type(entry.inner)),
        sentence=entry.why,
        entry=_input_entry(entry),
        line=entry.line,
        below=below,
        layer=entry.inner.layer,
        is_carried=role is Role.MERGED,
    )


def _outer(entry: InputView, role: Role) -> End:
    if role is Role.CURRENT_ITERATION:
        return End("iteration number")
    if entry.outer is None or entry.outer.layer is None:
        return End("nothing")
    return End(layer_name(entry.outer.layer), _type(entry.outer))


def _input_words(loop: LoopView, entry: InputView, role: Role) -> tuple[str, tuple[str, ...], Row | AxisPicture]:
    iteration = _iteration(loop)
    if role is Role.SLICED:
        assert entry.slicing is not None, "a sliced input has a slicing"
        arrow = "←" if is_backward(entry.slicing) else "→"
        if entry.slice is None:
            return arrow, ("no slice is left for this iteration", "no slice left"), []
        return arrow, slice_words(entry.slicing, entry.slice), picture_of_slice(entry.slice)
    if role is Role.MERGED:
        edge = next((edge for edge in loop.back_edges if edge.counts and _same(edge, entry)), None)
        result = "its Result" if edge is None else _result_name(edge.result)
        if iteration == 0:
            return GLYPHS["back"], ("now: the initial value", "initial value"), [("read now", "accent")]
        return GLYPHS["back"], (f"now: {result}@{iteration - 1}",), [("iteration 0 only", "dim")]
    if role is Role.CURRENT_ITERATION:
        return "#", (f"the number {iteration}",), []
    if role is Role.INVARIANT:
        return "=", ("all of it, each time", "all of it"), []
    if role is Role.NOT_CONNECTED:
        return " ", ("nothing feeds it: zeros", "zeros"), []
    return " ", ("another entry counts",), []


def _same(edge: BackEdgeView, entry: InputView) -> bool:
    return edge.parameter.layer is not None and edge.parameter.layer == entry.inner.layer


def _input_entry(entry: InputView) -> str:
    if not entry.line:
        return ""
    port = -1 if entry.input is None else entry.input
    layer = entry.inner.layer.id if entry.inner.layer else "?"
    return f'<input external_port_id="{port}" internal_layer_id="{layer}"{_slicing(entry)}/>'


def _slicing(entry: InputView) -> str:
    found = entry.slicing
    if found is None:
        return ""
    part = "" if found.part_size is None else f' part_size="{found.part_size}"'
    return f' axis="{found.axis}" start="{found.start}" end="{found.end}" stride="{found.stride}"{part}'


def _controls(loop: LoopView) -> list[PortArrow]:
    """Return the limit of a loop from outside: its trip count, or the number of slices."""
    trip = loop.trip
    is_endless = trip.maximum is None or trip.maximum > COUNTED
    limit = "without a limit" if is_endless else f"at most {counted(trip.maximum or 0, 'iteration')}"
    if trip.total is not None and trip.total == trip.maximum:
        limit = counted(trip.total, "iteration")
    words = (limit, limit.replace(" iterations", ""))
    outer = End("trip count", "")
    below: Row = [(printable(trip.origin), "dim")]
    done = f"{trip.executed} done"
    return [
        PortArrow(
            PortSide.IN, "≤", "limit", words, outer, End("the loop", done), trip.sentence, "", loop.layer.line, below
        )
    ]


# --- what goes out --------------------------------------------------------------------------------------------------


def _edge(loop: LoopView, edge: BackEdgeView, course: Course) -> PortArrow:
    iteration = _iteration(loop)
    layer = edge.parameter.layer
    name = carried_name(layer) if layer is not None else "?"
    follows = edge.comes_next is not None or not _is_over(loop, iteration)
    if not edge.counts:
        words: tuple[str, ...] = ("has no effect",)
    elif not follows:
        words = ("no iteration follows", "none follows")
    else:
        words = (f"enters {name} at {iteration + 1}", f"at {iteration + 1}")
    ends = next((one for one in loop.layer.bodies[0].back_edges if one.line == edge.line), None)
    ids = "" if ends is None else f'from-layer="{ends.from_layer}" to-layer="{ends.to_layer}"'
    return PortArrow(
        side=PortSide.OUT,
        glyph=GLYPHS["back"],
        role="carried",
        words=words,
        outer=End(f"{name}@{iteration + 1}", "" if edge.comes_next is None else _array_type(edge.comes_next))
        if follows
        else End(f"no iteration {iteration + 1}"),
        inner=End(_result_name(edge.result), _type(edge.result)),
        sentence=edge.why,
        entry=f"<edge {ids}/>",
        line=edge.line,
        below=_edge_below(edge, [] if layer is None else course(layer.id)),
        layer=edge.result.layer,
        is_carried=edge.counts,
    )


def _edge_below(edge: BackEdgeView, course: Row) -> Row:
    row: Row = [*course, (" ", "")] if course else []
    value = edge.goes_out
    if value is None:
        return [*row, ("not yet", "dim")]
    word = "" if value.size == 1 else "rms "
    row.append((f"{word}{fitted(number_of(value))}", "dim"))
    if edge.change is not None:
        row.append((f"  change {fitted(edge.change)}", "dim"))
    return row


def _output(loop: LoopView, entry: OutputView) -> PortArrow:
    iteration = _iteration(loop)
    scan = (
        next((scan for scan in loop.scans if scan.output == entry.output), None) if entry.role.is_concatenated else None
    )
    glyph, role = "▪", "last"
    words: tuple[str, ...] = ("value of the last iteration", "the last one")
    below: Row | AxisPicture = _written(loop)
    outer = End(_output_name(loop, entry.output), "" if entry.outer is None else _type(entry.outer))
    if scan is not None:
        glyph, role, words = GLYPHS["scan"], "piece", _scan_words(loop, scan, iteration)
        outer = End(outer.name, _scan_type(scan, entry))
        below = [] if none_ran(loop) else picture_of_scan(scan.slicing, scan.pieces, _total(loop), now=iteration)
    elif entry.role.is_condition:
        glyph, role, words, below = "?", "condition", _condition_words(loop), []
        outer = End("next iteration", "") if entry.output is None else outer
    elif entry.output is None:
        glyph, role, words, below = " ", "nothing", ("leads to no output",), []
    port = -1 if entry.output is None else entry.output
    return PortArrow(
        side=PortSide.OUT,
        glyph=glyph,
        role=role,
        words=words,
        outer=outer,
        inner=End(_result_name(entry.inner), _type(entry.inner)),
        sentence=entry.why,
        entry=f'<output external_port_id="{port}" internal_layer_id="{_result_id(loop, entry)}"/>',
        line=entry.line,
        below=below,
        layer=entry.inner.layer,
    )


def _scan_words(loop: LoopView, scan: ScanView, iteration: int) -> tuple[str, ...]:
    """Return where the piece of this iteration lies in the output."""
    if none_ran(loop):
        return "no piece: no iteration ran", "no piece"
    total = _total(loop)
    will = "is" if scan.pieces > iteration else "will be"
    backward = is_backward(scan.slicing)
    if total is None and backward:
        return f"{will} in front of the others, axis {scan.axis}", "in front of the others", "in front"
    place = in_axis_order(range(iteration + 1 if total is None else total), scan.slicing).index(iteration)
    if backward:
        return f"{will} place {place}, axis {scan.axis}, backward", f"place {place}, backward", f"place {place}"
    return f"{will} place {place}, axis {scan.axis}", f"place {place}, axis {scan.axis}", f"place {place}"


def _scan_type(scan: ScanView, entry: OutputView) -> str:
    """Return the shape now, along the axis with the size to come."""
    kind = element_types.name_of(scan.piece(0).dtype) if scan.pieces else ""
    if scan.shape is None:
        return "no piece yet" if not scan.pieces else "cannot be joined"
    sizes = [str(size) for size in scan.shape]
    final = scan.final_shape
    if final is not None and 0 <= scan.axis < len(sizes) and final[scan.axis] > scan.shape[scan.axis]:
        sizes[scan.axis] += f" of {final[scan.axis]}"
    return f"{kind}[{','.join(sizes)}]"


def _condition_words(loop: LoopView) -> tuple[str, ...]:
    condition = loop.condition
    if condition is None or loop.trip.ended is not None:
        return (f"ended: {loop.trip.ended}", str(loop.trip.ended)) if loop.trip.ended is not None else ("",)
    if condition.upcoming is None:
        return ("not computed yet",)
    return verdict_words(loop, condition)


def _written(loop: LoopView) -> Row:
    total = _total(loop)
    if loop.trip.ended is not None:
        return [("written", "dim")]
    return [(f"after iteration {total - 1}" if total else "when the loop ends", "dim")]


# --- words for all --------------------------------------------------------------------------------------------------


def _iteration(loop: LoopView) -> int:
    """Return the iteration that is spoken of: before the first, that."""
    return loop.level.iteration or 0


def _total(loop: LoopView) -> int | None:
    return loop.trip.total if loop.trip.total is not None and loop.trip.total <= COUNTED else None


def _is_over(loop: LoopView, iteration: int) -> bool:
    return loop.trip.ended is not None or _total(loop) == iteration + 1


def _type(value: ValueView) -> str:
    if value.array is not None:
        return _array_type(value.array)
    if value.layer is None or value.output >= len(value.layer.outputs):
        return ""
    port = value.layer.outputs[value.output]
    kind = "" if port.element_type is None else str(port.element_type)
    return f"{kind}[{','.join('?' if size < 0 else str(size) for size in port.dims)}]"


def _array_type(array: Array) -> str:
    return f"{element_types.name_of(array.dtype)}[{','.join(map(str, array.shape))}]"


def _inner_name(value: ValueView) -> str:
    return carried_name(value.layer) if value.layer is not None else printable(value.name)


def _result_name(value: ValueView) -> str:
    """A Result is known by what computes it where a converter only numbered it."""
    name = printable(value.name)
    return layer_name(value.layer) if value.layer is not None and name.startswith("Result") else name


def _output_name(loop: LoopView, output: int | None) -> str:
    if output is None:
        return "nothing"
    names = loop.layer.outputs[output].names if output < len(loop.layer.outputs) else ()
    return printable(names[0]) if names else f"output {output}"


def _result_id(loop: LoopView, entry: OutputView) -> str:
    return next((str(one.result) for one in loop.layer.bodies[0].outputs if one.line == entry.line), "?")
