"""The facts of a whole run as frozen data, what `Debugger.overview` returns, and the rows of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import ClassVar

import numpy as np
from msgspec import field

from stepper.debug.causes.cause import NonFinite, NonFiniteKind, Scalar, TensorBrief, Verdict
from stepper.debug.causes.loop_ends import ConditionLimit
from stepper.debug.causes.nan_origins import scalar_of
from stepper.debug.inspection.views import Glance
from stepper.element_types import FLOATING, Array, Indices
from stepper.engine.loops import Control, EndReason
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program, Value
from stepper.errors import ErrorPlace
from stepper.ir.model import Layer, LayerSite, Slicing, iteration_word, layer_site
from stepper.records import Brief, Record
from stepper.tensors.histories import ValueHistory


class RunState(StrEnum):
    """How far the run of an overview has come."""

    NOT_RUN = "not run"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    PAUSED = "paused"
    OUT_OF_TIME = "out of time"
    OUT_OF_MEMORY = "out of memory"


# --- why a loop ends ------------------------------------------------------------------------------------------------


class Ending(Record):
    """Say why one run of a loop ended after its last `iteration` (-1: it did not begin).

    `limit` is the most iterations that it could run by its trip count or slices (None: unlimited). `verdict` is the
    verdict on its condition in this iteration, if it has a condition that counts, or before the first iteration.
    `is_set`: the trip count or the condition that ended it was set by hand, as `limit`, or to false whatever the body
    said.
    """

    reason: EndReason
    iteration: int
    limit: int | None
    verdict: Verdict | None = None
    is_set: bool = False


# --- loops ----------------------------------------------------------------------------------------------------------


class RowKind(StrEnum):
    """Kind of a row of a loop."""

    CONDITION = "condition"
    BACK_EDGE = "back edge"
    BIRTH = "birth"
    CONCATENATED = "concatenated output"
    LAST_VALUE = "last value"
    SLICE = "slice"
    BRANCH_OUTPUT = "output of a branch"


class Row(Record):
    """A value of a loop that is followed over the iterations.

    Column k is the value that iteration k made, or was given. `inner` is the Parameter of a back edge or slice, else
    the Result; `result` the Result of a back edge. `producer` is the layer of the body that computes the value, as its
    `output`. `port` is the index of the loop's input or output, `line` the line of its entry. `appends`: the value
    grows by a piece in each iteration, and the pieces are kept. `axis` is the axis along which pieces are joined or
    cut. `same_as` is an earlier row with the same bits in every iteration so far. For an origin, `inner` and `producer`
    are the operation in which a NaN or Inf first appears, `port` is the index of its output.
    """

    kind: RowKind
    inner: LayerSite
    result: LayerSite | None = None
    producer: LayerSite | None = None
    port: int | None = None
    line: int = 0
    axis: int | None = None
    appends: bool = False
    same_as: int | None = None
    output: int = 0


class StateRecurrence(Record):
    """Describe carried values that come again with the bits of an earlier iteration.

    They have after `iteration` the bits that they had after the iteration `before`, and depend on nothing else. So they
    have them again and again, from the iteration `since` on (None: that is too long ago to be known). `values` are the
    Parameters that they are carried to. These alone decide how long the loop runs (`decides`), or they are all of a
    loop that nothing can end.
    """

    iteration: int
    before: int
    since: int | None
    values: tuple[LayerSite, ...]
    decides: bool

    @property
    def period(self) -> int:
        """Return after how many iterations it comes again."""
        return self.iteration - self.before


class ActivationFacts(Brief):
    """Describe a run of a loop, in the iterations `outer` of the loops around it.

    `iterations` are the iterations closed so far. `limit` is the most that trip count or slices allow,
    `condition_limit` the limit of a counter in its condition. `values` are the recorded values of the loop's rows
    (None: the row of the condition, and rows without known values). `ending` None: the run has not ended. `recurrence`:
    it can never end, and its state comes again; only a run without a trip count is looked at.
    """

    unshown: ClassVar = ("values",)

    outer: Indices
    tick: int
    iterations: int
    limit: int | None
    condition_limit: ConditionLimit | None
    values: tuple[ValueHistory | None, ...]
    ending: Ending | None
    recurrence: StateRecurrence | None


class LoopFacts(Brief):
    """A TensorIterator or Loop of the model, and what its runs were.

    `depth` is how many loops and Ifs are around it. `opened_from` is the type of the sequence that it is in the file.
    `operations` are those of the body in the file, with `inner` of each type that has bodies. `never_ends`: neither
    count nor condition can end the run under way; `fixed_by` are then Parameters that the condition reads and no back
    edge leads to. `runs` counts its runs; `total`, `fewest` and `most` are iterations, `ended` counts the reasons.
    `activations` are the first and the last runs, with one that is under way.
    """

    unshown: ClassVar = ("rows", "activations")

    @property
    def iteration_word(self) -> str:
        """Return what an iteration is called: call, or iteration."""
        return iteration_word(self.opened_from)

    path: str
    layer: LayerSite
    depth: int
    opened_from: str | None
    operations: int
    inner: dict[str, int]
    control: Control
    rows: tuple[Row, ...]
    never_ends: bool
    fixed_by: tuple[LayerSite, ...] = ()
    runs: int = 0
    total: int = 0
    fewest: int = 0
    most: int = 0
    ended: dict[EndReason, int] = field(default_factory=dict)
    activations: tuple[ActivationFacts, ...] = ()


# --- the model ------------------------------------------------------------------------------------------------------


class ModelPortFacts(Record):
    """An input or output of the model: its value in short (None: not computed), and how many elements are not finite.

    `numbers` are its elements, if they are few, `text` those of texts.
    """

    name: str
    brief: TensorBrief | None
    numbers: tuple[Scalar, ...] = ()
    text: str = ""
    size: int = 0
    nan: int = 0
    infinite: int = 0


class Birth(Record):
    """A NaN or Inf that appears in an output of an operation: the first one there, and its tick.

    `after` is the tick of the earlier origin that put a NaN or Inf in its inputs. It is None where the inputs have
    none, and where that is not known, as for all but the first origins.
    """

    tick: int
    cause: NonFinite
    after: int | None = None


class ConstantFacts(Record):
    """A Constant with NaN or Inf, or an operation of a body that makes them of Constants alone.

    The operation makes them before the body runs. `output` is the output of the operation (None: a Constant). `nan` and
    `infinite` count elements; for an operation only the elements of a kind that no input of it has.
    """

    layer: LayerSite
    size: int
    nan: int
    infinite: int
    output: int | None = None


class Failure(Record):
    """The error that ended the run, and its place; `reason` is the message without that."""

    type: str
    message: str
    place: ErrorPlace | None
    reason: str

    def is_of(self, layer: LayerSite) -> bool:
        """True if this layer failed."""
        found = None if self.place is None else self.place.layer
        return found is not None and (found.id, found.name, found.line) == (layer.id, layer.name, layer.line)


class Overview(Brief):
    """Hold everything that is known of a run, and of its `loops` (see programs_of).

    `ticks`, `iterations` (of all loops), `seconds` and `bytes` (kept for time travel and for this) grow while it runs.
    `rate` is iterations a second, of the last second. `operations` counts the operations of the model's own graph by
    type. `births` are the origins found so far; they were looked for up to the tick `births_tick`. `constants` have
    some NaN or Inf by themselves, as a mask does that is -Inf (None: not all were looked at). `looked_through`: all
    that has run was looked through, and the operations of the origins have their rows.
    """

    unshown: ClassVar = ("loops", "inputs", "outputs")

    state: RunState
    ticks: int
    iterations: int
    seconds: float
    rate: float
    bytes: int
    inputs: tuple[ModelPortFacts, ...]
    outputs: tuple[ModelPortFacts, ...]
    operations: dict[str, int]
    loops: tuple[LoopFacts, ...]
    births: tuple[Birth, ...] = ()
    births_tick: int = 0
    constants: tuple[ConstantFacts, ...] | None = None
    looked_through: bool = False
    failure: Failure | None = None

    @property
    def births_share(self) -> float:
        """Return which share of the executed run was searched for origins of NaN and Inf."""
        return min(self.births_tick / self.ticks, 1.0) if self.ticks else 0.0

    @property
    def births_complete(self) -> bool:
        """True if all origins of the whole run are known, and the NaN and Inf of the model itself."""
        is_over = self.state in (RunState.FINISHED, RunState.FAILED)
        return is_over and self.births_tick >= self.ticks and self.constants is not None

    @property
    def seen_non_finite(self) -> tuple[NonFiniteKind, ...]:
        """Return which of NaN and Inf the inputs, outputs and carried values have.

        Without an origin, a value came in, as a mask does that is -Inf. Values that no row shows, as values in the
        middle of a body, are not known.
        """
        ports = (*self.inputs, *self.outputs)
        runs = (run for loop in self.loops for run in loop.activations)
        values = [one for run in runs for one in run.values if one is not None]
        found = {
            NonFiniteKind.NAN: any(one.nan for one in ports) or any(one.first_nan is not None for one in values),
            NonFiniteKind.INF: any(one.infinite for one in ports)
            or any(one.first_infinite is not None for one in values),
        }
        return tuple(kind for kind, is_there in found.items() if is_there)


def recurrence_in(overview: Overview | None, glance: Glance) -> StateRecurrence | None:
    """Return what comes again and again in the loop in which a run is, as is known of the only run of that loop."""
    if overview is None or glance.loop is None:
        return None
    for one in overview.loops:
        is_it = (one.layer.id, one.layer.name, one.runs) == (glance.loop.id, glance.loop.name, 1)
        found = one.activations[-1].recurrence if is_it and one.activations else None
        if found is not None and (glance.iteration or 0) > found.iteration:
            return found
    return None


def loops_of(compiled: CompiledModel) -> Iterator[tuple[Program, Operation, LoopPlan]]:
    """Yield the loops of a model, outer before inner: the graph of each, its operation, and what it does."""
    for program in sorted(compiled.programs, key=lambda one: len(one.path)):
        for operation in program.operations:
            if operation.plans and isinstance(operation.plans[0], LoopPlan):
                yield program, operation, operation.plans[0]


def programs_of(compiled: CompiledModel) -> list[Program]:
    """Return the programs of the bodies of all loops, in the order in which an overview has them."""
    return [plan.program for _, _, plan in loops_of(compiled)]


def in_order(compiled: CompiledModel) -> list[int]:
    """Return the indices of the loops in the order of the model, inner ones behind the outer one."""
    from stepper.debug.moments.moment import order_at

    bodies = programs_of(compiled)
    return sorted(range(len(bodies)), key=lambda k: order_at(compiled, bodies[k], (None,) * len(bodies[k].path)))


def address_in_loop(program: Program, outer: Sequence[int], iteration: int, compiled: CompiledModel) -> str:
    """Return the address of an iteration of a loop's body, empty for a body without operations.

    `outer` are the iterations of the loops around it, from the outside inwards.
    """
    from stepper.debug.loop_runs import address_in_run  # the first picture has no address
    from stepper.query.address_resolution import Atlas, from_main, layer_address

    if not program.operations:
        return ""
    *around, loop = program.path
    full = layer_address(loop, Atlas(compiled).ancestor(program, len(around)), compiled)
    known = iter(outer)
    iterations = [next(known, None) if layer.is_loop else None for layer in around]
    return str(address_in_run(from_main(full), program, iterations, iteration))


MOST_NUMBERS = 64
"""Elements of a value that is given with all of them."""
MOST_LETTERS = 256


def port_facts(name: str, value: Value | None) -> ModelPortFacts:
    """Return the facts of an input or output of the model."""
    from stepper.debug.provenance.operation_at import brief_of  # the first picture is of no run

    if value is None:
        return ModelPortFacts(name, None)
    array = np.asarray(value)
    may_be_bad = array.dtype in FLOATING and not np.isfinite(array).all()
    return ModelPortFacts(
        name,
        brief_of(value),
        _numbers_of(array),
        text_of(array),
        int(array.size),
        int(np.isnan(array).sum()) if may_be_bad else 0,
        int(np.isinf(array).sum()) if may_be_bad else 0,
    )


def _numbers_of(value: Array) -> tuple[Scalar, ...]:
    if value.size > MOST_NUMBERS:
        return ()
    return tuple(found for one in value.reshape(-1) if (found := scalar_of(one)) is not None)


def text_of(value: Array) -> str:
    """Return texts as one; empty for numbers, and where it is long."""
    if not 0 < value.size <= MOST_NUMBERS or value.dtype.kind not in "UT":
        return ""
    text = " ".join(value.reshape(-1).tolist())
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}..."


_VIEWS = frozenset(("Squeeze", "Unsqueeze", "Reshape"))
"""Types of operations that give the elements of their first input in another shape."""


class LoopRows:
    """Rows of a loop, and from which slot each one's values are taken; a slot of several rows is kept once."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.taken: list[int | None] = []
        self.slots: list[int] = []

    def add(self, row: Row, slot: int | None) -> None:
        """Add a row; without a slot nothing is kept of it."""
        if slot is not None and slot not in self.slots:
            self.slots.append(slot)
        self.rows.append(row)
        self.taken.append(None if slot is None else self.slots.index(slot))

    def separate(self, kind: RowKind) -> None:
        """Keep the values of rows of a kind beside those of other rows of the same slot."""
        for index, (row, place) in enumerate(zip(self.rows, self.taken, strict=True)):
            others = (at for at, other in enumerate(self.rows) if other.kind is not kind and self.taken[at] == place)
            if row.kind is kind and place is not None and next(others, None) is not None:
                self.slots.append(self.slots[place])
                self.taken[index] = len(self.slots) - 1

    def follow(self, program: Program, followed: Sequence[tuple[int, int, int]], file: str) -> None:
        """Add rows for outputs of operations that no other row shows: (index of the operation, of its output, slot)."""
        for index, output, slot in followed:
            if slot not in self.slots:
                site = layer_site(program.operations[index].layer, file)
                self.add(Row(RowKind.BIRTH, site, producer=site, port=output, line=site.line, output=output), slot)

    def viewed(self, program: Program) -> dict[int, int]:
        """Return places of slots that have the elements of another slot in another shape.

        The result maps a place in `slots` to the place of the other slot. A carried value has its own place, because
        something entered.
        """
        rows = zip(self.rows, self.taken, strict=True)
        handed_on = {place for row, place in rows if row.kind is RowKind.BACK_EDGE}
        found = {}
        for place, origin in enumerate(self.slots):
            if place in handed_on:
                continue
            while (index := program.computed_at.get(origin)) is not None:
                operation = program.operations[index]
                if operation.layer.type not in _VIEWS:
                    break
                origin = operation.inputs[0]
                if origin in self.slots:
                    found[place] = self.slots.index(origin)
        return found

    def shown(self) -> dict[int, int]:
        """Return by slot the first row that shows it unchanged; back edges do not count."""
        found: dict[int, int] = {}
        for index, (row, place) in enumerate(zip(self.rows, self.taken, strict=True)):
            if place is not None and row.kind is not RowKind.BACK_EDGE:
                found.setdefault(self.slots[place], index)
        return found


