"""The listing of a model, which clients show as its source: an operation a line, bodies indented under their loop.

    passes = Loop(most_passes, true, values, most_passes):  # L70
        order = Parameter()  # first values, then order_next; f32[?]; L100
        pairs_left = Subtract(pairs, passes_done)  # i64[]; L119
        order <- order_next  # back edge; L396
        again if keep_going

Names are written as the debugger takes them; small constants stand as their values. Where a run stands is the line of
the operation that ran last.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from msgspec import Struct

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import FrameView, LevelView, frame_views
from stepper.engine.loops import Role, Roles, roles_of, without_effect
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program
from stepper.errors import OutputError, UsageError
from stepper.files.file_kinds import FileKind
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.integrations.dap.messages import ShownFrame, ShownSource, SourceArguments
from stepper.ir.model import Body, InputMapping, Layer, Model, Source
from stepper.query.address_resolution import SIDE_NAMES, layer_address, unique_name
from stepper.query.known_names import declared_form
from stepper.records import Record
from stepper.wording import excerpt, printable

_INDENT = "    "
_DEEPEST = 24
"""Levels that are indented; deeper ones stand below them."""
_LONGEST_CONSTANT = 20


class ListedPlace(Record, eq=False):
    """A line at which a run can stop: the layer there, and the index of its operation (None: it is no operation)."""

    program: Program
    layer: Layer
    index: int | None


class _GraphLines(Struct, eq=False):
    """Hold the lines of one graph.

    `head` is the line of the loop or side around it; `first` and `last` are its own lines. In a loop's body `last`
    comes after the operations and marks the end of an iteration.
    """

    head: int
    first: int = 0
    last: int = 0


class ModelListing:
    """The listing of a compiled model; lines are counted from 1."""

    def __init__(self, compiled: CompiledModel) -> None:
        self._compiled = compiled
        self.lines: list[str] = []
        self._places: dict[int, ListedPlace] = {}
        self._lines: dict[tuple[int, int], int] = {}
        self._graphs: dict[int, _GraphLines] = {}
        model = compiled.model
        self._add(
            0, f"# {excerpt(model.path.name)}, listed by stepper: an operation a line, where the run stops after it."
        )
        self._write()

    @property
    def text(self) -> str:
        """Return all lines as one text."""
        return "\n".join([*self.lines, ""])

    def place(self, line: int) -> ListedPlace | None:
        """Return the place of a line; None for one at which no run can stop."""
        return self._places.get(line)

    def nearest(self, line: int) -> int | None:
        """Return the first line from this one on at which a run can stop; None where there is none."""
        wanted = range(max(line, 1), len(self.lines) + 1)
        return next((number for number in wanted if number in self._places), None)

    def standing(self, line: int) -> int:
        """Return where a run stands that stops at a line: at all that begins, or ends, an iteration it is the same."""
        place = self._places[line]
        if place.index is not None:
            return line
        is_closed = place.layer.type == "Result"
        return self.line_of(place.program, 0 if is_closed else -1, closed=is_closed)

    def line_of_xml(self, line: int) -> int:
        """Return the line of the layer that a line of the .xml is in, or else of the first listed layer after it."""
        layers = (layer for _path, graph in self._compiled.model.graphs() for layer in graph.layers)
        begins = max((one.line for one in layers if one.line <= line), default=0)
        after = ((place.layer.line, at) for at, place in self._places.items() if place.layer.line >= begins)
        return min(after, default=(0, len(self.lines) + 1))[1]

    def between(self, first: int, last: int) -> list[int]:
        """Return the lines from `first` to `last` at which a run can stand when it has stopped."""
        wanted = range(max(first, 1), min(last, len(self.lines)) + 1)
        return [line for line in wanted if line in self._places and self.standing(line) == line]

    def address(self, place: ListedPlace) -> str:
        """Return how the debugger calls the layer of a place, wherever a run stands."""
        return str(layer_address(place.layer, place.program, self._compiled))

    def line_of(self, program: Program, moment: int, *, closed: bool) -> int:
        """Return the line of a frame: the line of the operation `moment` (-1: before all).

        `closed`: its iteration is over, or the first one has not begun yet.
        """
        lines = self._graphs[id(program)]
        if moment < 0:
            return lines.head if closed else lines.first
        return lines.last if closed else self._lines[id(program), moment]

    def lines_of(self, program: Program) -> tuple[int, int | None]:
        """Return the lines of what is around a graph, and of its first operation; None where it has none."""
        return self._graphs[id(program)].head, self._lines.get((id(program), 0))

    # --- writing -------------------------------------------------------------------------------------------------

    def _write(self) -> None:
        """Write all graphs, from a work list: no depth of nesting can overflow."""
        waiting = [self._graph(self._compiled.main, 0, 1, {})]
        while waiting:
            inner = next(waiting[-1], None)
            if inner is None:
                waiting.pop()
            else:
                waiting.append(inner)

    def _graph(self, program: Program, depth: int, head: int, comments: Mapping[int, str]) -> Iterator[Any]:
        """Write a graph; yield what writes the graphs in it, where these stand."""
        lines = self._graphs[id(program)] = _GraphLines(head, len(self.lines) + 1)
        for layer in program.graph.parameters:
            if program.path:  # those of the model have their values from the start
                self._place(program, layer, None)
            form = declared_form(layer.outputs[0])
            parts = (comments.get(layer.id, ""), form, f"L{layer.line}")
            self._add(depth, f"{self._name(program, layer)} = Parameter()  # {_joined(parts)}")
        for index, operation in enumerate(program.operations):
            self._place(program, operation.layer, index)
            self._lines[id(program), index] = len(self.lines) + 1
            yield from self._operation(program, operation, depth)
        lines.last = max(lines.first, len(self.lines))

    def _operation(self, program: Program, operation: Operation, depth: int) -> Iterator[Any]:
        layer = operation.layer
        arguments = ", ".join(self._argument(program, source) for source in program.graph.sources[layer.id])
        text = f"{self._name(program, layer)} = {layer.type}({arguments})"
        if not operation.plans:
            form = declared_form(layer.outputs[0]) if layer.outputs else ""
            self._add(depth, f"{text}  # {_joined((form, f'L{layer.line}'))}")
            return
        self._add(depth, f"{text}:  # L{layer.line}")
        head = len(self.lines)
        for plan in operation.plans:
            body = next(one for one in layer.bodies if one.graph is plan.program.graph)
            if isinstance(plan, LoopPlan):
                roles = roles_of(layer)
                inputs = program.graph.sources[layer.id]
                comments = {one.parameter: self._fed(program, inputs, plan.program, one, roles) for one in body.inputs}
                yield self._graph(plan.program, depth + 1, head, comments)
                self._end(plan, body, roles, depth + 1)
            else:
                self._add(depth, f"  {SIDE_NAMES[body.role]}:")
                inputs = program.graph.sources[layer.id]
                fed = {one.parameter: self._outer(program, inputs, one) for one in body.inputs}
                yield self._graph(plan.program, depth + 1, len(self.lines), fed)

    def _end(self, plan: LoopPlan, body: Body, roles: Roles, depth: int) -> None:
        """Write what ends an iteration: what goes back, and whether there is another one."""
        program, graph = plan.program, plan.program.graph
        self._graphs[id(program)].last = len(self.lines) + 1
        for edge in body.back_edges:
            result = graph.by_id[edge.from_layer]
            has_effect = without_effect(body, roles, edge) is None
            self._place(program, result, None)
            parameter = self._name(program, graph.by_id[edge.to_layer])
            note = "back edge" if has_effect else "back edge without effect"
            carried = self._argument(program, graph.sources[result.id][0])
            self._add(depth, f"{parameter} <- {carried}  # {note}; L{edge.line}")
        condition = None if plan.condition_result is None else program.producers.get(plan.condition_result)
        goes_on = "" if condition is None else f" if {self._argument(program, Source(condition[0].id, condition[1]))}"
        self._add(depth, f"again{goes_on}")

    def _fed(
        self, outer: Program, inputs: Sequence[Source | None], inner: Program, entry: InputMapping, roles: Roles
    ) -> str:
        """Return where a Parameter of a loop's body has its values from."""
        source = self._outer(outer, inputs, entry)
        match roles.role_of(entry):
            case Role.CURRENT_ITERATION:
                return "the number of the iteration"
            case Role.SLICED if entry.slicing is not None:
                return f"a slice of {source} along axis {entry.slicing.axis}"
            case Role.MERGED:
                carried = inner.graph.sources[roles.merged_from[entry.parameter]][0]
                return f"first {source}, then {self._argument(inner, carried)}"
            case Role.INVARIANT:
                return f"always {source}"
        return ""

    def _outer(self, outer: Program, inputs: Sequence[Source | None], entry: InputMapping) -> str:
        return self._argument(outer, None if entry.input is None else inputs[entry.input])

    def _argument(self, program: Program, source: Source | None) -> str:
        """Return an input of an operation: its name, or its number where it is a small constant."""
        if source is None:
            return "-"
        slot = program.slots.get(source, -1)
        constant = program.template[slot] if slot >= 0 else None
        if constant is not None and constant.size == 1:
            text = str(constant.item())
            if len(text) <= _LONGEST_CONSTANT:
                return text
        layer = program.graph.by_id[source.layer]
        name = self._name(program, layer)
        return f"{name}:{source.output}" if len(layer.outputs) > 1 else name

    def _name(self, program: Program, layer: Layer) -> str:
        return str(unique_name(layer, program))

    def _place(self, program: Program, layer: Layer, index: int | None) -> None:
        """Say of the line that comes next that a run can stop there."""
        self._places[len(self.lines) + 1] = ListedPlace(program, layer, index)

    def _add(self, depth: int, text: str) -> None:
        self.lines.append(_INDENT * min(depth, _DEEPEST) + printable(text))


