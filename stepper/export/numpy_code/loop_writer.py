"""A TensorIterator or Loop as a Python loop: slices, carried variables, scan outputs, and what ends it.

total, total_by_step_pieces = start, []            before: what is carried begins, scans are empty
for iteration in range(8):                         or `while going_on:`
    item = x[iteration : iteration + 1]            slices, the iteration's number
    ...                                            the body
    total_by_step_pieces.append(total_next)        what the iteration gives
    total = total_next                             back edges, all at once
    if not below_limit:                            the condition
        break
total_by_step = np.concatenate(total_by_step_pieces)
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from stepper.engine import loops
from stepper.engine.loops import ConcatenatedOutput, LastValueOutput, MergedInput, SlicedInput
from stepper.engine.program import LoopPlan, Operation
from stepper.errors import UsageError
from stepper.export.numpy_code.graph_writer import GraphWriter
from stepper.export.numpy_code.identifiers import described, name_for
from stepper.export.numpy_code.literals import dtype_text, shape_text
from stepper.export.numpy_code.movement import along
from stepper.ir.model import Slicing, parameter_shape
from stepper.query.short_names import is_automatic

_ITERATION: Final = "iteration"
_UNLIMITED: Final = -1
_ENDLESS: Final = 2**62
"""Nobody sees the end of a loop that may run so often."""
_SHORT_LINE: Final = 90


def write_loop(outer: GraphWriter, operation: Operation) -> None:
    """Write the statements of one loop within the graph around it."""
    _Loop(outer, operation).write()


class _Loop:
    """One loop while its code is written."""

    def __init__(self, outer: GraphWriter, operation: Operation) -> None:
        (plan,) = operation.plans
        assert isinstance(plan, LoopPlan)
        self.outer, self.operation, self.plan = outer, operation, plan
        self.writer, self.names = outer.writer, outer.writer.names
        self.inner = GraphWriter(self.writer, plan.program)
        self.iteration = "_"
        self.extents: dict[str, str] = {}
        self.variables: dict[int, str] = {}
        """Of each Parameter that a back edge renews, its variable."""
        self.pieces: dict[int, str] = {}
        self.output_names: dict[int, str] = {}
        self.kept: dict[int, str] = {}
        """Of a last-value output that no back edge carries, its variable."""
        self.going = ""

    def write(self) -> None:
        """Write all statements, from those before the loop to its outputs."""
        self.writer.lines.append("")
        self.writer.line(f"# {described(self.operation.layer)}{self._summary()}")
        for slot in self.operation.inputs:
            if slot >= 0:
                self.outer.settle(slot)
        self._name_outputs()
        self._bind_inputs()
        self._begin_condition()
        self._begin_outputs()
        for entry in self.plan.sliced:
            self._extent(entry)
        self.writer.line(self._header())
        with self.writer.indented(loops=1):
            self._write_iteration()
        self._write_outputs()

    # --- before --------------------------------------------------------------------------------------------------

    def _summary(self) -> str:
        plan = self.plan
        parts = [f"{len(plan.sliced)} sliced", f"{len(plan.merged)} carried", f"{len(plan.concatenated)} concatenated"]
        shown = ", ".join(part for part in parts if part[0] != "0")
        return f": {shown}" if shown else ""

    def _name_outputs(self) -> None:
        """Note the outputs that are read."""
        last = [entry.output for entry in self.plan.last_values]
        for output in sorted([*last, *(entry.output for entry in self.plan.concatenated)]):
            slot = self.operation.outputs[output]
            if self.outer.is_read(slot):
                self.output_names[output] = ""

    def _wanted(self, result: int) -> str:
        """Return the preferred name of a Result of the body outside."""
        layer, _port = self.inner.ports[result]
        return name_for(layer)

    def _bind_inputs(self) -> None:
        plan, outer, inner = self.plan, self.outer, self.inner
        sources = self.operation.inputs
        for invariant in plan.invariant:
            inner.bind(invariant.parameter, outer.operand(sources[invariant.input]))
        for slot in plan.unfed:
            self._bind_zeros(slot)
        if plan.sliced or any(inner.is_read(slot) for slot, _ in plan.current_iteration):
            self.iteration = self.names.new(_ITERATION)
        targets, values = [], []
        for merged in plan.merged:
            source = sources[merged.input]
            if merged.result == merged.parameter:
                inner.bind(merged.parameter, outer.operand(source))
                continue
            name = self.names.new(self._parameter_name(merged.parameter, "carried"))
            self.variables[merged.parameter] = name
            inner.bind_name(merged.parameter, name, outer.operand(source))
            targets.append(name)
            values.append(outer.initial(source))
        if sum(map(len, [*targets, *values])) < _SHORT_LINE:
            _assign(self.writer, targets, values)
        else:
            for target, value in zip(targets, values, strict=True):
                self.writer.line(f"{target} = {value}")

    def _parameter_name(self, slot: int, otherwise: str) -> str:
        parameter = self.plan.program.parameter(slot)
        return otherwise if is_automatic(parameter) else name_for(parameter)

    def _bind_zeros(self, slot: int) -> None:
        """Bind a Parameter without a source to zeros."""
        parameter = self.plan.program.parameter(slot)
        operand = self.inner.declared(slot)
        shape = parameter_shape(parameter).static or ()
        operand.value = np.zeros(shape, operand.dtype or np.float32)
        operand.dtype = operand.value.dtype
        self.inner.bind(slot, operand)

    # --- how often -----------------------------------------------------------------------------------------------

    @property
    def _starts(self) -> Any:
        """The execution condition: True, False, or None where it is computed."""
        plan = self.plan
        if plan.condition is None:
            return True
        value = self.outer.value(self.operation.inputs[plan.condition])
        return None if value is None else bool(np.ravel(value)[0])

    @property
    def _goes_on(self) -> Any:
        """The body's condition: True, False, or None where it is computed."""
        result = self.plan.condition_result
        if result is None:
            return True
        value = self.plan.program.template[result]
        return None if value is None else bool(np.ravel(value)[0])

    @property
    def _trips(self) -> int | None:
        """A Loop's trip count; None where it is computed."""
        if self.plan.trip_count is None:
            return _UNLIMITED
        value = self.outer.value(self.operation.inputs[self.plan.trip_count])
        count = None if value is None else int(np.ravel(value)[0])
        return count if count is None or 0 <= count < _ENDLESS else _UNLIMITED

    def _begin_condition(self) -> None:
        """Write the variable that holds the condition, where it is not known that the loop begins."""
        plan = self.plan
        if self._starts is True or plan.condition is None:
            return
        first = self.outer.text(self.operation.inputs[plan.condition])
        result = plan.condition_result
        if self._goes_on is None and result is not None and self._is_own(result):
            self.going = self.names.new(self._wanted(result))
            self.inner.presets[result] = self.going
        else:
            self.going = self.names.new("goes_on")
        self.writer.line(f"{self.going} = {first}")

    def _is_own(self, slot: int) -> bool:
        """True if an operation of the body computes it."""
        return slot in self.plan.program.computed_at

    @property
    def _runs_surely(self) -> bool:
        """True if there is at least one iteration."""
        if self._starts is not True:
            return False
        if not self.plan.is_loop:
            return all(self._has_elements(entry) for entry in self.plan.sliced)
        return self._trips is not None and self._trips != 0

    def _has_elements(self, entry: SlicedInput) -> bool:
        """True if the sliced axis is declared with a length, and not 0."""
        dims, axis = self.outer.operand(self.operation.inputs[entry.input]).dims, entry.slicing.axis
        return -len(dims) <= axis < len(dims) and dims[axis] > 0

    def _header(self) -> str:
        count = self._trip_count() if self.plan.is_loop else self._slice_count()
        if count is None and self.iteration == "_":
            return f"while {self.going or 'True'}:"
        if count is None:
            self.writer.needs.add("itertools")
        return f"for {self.iteration} in {count or 'itertools.count()'}:"

    def _trip_count(self) -> str | None:
        """Return `range(...)`; None where there is no limit."""
        if self._trips is not None or self.plan.trip_count is None:
            return None if self._trips == _UNLIMITED else f"range({self._trips})"
        self.writer.needs |= {"iterations", "itertools"}
        return f"iterations({self.outer.text(self.operation.inputs[self.plan.trip_count])})"

    def _slice_count(self) -> str:
        if not self.plan.sliced:
            return f"range({loops.count_without_slices(self.plan.concatenated)})"
        first = self.plan.sliced[0]
        return f"range({_count_of(first.slicing, self._extent(first))})"

    def _extent(self, entry: SlicedInput) -> str:
        """Return the length of the sliced axis; a variable where the slices are counted from the end."""
        axis = entry.slicing.axis
        text = f"{self.outer.text(self.operation.inputs[entry.input])}.shape[{axis}]"
        if text not in self.extents and _position(entry.slicing.start).of_extent:
            self.extents[text] = self.names.new("length")
            self.writer.line(f"{self.extents[text]} = {text}")
        return self.extents.get(text, text)

    # --- an iteration --------------------------------------------------------------------------------------------

    def _write_iteration(self) -> None:
        writer, inner = self.writer, self.inner
        if self.going and (self.iteration != "_" or self._is_counted):
            writer.line(f"if not {self.going}:")
            with writer.indented():
                writer.line("break")
        for slot, numbered in self.plan.current_iteration:
            if inner.is_read(slot):
                self._write_number(slot, numbered(0))
        for entry in self.plan.sliced:
            self._write_slice(entry)
        inner.write()
        for index, pieces in self.pieces.items():
            writer.line(f"{pieces}.append({inner.text(self.plan.concatenated[index].result)})")
        self._write_back_edges()
        self._write_end()

    @property
    def _is_counted(self) -> bool:
        """True if something besides the condition ends the loop."""
        return not self.plan.is_loop or self._trips != _UNLIMITED

    def _write_number(self, slot: int, example: Any) -> None:
        name = self.names.new(self._wanted(slot))
        kind = dtype_text(example.dtype)
        text = f"np.array([{self.iteration}], {kind})" if example.ndim else f"{kind}({self.iteration})"
        self.writer.line(f"{name} = {text}")
        self.inner.bind_name(slot, name)
        self.inner.operand(slot).dtype = example.dtype

    def _write_slice(self, entry: SlicedInput) -> None:
        source = self.outer.operand(self.operation.inputs[entry.input])
        name = self.names.new(self._parameter_name(entry.parameter, "part"))
        begin, end = _range_of(entry.slicing, self.iteration, self._extent(entry))
        index = along(entry.slicing.axis, f"{begin} : {end}")
        self.writer.line(f"{name} = {self.outer.text(self.operation.inputs[entry.input])}[{index}]")
        self.inner.bind_name(entry.parameter, name, source)

    def _write_back_edges(self) -> None:
        """Write the assignment of all carried variables at once, each from the values before."""
        plan, inner = self.plan, self.inner
        targets: list[str] = []
        values: list[str] = []
        for merged in plan.merged:
            if merged.parameter in self.variables:
                targets.append(self.variables[merged.parameter])
                values.append(self._carried(merged))
        for result, name in self.kept.items():
            if inner.text(result) != name:
                targets.append(name)
                values.append(inner.text(result))
        going_on = plan.condition_result
        if self.going and going_on is not None and inner.initial(going_on) != self.going:
            targets.append(self.going)
            values.append(inner.initial(going_on))
        elif going_on is not None and not self.going and self._goes_on is None:
            self._keep_condition(going_on, targets, values)
        _assign(self.writer, targets, values, "back edges" if len(targets) > 1 else "back edge")

    def _carried(self, merged: MergedInput) -> str:
        """Return the value of a back edge in the type that the variable began with."""
        inner = self.inner
        begun, renewed = inner.operand(merged.parameter).dtype, inner.operand(merged.result).dtype
        text = inner.initial(merged.result)
        if begun is not None and renewed is not None and begun != renewed:
            return f"{text}.astype({dtype_text(begun)})"
        return text

    def _keep_condition(self, result: int, targets: list[str], values: list[str]) -> None:
        """Keep the condition in a variable before the back edges renew it."""
        if self.inner.text(result) in targets:
            name = self.names.new("goes_on")
            targets.append(name)
            values.append(self.inner.text(result))
            self.inner.operands[result] = self.inner.declared(result)
            self.inner.bind_name(result, name)

    def _write_end(self) -> None:
        writer, result = self.writer, self.plan.condition_result
        if self.going or result is None or self._goes_on is True:
            return
        if self._goes_on is False:
            writer.line("break", "the condition is a Constant that is false")
            return
        writer.line(f"if not {self.inner.text(result)}:")
        with writer.indented():
            writer.line("break")

    # --- outputs -------------------------------------------------------------------------------------------------

    def _begin_outputs(self) -> None:
        for index, entry in enumerate(self.plan.concatenated):
            if entry.output in self.output_names:
                own = {name_for(layer) for layer in self.plan.program.graph.layers}
                wanted = self.outer.output_name(self.operation, entry.output, self._wanted(entry.result), own)
                self.output_names[entry.output] = wanted
                self.pieces[index] = self.names.new(f"{wanted}_pieces")
        _assign(self.writer, list(self.pieces.values()), ["[]"] * len(self.pieces))
        for last in self.plan.last_values:
            if last.output in self.output_names and self._variable_of(last) is None:
                self._keep(last)

    def _variable_of(self, entry: LastValueOutput) -> str | None:
        """Return the carried variable that has the output when the loop has ended."""
        name = None if entry.merged is None else self.variables.get(entry.merged)
        if name is None or entry.merged is None:
            return None
        begun, renewed = self.inner.operand(entry.merged).dtype, self._type_of(entry.result)
        return name if begun is None or renewed is None or begun == renewed else None

    def _type_of(self, slot: int) -> Any:
        known = self.inner.operands.get(slot)
        return (known or self.inner.declared(slot)).dtype

    def _keep(self, entry: LastValueOutput) -> None:
        """Write a variable for a Result without a back edge; without an iteration it is its initial value, or zeros."""
        inner, result = self.inner, entry.result
        if self.plan.program.template[result] is not None or (
            result in inner.operands and result not in self.variables
        ):
            return  # a constant or an invariant input: it is there whatever happens
        name = self.outer.output_name(self.operation, entry.output, self._wanted(result))
        self.kept[result] = name
        if self._is_own(result) and result not in inner.presets:
            inner.presets[result] = name
        if self._runs_surely:
            return
        if entry.merged is not None:
            self.writer.line(f"{name} = {self.variables[entry.merged]}", "if no iteration runs")
        else:
            shape, dtype = self.plan.program.declared(result)
            zeros = f"np.zeros({shape_text(tuple(max(size, 0) for size in shape))}, {dtype_text(dtype)})"
            self.writer.line(f"{name} = {zeros}", "undefined if no iteration runs")

    def _write_outputs(self) -> None:
        for index, entry in enumerate(self.plan.concatenated):
            if index in self.pieces:
                name = self.output_names[entry.output]
                self.writer.line(f"{name} = {self._joined(entry, self.pieces[index])}")
                self.outer.bind_name(self.operation.outputs[entry.output], name)
        for last in self.plan.last_values:
            if last.output not in self.output_names:
                continue
            slot = self.operation.outputs[last.output]
            text = self.kept.get(last.result) or self._variable_of(last) or self.inner.text(last.result)
            preset = self.outer.presets.get(slot)
            if preset is not None and preset != text:
                self.writer.line(f"{preset} = {text}")
            self.outer.bind_name(slot, preset or text, self.inner.operands.get(last.result))

    def _joined(self, entry: ConcatenatedOutput, pieces: str) -> str:
        slicing = entry.slicing
        shape, dtype = self.plan.program.declared(entry.result)
        ordered = pieces if slicing.stride > 0 else f"{pieces}[::-1]"
        if not self._runs_surely:
            empty = loops.empty_concatenation(slicing.axis, shape, dtype).shape
            ordered += f" or [np.zeros({shape_text(empty)}, {dtype_text(dtype)})]"
        if not shape and len(self.operation.layer.outputs[entry.output].dims) == 1:
            return f"np.hstack({ordered})"
        if not shape:  # nothing is declared
            ordered = f"[np.atleast_1d(piece) for piece in {ordered}]"
        if self.plan.is_over_calls and -1 in self.operation.layer.outputs[entry.output].dims[1:]:
            self.writer.needs.add("joined_calls")
            return f"joined_calls({ordered})"
        return f"np.concatenate({ordered}{f', axis={slicing.axis}' if slicing.axis else ''})"


