"""Compile a graph: settle everything once that does not change from run to run.

A `Program` is one graph: its operations in a fixed order, a slot for every value, constants in their slots, dead code
left out, kernels bound to their attributes. `Code` is the program as lean tuples for the hot loop.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
from msgspec.structs import replace

from stepper.element_types import F32, Array, DType, Ints, Shape
from stepper.errors import KernelError, UsageError
from stepper.ir.model import Graph, Growth, Layer, Model, Source, growth_of, path_text
from stepper.records import Immutable, Record
from stepper.wording import excerpt

if TYPE_CHECKING:
    from stepper.engine.loops import ConcatenatedOutput, InvariantInput, LastValueOutput, MergedInput, SlicedInput
    from stepper.engine.rules import Rules


Value = Any
"""A tensor in a slot: an ndarray, or a numpy scalar for one of rank 0; None where nothing was computed yet."""


class OpKind(Enum):
    """Way in which the machine carries an operation out."""

    KERNEL = auto()
    STATEFUL = auto()
    LOOP = auto()
    BRANCH = auto()


class LoopPlan(Immutable, Record):
    """A TensorIterator or Loop with every entry of its port map resolved to slots of its body's program.

    `carried` are the back edges as (Parameter, Result); `rigid` are those whose values OpenVINO does not let change
    their shape; `may_grow`: some operation of the body can give more than its inputs have, so what is carried must be
    looked at.
    `passes_on`: a back edge carries what is itself a carried Parameter, so all are read before any is written.
    `trip_count` and `condition` are indices of the layer's inputs (None: not connected). `condition_result` is the slot
    of the body's condition (None: the body's condition does not count). `constant_condition`: a Constant gives it.
    `fixed_condition`: all that the body's condition depends on is the same in each iteration. `deciding` are the
    carried entries whose values alone decide what it is from now on; None where something else has a say, too.
    `current_iteration` are slots with what makes an iteration number a value for them; `unfed` are Parameters that
    nothing feeds.
    """

    program: Program
    sliced: tuple[SlicedInput, ...]
    merged: tuple[MergedInput, ...]
    rigid: tuple[MergedInput, ...]
    passes_on: bool
    carried: tuple[tuple[int, int], ...]
    may_grow: bool
    invariant: tuple[InvariantInput, ...]
    unfed: Ints
    current_iteration: tuple[tuple[int, Callable[[int], Value]], ...]
    trip_count: int | None
    condition: int | None
    constant_condition: bool
    condition_result: int | None
    fixed_condition: bool
    deciding: tuple[MergedInput, ...] | None
    last_values: tuple[LastValueOutput, ...]
    concatenated: tuple[ConcatenatedOutput, ...]
    is_loop: bool
    is_over_calls: bool

    def __reduce__(self) -> tuple[Any, ...]:
        return _plan_again, self.program.origin_to_pickle()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.program.name}>"


class BranchPlan(Immutable, Record):
    """Hold one side of an If: index and slot of each input (Parameter) and output (Result)."""

    program: Program
    inputs: tuple[tuple[int, int], ...]
    outputs: tuple[tuple[int, int], ...]

    __reduce__ = LoopPlan.__reduce__
    __repr__ = LoopPlan.__repr__


class Operation(Immutable, Record):
    """Hold one operation of a program: its layer, and the slots that it reads and writes.

    `function` takes the inputs' values (a stateful function takes its state first). It returns the value of the one
    output, or a tuple if it has `several_outputs`; `state_key` names the state. `floating` does this for f32 and f64
    alone, faster. `settled` takes the first input alone, if the others are constants. `plans` is the loop's one plan,
    or an If's two plans (then, else). `computed_by` names the backend that computes it; it is empty for an own kernel.
    A pickled operation is a description, without function and plans; a Program restores them.
    """

    layer: Layer
    kind: OpKind
    inputs: Ints
    outputs: Ints
    function: Callable[..., Any] | None = None
    several_outputs: bool = False
    floating: Callable[..., Any] | None = None
    state_key: str = ""
    settled: Callable[..., Any] | None = None
    plans: tuple[LoopPlan | BranchPlan, ...] = ()
    computed_by: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        shown = {"several_outputs": self.several_outputs, "state_key": self.state_key, "computed_by": self.computed_by}
        return _described, ((self.layer, self.kind, self.inputs, self.outputs), shown)

    def __repr__(self) -> str:
        return f"<Operation {self.layer.type} '{excerpt(self.layer.name)}' (id {self.layer.id})>"


def _described(parts: tuple[Any, ...], shown: dict[str, Any]) -> Operation:
    return Operation(*parts, **shown)


Step = tuple[Callable[..., Any] | None, Any, int | None, int | None]
"""An operation for the hot loop: (function, a, b, out); a plain tuple unpacks fastest.