def _joined(parts: Iterable[str]) -> str:
    return "; ".join(part for part in parts if part)


def shown_frames(debugger: Debugger, listing: ModelListing, source: ShownSource) -> list[ShownFrame]:
    """Return the frames at this stop; at the end of the run one that says so."""
    levels = debugger.view(differences=False).levels
    if not levels:
        line = len(listing.lines)
        return [ShownFrame(1, f"end of the run, tick {debugger.stop.tick}", line, 1, source, can_restart=True)]
    frames = frame_views(debugger.machine.stack)
    return [
        ShownFrame(level.depth + 1, _name(level), _line(listing, frame), 1, source, can_restart=True)
        for level, frame in reversed(list(zip(levels, frames, strict=True)))
    ]


def _line(listing: ModelListing, frame: FrameView) -> int:
    return listing.line_of(frame.program, frame.moment, closed=frame.closed)


def _name(level: LevelView) -> str:
    if level.depth == 0:
        return "model"
    count = f" ({level.count})" if level.count else ""
    return f"{level.name} @{level.iteration}{count}" if level.iteration is not None else f"{level.name}: {level.phase}"


def restart_tick(debugger: Debugger, depth: int) -> int:
    """Return the tick at which the frame at a depth was entered, 0 for the model's own graph. UsageError."""
    if depth == 0:
        return 0
    stack = debugger.machine.stack
    activation = stack[depth].activation if 0 < depth < len(stack) else None
    if activation is None or activation.entered == 0:
        raise UsageError(f"there is no frame {depth + 1} here whose beginning is known")
    return activation.entered