def _assign(writer: Any, targets: list[str], values: list[str], note: str = "") -> None:
    """Write one assignment of all targets, so that none reads another's new value."""
    pairs = [(target, value) for target, value in zip(targets, values, strict=True) if target != value]
    if pairs:
        writer.line(f"{', '.join(target for target, _ in pairs)} = {', '.join(value for _, value in pairs)}", note)


# --- where the slices lie ---------------------------------------------------------------------------------------------


class _Position(NamedTuple):
    """A place along an axis: so many times its extent (0 or 1), and so many elements more."""

    of_extent: int
    offset: int

    def minus(self, other: _Position) -> _Position:
        """Return the distance from the other one."""
        return _Position(self.of_extent - other.of_extent, self.offset - other.offset)

    def text(self, extent: str, more: str = "") -> str:
        """Return the position as code; `more` are further terms, such as ` - iteration`."""
        if not self.of_extent:
            first = str(self.offset)
        elif self.of_extent < 0:
            first = f"{self.offset} - {extent}"
        else:
            first = extent if not self.offset else f"{extent} {'-' if self.offset < 0 else '+'} {abs(self.offset)}"
        return f"{first}{more}"


def _position(value: int) -> _Position:
    """Return a boundary between elements: -1 is the last one (semantics 1.3)."""
    return _Position(0, value) if value >= 0 else _Position(1, value + 1)