With two inputs, a and b are their slots and out is the output slot. With one input, a is its slot and b is None. With
any other number of inputs or several outputs, a is a pair: the input slots and the output slots, each a tuple. The
second item is the slot itself if there is one output; b and out are None. An operation that is not for the hot loop has
None as function.
"""


class Program(Immutable, Record, eq=False, dict=True, weakref=True):
    """Hold a compiled graph.

    `template` holds the initial values of a frame: constants and values that follow from constants alone, else None.
    `parameters` and `results` are slots in file order; `folded` are the operations computed at compile time.
    `dead_after[i]` are the slots that nothing reads after operation i (for a run that keeps nothing). `origin` compiles
    the model again and gives the index of this program among its programs; pickling stores `origin` alone.
    """

    graph: Graph
    path: tuple[Layer, ...]
    operations: tuple[Operation, ...]
    folded: tuple[Operation, ...]
    code: tuple[Step, ...]
    straight: bool
    template: tuple[Value, ...]
    slots: dict[tuple[int, int], int]
    parameters: Ints
    results: Ints
    dead_after: tuple[Ints, ...]
    origin: tuple[Callable[[], CompiledModel], int] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _program_again, self.origin_to_pickle()

    def origin_to_pickle(self) -> tuple[Callable[[], CompiledModel], int]:
        """Return the origin. PicklingError for a program that no model was compiled to."""
        if self.origin is None:
            raise pickle.PicklingError(f"{self!r} was not compiled from a model and cannot be pickled")
        return self.origin

    def __repr__(self) -> str:
        return f"<Program of {self.name}: {len(self.operations):,} operations>"

    @cached_property
    def has_memory(self) -> bool:
        """True if an operation in it, at any depth, does not depend on its inputs alone."""
        return any(
            operation.kind is OpKind.STATEFUL or any(plan.program.has_memory for plan in operation.plans)
            for operation in self.operations
        )

    def specialised(self, values: list[Value], code: Sequence[Step]) -> tuple[Step, ...]:
        """Return the code for the element types that the values have now, kept for the activation."""
        code = list(code)
        for index, operation in enumerate(self.operations):
            if operation.floating is not None and _all_floating([values[slot] for slot in operation.inputs]):
                code[index] = (operation.floating, *code[index][1:])
        return tuple(code)

    def unsettled(self, slots: Container[int]) -> tuple[Step, ...]:
        """Return the code, without the functions into which the values of constants in these slots have gone."""
        code = list(self.code)
        for index, operation in enumerate(self.operations):
            if operation.settled is not None and any(slot in slots for slot in operation.inputs):
                code[index] = step_of(replace(operation, settled=None))
        return tuple(code)

    def without_tables(self, section: Sequence[Step], first: int) -> Sequence[Step]:
        """Return a section of the code, from operation `first` on, for a run that keeps no values.

        If the section converts a whole table from which a Gather takes rows, the returned code takes the rows first. It
        multiplies with the table block by block: the numbers are equal, and the table is not copied.
        """
        found: list[Step] | None = None
        for convert, readers in self.tables:
            if first <= convert and readers[-1] < first + len(section):
                found = list(section) if found is None else found
                found[convert - first] = _NOTHING
                for reader in readers:
                    found[reader - first] = _spared(self.operations[convert], self.operations[reader])
        return section if found is None else found

    def put_table(self, reader: int, values: list[Value]) -> None:
        """Convert the whole table, if this operation did without, for a message on why it failed."""
        for convert in (one for one, readers in self.tables if reader in readers):
            operation = self.operations[convert]
            assert operation.function is not None
            values[operation.outputs[0]] = operation.function(values[operation.inputs[0]])

    @cached_property
    def tables(self) -> tuple[tuple[int, Ints], ...]:
        """The operations that convert a constant, each with its readers: none needs the whole, no halt is between."""
        found = []
        for index, operation in enumerate(self.operations):
            if operation.layer.type != "Convert" or operation.computed_by or operation.several_outputs:
                continue
            table, (slot,) = self.template[operation.inputs[0]], operation.outputs
            users = self.readers.get(slot, ())
            if table is None or slot in self.results or not users:
                continue
            is_straight = all(step[0] is not None for step in self.code[index : users[-1] + 1])
            if is_straight and all(_spares(operation, table, self.operations[user]) for user in users):
                found.append((index, users))
        return tuple(found)

    def slot(self, layer: int, output: int = 0) -> int:
        """Return the slot of a layer's output, by layer id and index of the output port."""
        return self.slots[layer, output]

    def parameter(self, slot: int) -> Layer:
        """Return the Parameter whose value is in this slot."""
        return self.graph.parameters[self.parameters.index(slot)]

    def declared(self, result: int) -> tuple[Shape, DType]:
        """Return shape (-1: unknown) and type that the file declares for the Result in this slot."""
        layer = self.graph.results[self.results.index(result)]
        source = self.graph.sources[layer.id][0]
        assert source is not None, "the reader has seen to it"
        port = self.graph.by_id[source.layer].outputs[source.output]
        element_type = port.element_type or layer.inputs[0].element_type or F32
        return port.dims or layer.inputs[0].dims, element_type.dtype

    @cached_property
    def computed_at(self) -> Mapping[int, int]:
        """The index of the operation that computes the value of a slot; for the slots that operations compute."""
        return {slot: index for index, operation in enumerate(self.operations) for slot in operation.outputs}

    @cached_property
    def readers(self) -> Mapping[int, Ints]:
        """The operations, by index, that read the value of a slot, each once."""
        found: dict[int, list[int]] = {}
        for index, operation in enumerate(self.operations):
            for slot in dict.fromkeys(operation.inputs):
                found.setdefault(slot, []).append(index)
        return {slot: tuple(indices) for slot, indices in found.items()}

    @cached_property
    def indices(self) -> Mapping[int, int]:
        """The index of the operation of a layer, by the id of the layer."""
        return {operation.layer.id: index for index, operation in enumerate(self.operations)}

    @cached_property
    def constant_slots(self) -> frozenset[int]:
        """The slots of Constants, and of what was computed from them at compile time."""
        own = (self.slots.get((layer.id, 0), -1) for layer in self.graph.layers if layer.type == "Constant")
        return frozenset({*own}.union(*(operation.outputs for operation in self.folded)) - {-1})

    @cached_property
    def used(self) -> frozenset[int]:
        """The ids of the layers that have a slot; the others are dead code."""
        return frozenset(layer for layer, _output in self.slots)

    @cached_property
    def holders(self) -> Ints:
        """The indices of the operations with bodies."""
        return tuple(index for index, operation in enumerate(self.operations) if operation.plans)

    @cached_property
    def producers(self) -> Mapping[int, tuple[Layer, int]]:
        """The layer that computes the value of a slot, and at which output; a Result computes none."""
        by_id = self.graph.by_id
        found: dict[int, tuple[Layer, int]] = {}
        for (layer, output), slot in self.slots.items():
            if by_id[layer].type != "Result":
                found.setdefault(slot, (by_id[layer], output))
        return found

    @cached_property
    def joined_pieces(self) -> Mapping[int, Source]:
        """Return the piece that each operation appends to a carried value, by operation index.

        A growing carried value gets longer in each iteration; the piece is its new part.
        """
        return {self.indices[one.concat]: one.piece for one in self._growths if one.piece is not None}

    @cached_property
    def _growths(self) -> tuple[Growth, ...]:
        """The carried values to which an operation joins pieces."""
        bodies = self.path[-1].bodies if self.path else ()
        edges = next((body.back_edges for body in bodies if body.graph is self.graph), ())
        found = (growth_of(self.graph, edge.from_layer, edge.to_layer) for edge in edges)
        return tuple(one for one in found if one is not None and one.concat in self.indices)

    @cached_property
    def growing(self) -> frozenset[int]:
        """The indices of operations that read a value which grows in each iteration, or follow from one that does."""
        slots = {self.slots[one.parameter, 0] for one in self._growths if (one.parameter, 0) in self.slots}
        found = set()
        for index, operation in enumerate(self.operations):
            if not slots.isdisjoint(operation.inputs):
                found.add(index)
                slots.update(operation.outputs)
        return frozenset(found)

    def shown_slot(self, slot: int) -> int:
        """Return the slot of what is new of a value in each iteration: of one that grows its piece, else the value."""
        piece = self.joined_pieces.get(self.computed_at.get(slot, -1))
        return slot if piece is None else self.slots.get((piece.layer, piece.output), slot)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The layers of the operations, in their order."""
        return tuple(operation.layer for operation in self.operations)

    @property
    def name(self) -> str:
        """The place of this graph in the model: `model`, or the names of the layers that lead to it."""
        return path_text(self.path)


def program_again(recipe: Callable[[], CompiledModel], index: int) -> tuple[CompiledModel, Program]:
    """Return the program of that place, and the compiled model that it is one of."""
    compiled = recipe()
    return compiled, compiled.programs[index]


def _program_again(recipe: Callable[[], CompiledModel], index: int) -> Program:
    return program_again(recipe, index)[1]


def _plan_again(recipe: Callable[[], CompiledModel], index: int) -> LoopPlan | BranchPlan:
    compiled, program = program_again(recipe, index)
    return host_of(compiled, program)[1]


def host_of(compiled: CompiledModel, program: Program) -> tuple[Operation, LoopPlan | BranchPlan]:
    """Return the loop or If whose body a program is, and how it runs there. UsageError if no Result needs it."""
    operations = (operation for other in compiled.programs for operation in other.operations)
    found = next(((one, plan) for one in operations for plan in one.plans if plan.program is program), None)
    if found is None:
        raise UsageError(f"{program.path[-1]} is never computed: no Result needs it")
    return found


class CompiledModel(Immutable, Record, eq=False, weakref=True):
    """A model ready to run under one rule book; `main` is the program of its own graph.

    `engine` says which partner computes what; it is empty where all is computed by kernels of our own. `recipe`
    compiles the same again: so it is pickled, and in another process it is compiled once, however often it comes.
    """

    model: Model
    rules: Rules
    main: Program
    programs: tuple[Program, ...]
    notes: tuple[tuple[str, str], ...]
    engine: str = ""
    recipe: Callable[[], CompiledModel] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self.recipe is None:
            raise pickle.PicklingError(f"{self!r} was not compiled from a model and cannot be pickled")
        return self.recipe, ()

    def __repr__(self) -> str:
        by = f", {self.engine}" if self.engine else ""
        return f"<CompiledModel under the rules {self.rules}{by}: {repr(self.model)[1:-1]}>"


_FLOATING = (np.dtype(np.float32), np.dtype(np.float64))


def _all_floating(values: list[Value]) -> bool:
    return values[0].dtype in _FLOATING and all(value.dtype == values[0].dtype for value in values)


def step_of(operation: Operation) -> Step:
    """Return the lean form of an operation."""
    inputs, outputs = operation.inputs, operation.outputs
    if operation.kind is not OpKind.KERNEL:
        return None, None, None, None
    function = operation.function
    if operation.settled is not None:
        function, inputs = operation.settled, inputs[:1]
    if operation.several_outputs or len(inputs) not in (1, 2):
        return function, (inputs, outputs if operation.several_outputs else outputs[0]), None, None
    return function, inputs[0], inputs[1] if len(inputs) == 2 else None, outputs[0]


_NOTHING: Final[Step] = (lambda: (), ((), ()), None, None)


def _spares(convert: Operation, table: Value, reader: Operation) -> bool:

    (slot,) = convert.outputs
    if reader.computed_by:
        return False
    if reader.layer.type == "Gather":
        return reader.inputs[0] == slot and slot not in reader.inputs[1:] and _keeps_zero(convert, table.dtype)
    return isinstance(reader.function, ProductByBlocks) and reader.inputs[1] == slot and reader.inputs[0] != slot


def _keeps_zero(convert: Operation, dtype: DType) -> bool:
    """Return True if 0 becomes 0, which a Gather gives for an index outside; it does not in nf4, for one."""
    assert convert.function is not None
    return not np.any(convert.function(np.zeros(1, dtype)))


def _spared(convert: Operation, reader: Operation) -> Step:
    """Return the step that does both; fails as the two do one behind the other."""

    to_type, function = convert.function, reader.function
    assert to_type is not None and function is not None
    if isinstance(function, ProductByBlocks):
        product = function

        def multiplied(a: Any, table: Any) -> Any:
            return product.of_table(a, table, to_type)

        return multiplied, ((reader.inputs[0], convert.inputs[0]), reader.outputs[0]), None, None

    def taken(table: Any, *rest: Any) -> Any:
        try:
            return to_type(function(table, *rest))
        except Exception:
            return function(to_type(table), *rest)

    return taken, ((convert.inputs[0], *reader.inputs[1:]), reader.outputs[0]), None, None


def execute(steps: Iterator[Step], values: list[Value]) -> None:
    """Run steps up to the first that is not for the hot loop (which is then taken from the iterator), or to the end.

    `is None` is the fastest test that there is, and the most frequent operations come first.
    """
    for function, a, b, out in steps:
        if b is not None:
            values[out] = function(values[a], values[b])  # type: ignore[misc, index]  # see Step
        elif out is not None:
            values[out] = function(values[a])  # type: ignore[misc]
        elif function is not None:
            execute_any(function, a, values)
        else:
            return


def execute_freeing(steps: Iterator[Step], values: list[Value], dead: Iterator[Sequence[int]]) -> None:
    """Run steps as `execute` does; after each the values of those slots go that `dead` gives for it.

    A loop of its own, because bodies run the other, and would ask in each step whether anything goes.
    """
    for (function, a, b, out), gone in zip(steps, dead, strict=False):
        if b is not None:
            values[out] = function(values[a], values[b])  # type: ignore[misc, index]  # see Step
        elif out is not None:
            values[out] = function(values[a])  # type: ignore[misc]
        elif function is not None:
            execute_any(function, a, values)
        else:
            return
        for slot in gone:
            values[slot] = None


def execute_any(function: Callable[..., Any], slots: tuple[Ints, Any], values: list[Value]) -> None:
    """Run a step that has neither one nor two inputs, or several outputs; `slots` is its `a`."""
    inputs, outputs = slots
    result = function(*[values[slot] for slot in inputs])
    if type(outputs) is int:
        values[outputs] = result
    else:
        ensure_enough(result, len(outputs))
        for slot, value in zip(outputs, result, strict=False):
            values[slot] = value


def ensure_enough(results: Sequence[Any], count: int) -> None:
    """Raise KernelError where an operation gives fewer tensors than the file has output ports for it."""
    if len(results) < count:
        raise KernelError(f"gives {len(results)} outputs, but the file has {count} output ports for it")


# Products with a large matrix in a narrow type, by blocks: each is converted when it is its turn, and none is kept.
#
# A run that keeps all values converts the whole matrix, and has the same numbers to the last bit: its products are made
# by the same blocks.

_LARGE = 2**24
"""Elements of a matrix above which products are made by blocks."""
_BLOCK = 2**22
"""Elements that are converted at once: 16 MB of f32, which stay in the processor's cache until they are multiplied."""