def loop_rows(layer: Layer, plan: LoopPlan, file: str) -> LoopRows:
    """Return the rows of a loop: condition, back edges, outputs, slices."""
    program, body, slots = plan.program, layer.bodies[0], LoopRows()

    def result(slot: int) -> LayerSite:
        return layer_site(program.graph.results[program.results.index(slot)], file)

    def add(
        kind: RowKind,
        inner: LayerSite,
        made: int,
        into: LayerSite | None = None,
        *,
        port: int | None = None,
        line: int,
        slicing: Slicing | None = None,
    ) -> None:
        """Add a row of what is `made`, or of the piece that this grows by."""
        slot = program.shown_slot(made) if slicing is None else made
        axis = slicing.axis if slicing is not None else None if slot == made else _joined_along(program, made)
        producer, output, index = None, 0, program.computed_at.get(slot)
        if index is not None:
            operation = program.operations[index]
            producer, output = layer_site(operation.layer, file), operation.outputs.index(slot)
        row = Row(kind, inner, into, producer, port, line, axis, slot != made, output=output)
        slots.add(row, None if kind is RowKind.CONDITION else slot)

    if plan.condition_result is not None:
        line = next((one.line for one in body.outputs if one.output is None), 0)
        add(RowKind.CONDITION, result(plan.condition_result), plan.condition_result, line=line)
    for entry in plan.merged:
        parameter = program.parameter(entry.parameter)
        line = next((edge.line for edge in body.back_edges if edge.to_layer == parameter.id), 0)
        site, into = layer_site(parameter, file), result(entry.result)
        add(RowKind.BACK_EDGE, site, entry.result, into, port=entry.input, line=line)
    for scan in plan.concatenated:
        site = result(scan.result)
        add(RowKind.CONCATENATED, site, scan.result, port=scan.output, line=scan.line, slicing=scan.slicing)
    for last in plan.last_values:
        add(RowKind.LAST_VALUE, result(last.result), last.result, port=last.output, line=last.line)
    for sliced in plan.sliced:
        site = layer_site(program.parameter(sliced.parameter), file)
        row = Row(RowKind.SLICE, site, None, site, sliced.input, sliced.line, sliced.slicing.axis)
        slots.add(row, sliced.parameter)
    return slots


def _joined_along(program: Program, result: int) -> int | None:
    """Return the axis along which a body joins a piece to its Parameter; None where it is counted from the end."""
    axis = str(program.operations[program.computed_at[result]].layer.attributes.get("axis", ""))
    return int(axis) if axis.isdecimal() else None