def _range_of(slicing: Slicing, iteration: str, extent: str) -> tuple[str, str]:
    """Begin and end of the slice that an iteration gets (semantics 1.4): chunk after chunk from `start` on."""
    size, start = abs(slicing.stride), _position(slicing.start)
    if size == 0:
        raise UsageError("a stride is 0, so the loop would never advance")
    chunks = iteration if size == 1 else f"{size} * {iteration}"
    following = start._replace(offset=start.offset + size)
    before = start._replace(offset=start.offset - size)
    if slicing.stride < 0:
        return before.text(extent, f" - {chunks}"), start.text(extent, f" - {chunks}")
    if start == (0, 0):
        return chunks, f"{chunks} + {size}"
    if not start.of_extent:
        return f"{chunks} + {start.offset}", f"{chunks} + {following.offset}"
    return start.text(extent, f" + {chunks}"), following.text(extent, f" + {chunks}")


def _count_of(slicing: Slicing, extent: str) -> str:
    """Return the number of slices (semantics 1.3)."""
    start, end = _position(slicing.start), _position(slicing.end)
    low, high = (start, end) if slicing.stride > 0 else (end, start)
    length, size = high.minus(low), abs(slicing.stride)
    if length.of_extent == 0:
        return str(length.offset // size)
    text = length.text(extent)
    return text if size == 1 else f"{f'({text})' if ' ' in text else text} // {size}"
