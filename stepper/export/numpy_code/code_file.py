"""Write a model as readable numpy code: Python loops, and a statement for each operation.

    code = numpy_code(model)
    Path("model.py").write_text(code.text)             # np.savez("model.npz", **code.constants) beside it, if not empty

The file has one function; `python model.py inputs.npz outputs.npz` calls it. It follows the specification's rules, as
`stepper run` does by default. It needs numpy alone unless it calls a kernel of this product.

A graph becomes an assignment for each operation, in the order in which the machine runs them.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from stepper import __version__
from stepper.element_types import Array, is_of_numpy, name_of
from stepper.engine import loops
from stepper.engine.compiler import compile_model
from stepper.engine.loops import ConcatenatedOutput, LastValueOutput, MergedInput, SlicedInput
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Operation, OpKind, Program
from stepper.engine.rules import Rules
from stepper.engine.run import output_names
from stepper.errors import StepperError, UsageError
from stepper.export.figures.loop_trace import find_loop
from stepper.export.numpy_code.emitters import (
    ARITHMETIC,
    EMITTERS,
    PACKAGE,
    CodeValue,
    EmitContext,
    Identifiers,
    Term,
    along,
    described,
    dtype_text,
    identifier,
    is_writable,
    kernel_call,
    kernel_of,
    literal,
    module_names,
    name_for,
    outputs_given,
    shape_argument,
    text,
    typed,
)
from stepper.export.picture import FigureRequest, FileContent
from stepper.ir.model import Layer, Model, Port, Slicing, parameter_shape, parameter_type
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.query.short_names import is_automatic
from stepper.records import Record
from stepper.wording import excerpt

_DEEPEST = 95
_DEEPEST_LOOPS = 20
_LONGEST_PART = 45
_SHORT = 4
_WIDEST = 116
_CELLS = ("LSTMCell",)
_OUTPUTS = {"LSTMCell": ("hidden", "cell"), "TopK": ("largest", "indices")}
_HELPERS = """
    storable given outputs joined_calls softmax sigmoid iterations ELEMENT_TYPES Path constants state piece
    INPUTS OUTPUTS
"""


class FunctionWriter:
    """The lines of one function, and what they need around them. `write_loop` writes those of a loop."""

    def __init__(self, write_loop: Callable[[GraphWriter, Operation], None]) -> None:
        self.write_loop = write_loop
        self.lines: list[str] = []
        self.names = Identifiers((*_HELPERS.split(), *module_names()))
        self.needs: set[str] = set()
        self.constants: dict[str, tuple[Array, str]] = {}
        """Tensors too large for the text, by the names of their variables, each with a note."""
        self.literals: dict[str, tuple[str, str]] = {}
        """Small tensors that are not single numbers: the text of each, and a note."""
        self.known: dict[str, str] = {}
        """The names of these, by their texts."""
        self._depth, self._loops = 1, 0

    def line(self, text: str, note: str = "") -> None:
        """Write a statement; the note is a comment after it, or before it where the line would be long."""
        begin = "    " * self._depth
        if note and len(begin) + len(text) + len(note) > _WIDEST:
            self.lines.append(f"{begin}# {note}")
            note = ""
        self.lines.append(f"{begin}{text}{f'  # {note}' if note else ''}".rstrip())

    def assign(self, targets: Sequence[str], values: Sequence[str], note: str = "") -> None:
        """Write one assignment of all targets, so that none reads another's new value."""
        pairs = [(target, value) for target, value in zip(targets, values, strict=True) if target != value]
        if pairs:
            self.line(f"{', '.join(target for target, _ in pairs)} = {', '.join(value for _, value in pairs)}", note)

    @contextmanager
    def indented(self, *, loops: int = 0) -> Iterator[None]:
        """Indent the statements of the `with` block, which begins so many loops."""
        self._depth, self._loops = self._depth + 1, self._loops + loops
        if self._loops > _DEEPEST_LOOPS or self._depth > _DEEPEST:
            raise UsageError("loops and branches are nested deeper than Python compiles: 20 loops, 95 levels in all")
        before = len(self.lines)
        yield
        self._loops -= loops
        if len(self.lines) == before or all(not line.strip() or line.strip()[0] == "#" for line in self.lines[before:]):
            self.line("pass")
        self._depth -= 1


