"""One graph as statements: an assignment for each operation, in the order in which the machine runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from stepper.element_types import Array
from stepper.engine.program import BranchPlan, Operation, OpKind, Program
from stepper.errors import UsageError
from stepper.export.numpy_code.emit import (
    CodeValue,
    EmitContext,
    Identifiers,
    Term,
    described,
    identifier,
    is_writable,
    literal,
    name_for,
    text,
    typed,
)
from stepper.export.numpy_code.emitters import (
    ARITHMETIC,
    EMITTERS,
    kernel_call,
    kernel_of,
    module_names,
    outputs_given,
)
from stepper.ir.model import Layer, Port
from stepper.query.short_names import is_automatic

_DEEPEST: Final = 95
_DEEPEST_LOOPS: Final = 20
_LONGEST_PART: Final = 45
_SHORT: Final = 4
_WIDEST: Final = 116
_CELLS: Final = ("LSTMCell",)
_OUTPUTS: Final = {"LSTMCell": ("hidden", "cell"), "TopK": ("largest", "indices")}
_HELPERS: Final = """
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
    """One graph within the function: what its values are called. `presets` are names that values are to get."""

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
        """Set the variable of a slot; its type is that of another operand, else as declared."""
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
        """True if the formula is to become part of that of its only reader, instead of a variable."""
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


_PARTS: Final = frozenset({*ARITHMETIC, "Unsqueeze", "Squeeze", "Transpose", "Reshape", "Gather"})
"""Operations whose formula may be a part of another one."""


def _ports(program: Program) -> dict[int, tuple[Layer, Port | None]]:
    """Return for each slot its layer and output port."""
    found: dict[int, tuple[Layer, Port | None]] = {}
    for (identity, output), slot in program.slots.items():
        layer = program.graph.by_id[identity]
        if layer.type != "Result" or slot not in found:
            found[slot] = layer, next(iter(layer.outputs[output : output + 1]), None)
    return found