def program_of(debugger: Debugger, frame: int | None) -> Program:
    """Return the graph of a frame by number, for name lookup; by default the innermost frame."""
    stack = debugger.machine.stack
    if frame is None or not stack:
        return debugger.machine.program
    if not 0 < frame <= len(stack):
        raise UsageError(f"there is no frame {frame} at this stop")
    return stack[frame - 1].program


FOLDER = ".stepper"
_SUFFIX = ".stepper.py"
_KIND = FileKind("a listing", (".py",))
_NUMBER = 1
"""By which the text is asked for where it is no file."""


def listing_source(model: Model, text: str, protected: ProtectedFiles, *, as_uri: bool = False) -> ShownSource:
    """Return the source with this text, written to its file where that can be."""
    forms = [".calls" if model.calls is not None else ""]
    forms += [".opened" if any(one.opened_from and not one.is_over_calls for one in _loops(model)) else ""]
    name = f"{model.path.stem}{''.join(forms)}{_SUFFIX}"
    folder = Path(os.path.realpath(model.path.parent))
    path = (folder if folder.name == FOLDER else folder / FOLDER) / name  # a converted model lies in such a folder
    if _is_written(path, text.encode(), protected):
        return ShownSource(name, path.as_uri() if as_uri else str(path))
    return ShownSource(name, source_reference=_NUMBER, origin="listed by stepper; no file could be written")


def _loops(model: Model) -> list[Layer]:
    return [layer for _path, graph in model.graphs() for layer in graph.holders]


def _is_written(path: Path, content: bytes, protected: ProtectedFiles) -> bool:
    """Return True if the file has this content now."""
    if path.parent.is_symlink() or path.is_symlink():
        return False
    try:
        if path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content:
            return True
        path.parent.mkdir(exist_ok=True)
        OutputFile(path, _KIND, protected).write(content)
    except (OSError, OutputError):
        return False
    return True


def is_source(asked: SourceArguments, source: ShownSource) -> bool:
    """Return True if a client means this source."""
    if asked.path:
        same = bool(source.path) and _spelled(asked.path) == _spelled(source.path)
        return same or (not source.path and os.path.basename(asked.path) == source.name)  # noqa: PTH119
    if asked.source_reference:
        return asked.source_reference == source.source_reference
    return asked.name == source.name


def is_file(asked: SourceArguments, path: Path) -> bool:
    """Return True if a client means this file."""
    return bool(asked.path) and _spelled(asked.path or "") == _spelled(str(path))


def _spelled(path: str) -> str:
    if path.startswith("file:"):
        path = url2pathname(urlsplit(path).path)
    try:
        return os.path.normcase(os.path.realpath(path))
    except (OSError, ValueError):
        return path