class GraphWriter:
    """Write one graph within the function and name its values.

    `presets` are names that values must get.
    """

    def __init__(self, writer: FunctionWriter, program: Program) -> None:
        self.writer, self.program = writer, program
        self.operands: dict[int, CodeValue] = {}
        self.presets: dict[int, str] = {}
        self._uses = Counter([slot for operation in program.operations for slot in operation.inputs])
        self._uses.update(program.results)
        self._results = set(program.results)
        self._readers = {slot: operation for operation in program.operations for slot in operation.inputs if slot >= 0}
        self.ports = _ports(program)

    # --- values --------------------------------------------------------------------------------------------------

    def bind_name(self, slot: int, name: str, like: CodeValue | None = None) -> None:
        """Set the variable of a slot; `like` gives its type, else the declared type applies."""
        operand = self.declared(slot)
        operand.expression = Term(name)
        if like is not None and like.dtype is not None:
            operand.dtype = like.dtype
        self.operands[slot] = operand

    def is_read(self, slot: int) -> bool:
        """True if anything reads the value."""
        return self._uses[slot] > 0 or slot in self.presets

    def declared(self, slot: int) -> CodeValue:
        """Return type and dimensions of a slot as the file declares them, without a value."""
        layer, port = self.ports[slot]
        dtype = None if port is None or port.element_type is None else port.element_type.dtype
        return CodeValue(None, None, dtype, () if port is None else port.dims, name_for(layer))

    def operand(self, slot: int) -> CodeValue:
        """Return the value of a slot."""
        found = self.operands.get(slot)
        if found is None:
            found = self.declared(slot)
            value = self.program.template[slot]
            assert value is not None, "a constant, or an operation has given it"
            layer = self.ports[slot][0]
            found.value, found.dtype, found.dims = value, value.dtype, value.shape
            found.note = described(layer)
            found.is_unnamed = is_automatic(layer)
            found.wanted_name = "constant" if found.is_unnamed else found.wanted_name
            self.operands[slot] = found
        return found

    def value(self, slot: int) -> Any:
        """Return the value of a slot where it is a constant, else None."""
        return self.operand(slot).value

    def embed(self, operand: CodeValue) -> Term:
        """Return an operand as a part of an expression; a constant gets a name unless it is a single number."""
        if operand.expression is None:
            self._write_constant(operand)
        assert operand.expression is not None
        return operand.expression

    def name(self, operand: CodeValue) -> Term:
        """Return an operand as a variable."""
        expression = self.embed(operand)
        if operand.is_deferred:
            name = self.writer.names.new(operand.wanted_name)
            self.writer.line(f"{name} = {expression.text}", operand.note)
            operand.expression, operand.is_deferred = Term(name), False
        return self.embed(operand)

    def text(self, slot: int) -> str:
        """Return the variable (or number) that a slot's value is in."""
        return self.name(self.operand(slot)).text

    def initial(self, slot: int) -> str:
        """Return the initial value of a variable: a constant is written out, however many numbers it has."""
        operand = self.operand(slot)
        if operand.expression is None and operand.value is not None and is_writable(operand.value):
            return typed(operand.value)
        return self.text(slot)

    def _write_constant(self, operand: CodeValue) -> None:
        writer, value = self.writer, operand.value
        if value.ndim == 0 and value.dtype.names is None and value.dtype.kind != "T":
            operand.expression = literal(typed(value))
            return
        if is_writable(value) and value.size <= _SHORT and operand.is_unnamed:
            operand.expression = Term(typed(value))
            return
        if is_writable(value) and len(written := typed(value)) < _WIDEST:
            name = writer.known.get(written) or writer.names.new(operand.wanted_name)
            writer.known[written] = name
            writer.literals.setdefault(name, (written, operand.note))
        else:
            name = writer.names.new(operand.wanted_name)
            writer.constants[name] = (value, operand.note)
        operand.expression = Term(name)

    # --- operations ----------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Write the statements of all operations."""
        for operation in self.program.operations:
            if operation.kind is OpKind.LOOP:
                self.writer.write_loop(self, operation)
            elif operation.kind is OpKind.BRANCH:
                self._write_branch(operation)
            else:
                self._write_operation(operation)

    def _write_operation(self, operation: Operation) -> None:
        layer, writer = operation.layer, self.writer
        kernel = kernel_of(layer)
        context = self._context(operation)
        if operation.kind is OpKind.STATEFUL:
            self._assign_stateful(operation, context)
            return
        emitter = EMITTERS.get(layer.type)
        emitted = None if emitter is None else emitter(context)
        if emitted is None:
            context.lines.clear()
            context.results.clear()
            emitted = kernel_call(context, kernel)
        for line in context.lines:
            writer.line(line, described(layer) if line is context.lines[0] else "")
        noted = not context.lines
        if kernel.several_outputs and not context.results:
            self._assign_several(operation, str(emitted), noted=noted)
        elif not self._waits(operation, emitted):
            self._assign(operation, context.results or [str(emitted)], noted=noted)

    def _context(self, operation: Operation) -> EmitContext:
        operands = [None if slot < 0 else self.operand(slot) for slot in operation.inputs]
        writer = self.writer
        return EmitContext(operation.layer, operands, self.embed, self.name, writer.needs, writer.names.new)

    def _target(self, slot: int, wanted: str) -> str:
        """Return the variable of an output: the preset, or a new one."""
        name = self.presets.get(slot) or self.writer.names.new(wanted)
        self.bind_name(slot, name)
        return name

    def _waits(self, operation: Operation, emitted: Term | str) -> bool:
        """Return True if the formula becomes part of its only reader's, instead of a variable."""
        (slot, *more), layer, text = operation.outputs, operation.layer, str(emitted)
        if more or slot in self.presets or self._uses[slot] != 1 or slot in self._results or text.isidentifier():
            return False
        reader = self._readers[slot]
        if len(text) > _LONGEST_PART or layer.type not in _PARTS or not is_automatic(layer):
            return False
        if reader.kind is not OpKind.KERNEL or reader.layer.type not in EMITTERS:
            return False
        operand = self.operands[slot] = self.declared(slot)
        operand.expression = emitted if isinstance(emitted, Term) else Term(emitted)
        operand.note, operand.is_deferred = described(layer), True
        return True

    def _assign_several(self, operation: Operation, emitted: str, *, noted: bool) -> None:
        """Assign all outputs at once; those that nothing reads are left out."""
        names = self._output_names(operation)
        given = outputs_given(kernel_of(operation.layer))
        if given is not None and given > len(names):
            names.append("*_")
        targets = f"{names[0]}," if len(names) == 1 else ", ".join(names)
        self.writer.line(f"{targets} = {emitted}", described(operation.layer) if noted else "")

    def _assign(self, operation: Operation, results: list[str], *, noted: bool) -> None:
        """Assign the outputs one by one; one that is a variable already keeps its name."""
        layer = operation.layer
        for slot, emitted, wanted in zip(operation.outputs, results, self._wanted_names(operation), strict=False):
            if emitted.isidentifier() and slot not in self.presets:
                self.bind_name(slot, emitted)
                operand = self.operands[slot]
                operand.dtype = operand.dtype or self.operand(operation.inputs[0]).dtype
            elif len(results) == 1 or self.is_read(slot):
                name = self._target(slot, wanted)
                self.writer.line(f"{name} = {emitted}", described(layer) if noted and name != layer.name else "")

    def _wanted_names(self, operation: Operation) -> list[str]:
        """Return the preferred names of the outputs."""
        layer, own = operation.layer, name_for(operation.layer)
        if len(operation.outputs) == 1:
            return [own]
        known = _OUTPUTS.get(layer.type, ()) if is_automatic(layer) or layer.type in _CELLS else ()
        return [known[k] if k < len(known) else f"{own}_{k}" for k in range(len(operation.outputs))]

    def _assign_stateful(self, operation: Operation, context: EmitContext) -> None:
        key = text(operation.state_key)
        kernel = kernel_of(operation.layer)
        emitted = kernel_call(context, kernel, f"state.get({key})")
        self.writer.needs.add("state")
        names = self._output_names(operation)
        target = f"({', '.join(names)},)" if kernel.several_outputs else names[0]
        self.writer.line(f"{target}, state[{key}] = {emitted}", described(operation.layer))

    def _output_names(self, operation: Operation) -> list[str]:
        pairs = zip(operation.outputs, self._wanted_names(operation), strict=True)
        return [self._target(slot, wanted) if self.is_read(slot) else "_" for slot, wanted in pairs]

    # --- branches ------------------------------------------------------------------------------------------------

    def output_name(self, operation: Operation, output: int, otherwise: str, inside: Collection[str] = ()) -> str:
        """Return the name of an output of a loop or a branch: the preset, else as the file names it.

        A name that something `inside` has is left to that.
        """
        slot, layer = operation.outputs[output], operation.layer
        if slot in self.presets:
            return self.presets[slot]
        has_own = len(operation.outputs) == 1 and not is_automatic(layer) and not layer.is_loop
        names = (*layer.outputs[output].names[:1], self._result_named(slot), layer.name if has_own else "")
        wanted = next((identifier(name) for name in names if name), otherwise)
        return self.writer.names.new(f"all_{wanted}" if wanted in inside else wanted)

    def _result_named(self, slot: int) -> str:
        results = zip(self.program.graph.results, self.program.results, strict=True)
        found = (layer.name for layer, result in results if result == slot and not is_automatic(layer))
        return "" if self.program.path else next(found, "")

    def _write_branch(self, operation: Operation) -> None:
        writer, layer = self.writer, operation.layer
        names = {
            index: self.output_name(operation, index, name_for(layer))
            for index, slot in enumerate(operation.outputs)
            if self.is_read(slot)
        }
        condition = self.text(operation.inputs[0])
        for slot in operation.inputs[1:]:
            if slot >= 0:
                self.settle(slot)
        for keyword, plan in zip((f"if {condition}:", "else:"), operation.plans, strict=True):
            assert isinstance(plan, BranchPlan)
            writer.line(keyword, described(layer) if keyword != "else:" else "")
            with writer.indented():
                self._write_side(operation, plan, names)
        for index, name in names.items():
            self.bind_name(operation.outputs[index], name)

    def settle(self, slot: int) -> None:
        """Write a deferred formula now, before a block that may not run, or that repeats."""
        operand = self.operand(slot)
        if operand.is_deferred:
            self.name(operand)

    def _write_side(self, operation: Operation, plan: BranchPlan, names: dict[int, str]) -> None:
        inner = GraphWriter(self.writer, plan.program)
        for index, slot in plan.inputs:
            inner.operands[slot] = self.operand(operation.inputs[index])
        given = [(names[index], slot) for index, slot in plan.outputs if index in names]
        fed = {slot for _index, slot in plan.inputs}
        for name, slot in given:
            if slot in plan.program.computed_at and slot not in fed:
                inner.presets.setdefault(slot, name)
        inner.write()
        self.writer.assign([name for name, _ in given], [inner.initial(slot) for _, slot in given])