class ProductByBlocks:
    """A MatMul with a large matrix on the right, by blocks of the columns of the product: `function` of each block."""

    def __init__(self, function: Callable[[Array, Array], Array], *, transposed: bool) -> None:
        self.function, self._axis = function, 0 if transposed else 1

    def __call__(self, a: Array, b: Array) -> Array:
        """Return the product of two arrays."""
        return self.of_table(a, b, lambda block: block)

    def of_table(self, a: Array, table: Array, to_type: Callable[[Array], Array]) -> Array:
        """Return the product with a matrix that is converted block by block. Fails as that with the whole one does."""
        try:
            products = [self.function(a, to_type(block)) for block in self._blocks(table)]
        except Exception:
            return self.function(a, to_type(table))
        return np.concatenate(products, axis=-1)

    def _blocks(self, table: Array) -> Iterator[Array]:
        columns = table.shape[self._axis]
        each = max(_BLOCK * columns // table.size, 1)
        for first in range(0, columns, each):
            yield table[first : first + each] if self._axis == 0 else table[:, first : first + each]


def by_blocks(layer: Layer, function: Callable[..., Any], converted: Array | None) -> Callable[..., Any]:
    """Return the function of a layer; by blocks where it multiplies by a large matrix, `converted` on the way to it."""
    if converted is None or layer.type != "MatMul" or converted.ndim != 2 or converted.size <= _LARGE:
        return function
    return ProductByBlocks(function, transposed=layer.is_set("transpose_b"))


# The seam to another runtime: who computes an operation that no kernel serves, or that the user gives away.
#
# The engine knows a partner by this protocol alone. A loop, a branch, a variable and a random stream are never given
# away: they are what can be stepped through, gone back in and resumed, which only state in a machine can.

Function = Callable[..., tuple[Any, ...]]
"""From the values of a layer's inputs, in port order, to those of its outputs."""


class Partner(Protocol):
    """Provider of single operations. It may keep what it has compiled; it keeps nothing of a run."""

    @property
    def description(self) -> str:
        """The providers of operations in words; two runs of equal descriptions compute alike. A recording keeps it."""

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        """Return True if this layer is the partner's."""

    def bind(self, layer: Layer, constants: Sequence[Array | None]) -> tuple[Function, str]:
        """Return the function that computes a layer, and the provider's description for the screen.

        `constants` are the inputs that never change (None: one that does). Nothing is compiled before the first call.
        The function raises KernelError where the partner refuses the layer, UnsupportedOperation where none can.
        """


_MARKS = {"OpenVINO": "ov"}

Elsewhere = Mapping[tuple[int, int], str]
"""Who computes a layer, in words, by the id of its graph as an object and the layer's own; numpy's are not there."""


def mark_of(computed_by: str) -> str:
    """Return the mark of an operation that a partner computes, on every screen and figure: two letters, empty for none.

    `computed_by` is the words that the partner is known by.
    """
    name = computed_by.partition(" ")[0]
    return _MARKS.get(name, name[:2].lower())


def legend(computed_by: str) -> str:
    """Return the meaning of a mark: `ov: computed by OpenVINO (CPU, f32)`."""
    return f"{mark_of(computed_by)}: computed by {computed_by}"


_default: list[Partner] = []


def set_default_partner(partner: Partner) -> None:
    """Set the provider of operations without a kernel, where a run names none; the package's public names do."""
    _default[:] = [partner]


def default_partner() -> Partner | None:
    """Return the partner of a run that does not name one; None: an operation without a kernel ends the run."""
    return _default[0] if _default else None


def no_kernel(layer: Layer) -> str:
    """Return the sentence that nothing here computes this layer, with its version and its line in the file."""
    version = f"{layer.type}-{layer.definition}" if layer.definition else f"{layer.type} of {layer.version}"
    return f"there is no kernel for {version} (line {layer.line} of the model)"


def operations_elsewhere(compiled: CompiledModel) -> Iterator[tuple[Program, Operation]]:
    """Yield the operations that a partner computes, with the graphs that they are in; those never run included."""
    for program in compiled.programs:
        for operation in (*program.operations, *program.folded):
            if operation.computed_by:
                yield program, operation


def computed_elsewhere(compiled: CompiledModel) -> dict[str, Counter[str]]:
    """Return the number of operations of each type that a partner computes, by its description."""
    found: dict[str, Counter[str]] = {}
    for _program, operation in operations_elsewhere(compiled):
        found.setdefault(operation.computed_by, Counter())[operation.layer.type] += 1
    return found