_PARTS = frozenset({*ARITHMETIC, "Unsqueeze", "Squeeze", "Transpose", "Reshape", "Gather"})
"""Operations whose formula may be a part of another one."""


def _ports(program: Program) -> dict[int, tuple[Layer, Port | None]]:
    """Return for each slot its layer and output port."""
    found: dict[int, tuple[Layer, Port | None]] = {}
    for (identity, output), slot in program.slots.items():
        layer = program.graph.by_id[identity]
        if layer.type != "Result" or slot not in found:
            found[slot] = layer, next(iter(layer.outputs[output : output + 1]), None)
    return found


_ITERATION = "iteration"
_UNLIMITED = -1
_ENDLESS = 2**62
"""Nobody sees the end of a loop that may run so often."""
_SHORT_LINE = 90


def write_loop(outer: GraphWriter, operation: Operation) -> None:
    """Write the statements of one loop within the graph around it."""
    _Loop(outer, operation).write()


class _Loop:
    """Write the code of one loop."""

    def __init__(self, outer: GraphWriter, operation: Operation) -> None:
        (plan,) = operation.plans
        assert isinstance(plan, LoopPlan)
        self.outer, self.operation, self.plan = outer, operation, plan
        self.inputs = operation.inputs
        self.writer, self.names = outer.writer, outer.writer.names
        self.inner = GraphWriter(self.writer, plan.program)
        self.iteration = "_"
        self.extents: dict[str, str] = {}
        self.variables: dict[int, str] = {}
        """Variable of each Parameter that a back edge renews."""
        self.pieces: dict[int, str] = {}
        self.output_names: dict[int, str] = {}
        self.kept: dict[int, str] = {}
        """Variable of each last-value output that no back edge carries."""
        self.going = ""

    def write(self) -> None:
        """Write all statements, from those before the loop to its outputs."""
        self.writer.lines.append("")
        parts = {"sliced": self.plan.sliced, "carried": self.plan.merged, "concatenated": self.plan.concatenated}
        shown = ", ".join(f"{len(entries)} {word}" for word, entries in parts.items() if entries)
        self.writer.line(f"# {described(self.operation.layer)}{f': {shown}' if shown else ''}")
        for slot in self.inputs:
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

    def _name_outputs(self) -> None:
        """Note the outputs that are read."""
        last, joined = (entry.output for entry in self.plan.last_values), (one.output for one in self.plan.concatenated)
        read = (output for output in sorted([*last, *joined]) if self.outer.is_read(self.operation.outputs[output]))
        self.output_names = dict.fromkeys(read, "")

    def _wanted(self, result: int) -> str:
        """Return the preferred name of a Result of the body outside."""
        return name_for(self.inner.ports[result][0])

    def _bind_inputs(self) -> None:
        plan, outer, inner = self.plan, self.outer, self.inner
        sources = self.inputs
        for invariant in plan.invariant:
            inner.operands[invariant.parameter] = outer.operand(sources[invariant.input])
        for slot in plan.unfed:
            self._bind_zeros(slot)
        if plan.sliced or any(inner.is_read(slot) for slot, _ in plan.current_iteration):
            self.iteration = self.names.new(_ITERATION)
        targets, values = [], []
        for merged in plan.merged:
            source = sources[merged.input]
            if merged.result == merged.parameter:
                inner.operands[merged.parameter] = outer.operand(source)
                continue
            name = self.names.new(self._parameter_name(merged.parameter, "carried"))
            self.variables[merged.parameter] = name
            inner.bind_name(merged.parameter, name, outer.operand(source))
            targets.append(name)
            values.append(outer.initial(source))
        if sum(map(len, [*targets, *values])) < _SHORT_LINE:
            self.writer.assign(targets, values)
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
        self.inner.operands[slot] = operand

    # --- how often -----------------------------------------------------------------------------------------------

    @property
    def _starts(self) -> Any:
        """The execution condition: True, False, or None where it is computed."""
        condition = self.plan.condition
        return True if condition is None else _truth(self.outer.value(self.inputs[condition]))

    @property
    def _goes_on(self) -> Any:
        """The body's condition: True, False, or None where it is computed."""
        result = self.plan.condition_result
        return True if result is None else _truth(self.plan.program.template[result])

    @property
    def _trips(self) -> int | None:
        """A Loop's trip count; None where it is computed."""
        if self.plan.trip_count is None:
            return _UNLIMITED
        value = self.outer.value(self.inputs[self.plan.trip_count])
        count = None if value is None else int(np.ravel(value)[0])
        return count if count is None or 0 <= count < _ENDLESS else _UNLIMITED

    def _begin_condition(self) -> None:
        """Write the variable that holds the condition, where it is not known that the loop begins."""
        plan = self.plan
        if self._starts is True or plan.condition is None:
            return
        first = self.outer.text(self.inputs[plan.condition])
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
        if self._starts is not True or self.plan.is_loop:
            return self._starts is True and self._trips not in (None, 0)
        for entry in self.plan.sliced:  # its axis is declared with a length, and not 0
            dims, axis = self.outer.operand(self.inputs[entry.input]).dims, entry.slicing.axis
            if not -len(dims) <= axis < len(dims) or dims[axis] <= 0:
                return False
        return True

    def _header(self) -> str:
        plan, count = self.plan, ""
        if not plan.is_loop:
            counts = (_count_of(one, self._extent(one)) for one in plan.sliced)
            count = f"range({next(counts, None) or loops.count_without_slices(plan.concatenated)})"
        elif self._trips is None:
            assert plan.trip_count is not None
            count = f"iterations({self.outer.text(self.inputs[plan.trip_count])})"
        elif self._trips != _UNLIMITED:
            count = f"range({self._trips})"
        if not count and self.iteration == "_":
            return f"while {self.going or 'True'}:"
        return f"for {self.iteration} in {count or 'itertools.count()'}:"

    def _extent(self, entry: SlicedInput) -> str:
        """Return the length of the sliced axis; a variable where the slices are counted from the end."""
        axis = entry.slicing.axis
        text = f"{self.outer.text(self.inputs[entry.input])}.shape[{axis}]"
        if text not in self.extents and entry.slicing.start < 0:
            self.extents[text] = self.names.new("length")
            self.writer.line(f"{self.extents[text]} = {text}")
        return self.extents.get(text, text)

    # --- an iteration --------------------------------------------------------------------------------------------

    def _write_iteration(self) -> None:
        writer, inner = self.writer, self.inner
        is_counted = not self.plan.is_loop or self._trips != _UNLIMITED  # something besides the condition ends it
        if self.going and (self.iteration != "_" or is_counted):
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

    def _write_number(self, slot: int, example: Any) -> None:
        name = self.names.new(self._wanted(slot))
        kind = dtype_text(example.dtype)
        text = f"np.array([{self.iteration}], {kind})" if example.ndim else f"{kind}({self.iteration})"
        self.writer.line(f"{name} = {text}")
        self.inner.bind_name(slot, name)
        self.inner.operand(slot).dtype = example.dtype

    def _write_slice(self, entry: SlicedInput) -> None:
        source = self.outer.operand(self.inputs[entry.input])
        name = self.names.new(self._parameter_name(entry.parameter, "part"))
        begin, end = _range_of(entry.slicing, self.iteration, self._extent(entry))
        index = along(entry.slicing.axis, f"{begin} : {end}")
        self.writer.line(f"{name} = {self.outer.text(self.inputs[entry.input])}[{index}]")
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
        self.writer.assign(targets, values, "back edges" if len(targets) > 1 else "back edge")

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
        self.writer.assign(list(self.pieces.values()), ["[]"] * len(self.pieces))
        for last in self.plan.last_values:
            if last.output in self.output_names and self._variable_of(last) is None:
                self._keep(last)

    def _variable_of(self, entry: LastValueOutput) -> str | None:
        """Return the carried variable that has the output when the loop has ended."""
        name = None if entry.merged is None else self.variables.get(entry.merged)
        if name is None or entry.merged is None:
            return None
        result = self.inner.operands.get(entry.result) or self.inner.declared(entry.result)
        begun, renewed = self.inner.operand(entry.merged).dtype, result.dtype
        return name if begun is None or renewed is None or begun == renewed else None

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
            zeros = f"np.zeros({shape_argument(tuple(max(size, 0) for size in shape))}, {dtype_text(dtype)})"
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
            ordered += f" or [np.zeros({shape_argument(empty)}, {dtype_text(dtype)})]"
        if not shape and len(self.operation.layer.outputs[entry.output].dims) == 1:
            return f"np.hstack({ordered})"
        if not shape:  # nothing is declared
            ordered = f"[np.atleast_1d(piece) for piece in {ordered}]"
        if self.plan.is_over_calls and -1 in self.operation.layer.outputs[entry.output].dims[1:]:
            return f"joined_calls({ordered})"
        return f"np.concatenate({ordered}{f', axis={slicing.axis}' if slicing.axis else ''})"


def _truth(value: Any) -> bool | None:
    return None if value is None else bool(np.ravel(value)[0])


# --- where the slices lie ---------------------------------------------------------------------------------------------


def _bound(value: int, extent: str, more: int = 0) -> str:
    """Return a boundary between elements, and so many elements more: -1 is the last one (port_map)."""
    if value >= 0:
        return str(value + more)
    offset = value + 1 + more
    return f"{extent} {'-' if offset < 0 else '+'} {abs(offset)}" if offset else extent


def _range_of(slicing: Slicing, iteration: str, extent: str) -> tuple[str, str]:
    """Begin and end of the slice that an iteration gets (port_map): chunk after chunk from `start` on."""
    size, start = abs(slicing.stride), slicing.start
    if size == 0:
        raise UsageError("a stride is 0, so the loop would never advance")
    chunks = iteration if size == 1 else f"{size} * {iteration}"
    if slicing.stride < 0:
        return f"{_bound(start, extent, -size)} - {chunks}", f"{_bound(start, extent)} - {chunks}"
    if start < 0:
        return f"{_bound(start, extent)} + {chunks}", f"{_bound(start, extent, size)} + {chunks}"
    return f"{chunks} + {start}" if start else chunks, f"{chunks} + {start + size}"


def _count_of(entry: SlicedInput, extent: str) -> str:
    """Return the number of slices (TensorIterator-1, port_map)."""
    slicing = entry.slicing
    ends, size = (slicing.start, slicing.end), abs(slicing.stride)
    low, high = ends if slicing.stride > 0 else reversed(ends)
    if (low < 0) == (high < 0):
        return str((high - low) // size)
    text = _bound(-1, extent, high + 1 - low) if high < 0 else f"{high - low - 1} - {extent}"
    return text if size == 1 else f"{f'({text})' if ' ' in text else text} // {size}"


_ABOUT = """Written by stepper {version} from {file}, by the rules of the specification (--rules spec).
An index out of range, the maximum of nothing and the like are what numpy makes of them.
As a script: python THIS_FILE inputs.npz outputs.npz"""
_SOFTMAX = """
def softmax(x, axis):
    e = np.exp(x - np.max(x, axis, keepdims=True))
    return e / np.sum(e, axis, keepdims=True)
"""
_ITERATIONS = """
def iterations(trip_count):
    return range(trip_count.item()) if trip_count >= 0 else itertools.count()
"""
_JOINED = """
def joined_calls(pieces):  # where they cannot be joined it is what the last call gave
    shapes = {np.shape(piece)[1:] for piece in pieces}
    return np.concatenate(pieces) if len(shapes) == 1 else pieces[-1]
"""
_SIGMOID = """
def sigmoid(x):
    return 1 / (1 + np.exp(-x))
"""


class NumpyCode(Record):
    """The text of a Python file, and the tensors that it reads from the .npz of the same name beside it."""

    text: str
    constants: Mapping[str, Array] = {}


def write(model: Model, request: FigureRequest) -> FileContent:
    """Return the code of the model, or of one loop of it, and the constants for the .npz beside it."""
    others = Counter(request.content.elsewhere.values())
    if others:
        whose = ", ".join(f"{count} by {who}" for who, count in others.items())
        request.warn(f"the code has numpy alone; of these operations the run has {whose}")
    code = numpy_code(model, rules=request.rules, loop=request.loop)
    return FileContent(code.text.encode(), code.constants)


def numpy_code(model: Model, *, rules: Rules = Rules.SPEC, loop: str | None = None) -> NumpyCode:
    """Return the model as Python code; with `loop` that loop alone, by its name, a function of what goes into it.

    Raises UsageError for an operation without a kernel, for loops nested too deep for Python, for a loop that is not
    there, and for other rules than the specification's.
    """
    if rules is not Rules.SPEC:
        raise UsageError("numpy code follows the rules of the specification; leave --rules out")
    file = _File(compile_model(model))
    try:
        return file.whole() if loop is None else file.of_loop(*_found(file.compiled, loop))
    except StepperError:
        raise
    except (ArithmeticError, IndexError, SyntaxError, ValueError) as error:
        # A model that no run would get through either: an axis of no tensor, a condition without an element.
        raise UsageError(f"{model.path}: has no form as numpy code: {excerpt(str(error))}") from error


def _found(compiled: CompiledModel, wanted: str) -> tuple[Program, Operation]:
    """Return the loop of this name, and the program that it is in."""
    layer = find_loop(compiled.model, wanted).layer
    everything = ((program, one) for program in compiled.programs for one in program.operations)
    found = next((pair for pair in everything if pair[1].layer is layer), None)
    if found is None or not layer.is_loop:
        raise UsageError(f"{layer} is no loop that runs")
    return found


class _Argument(Record):
    """Hold an argument: its name, the name of its array in the .npz, its type, and its comment."""

    name: str
    array: str
    dtype: np.dtype[Any] | None
    note: str


class _File:
    """Build one file."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled, self.model = compiled, compiled.model
        self.writer = FunctionWriter(write_loop)
        self.title = f"The model {_quoted(self.model.name or self.model.path.stem)} as numpy code."
        self.arguments: list[_Argument] = []
        self.outputs: list[str] = []
        self.function = ""

    def whole(self) -> NumpyCode:
        """Return the code of the whole model."""
        main = self.compiled.main
        self._name_function(self.model.name or self.model.path.stem)
        scope = GraphWriter(self.writer, main)
        for parameter, slot in zip(main.graph.parameters, main.parameters, strict=True):
            self._add_input(scope, parameter, slot)
        scope.write()
        self.outputs = output_names(self.model)
        return self._written(scope, main.results)

    def of_loop(self, program: Program, operation: Operation) -> NumpyCode:
        """Return the code of one loop."""
        layer = operation.layer
        model = _quoted(self.model.name or self.model.path.stem)
        self.title = f"The loop {_quoted(layer.name)} (id {layer.id}) of the model {model} as numpy code."
        self._name_function(name_for(layer))
        scope = GraphWriter(self.writer, program)
        for slot in dict.fromkeys(operation.inputs):
            if slot >= 0 and program.template[slot] is None:
                operand = scope.declared(slot)
                name = self.writer.names.new(operand.wanted_name)
                scope.bind_name(slot, name)
                dims = shape_text(operand.dims).replace("-1", "?")
                shape = "" if operand.dtype is None else f"{name_of(operand.dtype)}{dims}"
                self.arguments.append(_Argument(name, name, operand.dtype, shape))
        write_loop(scope, operation)
        results = [slot for slot in operation.outputs if scope.is_read(slot)]
        self.outputs = [scope.text(slot) for slot in results]
        return self._written(scope, results)

    def _name_function(self, wanted: str) -> None:
        self.function = self.writer.names.new(identifier(wanted, "model").lower())

    def _add_input(self, scope: GraphWriter, parameter: Layer, slot: int) -> None:
        name = self.writer.names.new("x" if is_automatic(parameter) else name_for(parameter))
        scope.bind_name(slot, name)
        declared = parameter_type(parameter)
        shape = f"{declared or ''}{excerpt(str(parameter_shape(parameter)))}"
        note = shape if parameter.name == name else f"'{excerpt(parameter.name)}', {shape}"
        self.arguments.append(_Argument(name, parameter.name, None if declared is None else declared.dtype, note))

    def _written(self, scope: GraphWriter, results: Sequence[int]) -> NumpyCode:
        types = [scope.operand(slot).dtype for slot in results]
        if any(dtype is None or not is_of_numpy(dtype) for dtype in types):
            self.writer.needs.add("storable")  # .npz has no such types
        texts = [scope.text(slot) for slot in results]
        self.writer.lines.append("")
        self.writer.line(f"return {', '.join(texts)}" if len(texts) > 1 else f"return ({''.join(texts)},)")
        function = self._function()
        tree = ast.parse("\n".join([*function, *self._constants()]))
        self.writer.needs |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}  # helpers, modules
        content = "\n".join([*self._head(), *function, *self._script(), ""])
        compile(content, "<numpy code>", "exec")
        constants = {name: storable(value) for name, (value, _note) in self.writer.constants.items()}
        return NumpyCode(content, constants)

    def _function(self) -> list[str]:
        has_state = "state" in self.writer.needs
        names = [argument.name for argument in self.arguments] + ["state=None"] * has_state
        lines = ['@np.errstate(all="ignore")', f"def {self.function}({', '.join(names)}):"]
        if has_state:
            lines.append("    state = {} if state is None else state  # what lasts from one call to the next")
        for argument in self.arguments:
            kind = "" if argument.dtype is None else f", {dtype_text(argument.dtype)}"
            lines.append(f"    {argument.name} = np.asarray({argument.name}{kind})  # {argument.note}".rstrip(" #"))
        return [*lines, *self.writer.lines]

    # --- around it -----------------------------------------------------------------------------------------------

    def _head(self) -> list[str]:
        needs = self.writer.needs
        modules = sorted(need.removeprefix(f"{PACKAGE}.") for need in needs if need.startswith(f"{PACKAGE}."))
        lines = [
            f'"""{self.title}',
            "",
            *_ABOUT.format(version=__version__, file=_quoted(self.model.path.name)).split("\n"),
            '"""',
            "",
        ]
        lines += ["import itertools"] if needs & {"itertools", "iterations"} else []
        lines += ["import sys"]
        lines += ["from pathlib import Path"] if self.writer.constants else []
        lines += ["", "import ml_dtypes"] if "ml_dtypes" in needs else [""]
        lines += ["import numpy as np"]
        lines += [""] if modules or needs & {"ELEMENT_TYPES", "storable"} else []
        lines += ["from stepper.element_types import ELEMENT_TYPES"] if "ELEMENT_TYPES" in needs else []
        lines += ["from stepper.plain_values import storable"] if "storable" in needs else []
        lines += [f"from {PACKAGE} import {', '.join(modules)}"] if modules else []
        return [*lines, *self._constants(), *self._helpers(), "", ""]

    def _constants(self) -> list[str]:
        lines: list[str] = [""] if self.writer.literals or self.writer.constants else []
        lines += [f"{name} = {text}  # {note}" for name, (text, note) in self.writer.literals.items()]
        if self.writer.constants:
            lines.append('with np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False) as constants:')
        for name, (value, note) in self.writer.constants.items():
            lines.append(f'    {name} = constants["{name}"]{_restored(value)}  # {note}')
        return lines

    def _helpers(self) -> list[str]:
        helpers = {"iterations": _ITERATIONS, "joined_calls": _JOINED, "sigmoid": _SIGMOID, "softmax": _SOFTMAX}
        wanted = [text for name, text in helpers.items() if name in self.writer.needs]
        return [line for text in wanted for line in ["", *text.rstrip().split("\n")]]

    def _script(self) -> list[str]:
        inputs = [argument.array for argument in self.arguments]
        return [
            "",
            "",
            f"INPUTS = {_list_text(_array_names(inputs))}",
            f"OUTPUTS = {_list_text(_array_names(self.outputs))}",
            "",
            'if __name__ == "__main__":',
            "    with np.load(sys.argv[1], allow_pickle=False) as given:",
            f"        outputs = {self.function}(*(given[name] for name in INPUTS))",
            *(["    outputs = [storable(value) for value in outputs]"] if "storable" in self.writer.needs else []),
            "    np.savez(sys.argv[2], **dict(zip(OUTPUTS, outputs)))",
        ]


def _array_names(names: list[str]) -> list[str]:
    """Return names for arrays of an .npz: each once, and none that numpy reserves."""
    unique = Identifiers(("file", "allow_pickle"))
    return [
        name if names.count(name) == 1 and name not in ("file", "allow_pickle") else unique.new(identifier(name))
        for name in names
    ]


def _list_text(names: list[str]) -> str:
    return f"[{', '.join(text(name) for name in names)}]"


def _restored(value: Array) -> str:
    """Return the conversion from the type in which an .npz keeps a tensor to its own."""
    if value.dtype.names:
        return f".view({dtype_text(value.dtype)})"
    return "" if is_of_numpy(value.dtype) else f".astype({dtype_text(value.dtype)})"


def _quoted(text: str) -> str:
    """Return a name for the first lines of the file: it can neither end them nor say anything else."""
    return "'" + excerpt(text).translate({ord(sign): " " for sign in "\\\"'{}"}) + "'"
