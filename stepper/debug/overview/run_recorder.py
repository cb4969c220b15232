"""The observer that keeps the values of all loops of a run over their iterations, in constant memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.debug.causes.loop_ends import ConditionLimit, Verdicts, condition_limit, is_end_set, never_ends
from stepper.debug.moments.moment import iterations_of
from stepper.debug.overview.overview_facts import (
    ActivationFacts,
    Ending,
    LoopFacts,
    Row,
    RowKind,
    StateRecurrence,
    loop_rows,
    loops_of,
)
from stepper.debug.provenance.operation_at import file_of
from stepper.element_types import Array
from stepper.engine.compiler import ancestors
from stepper.engine.frames import Activation, Frame, Frames, Phase, RunObserver, Slices, Taps
from stepper.engine.loops import EndReason, MergedInput, Scan, control, roles_of
from stepper.engine.program import CompiledModel, LoopPlan, Operation, Program, Value
from stepper.ir.model import LayerSite, Model, Source, layer_site
from stepper.tensors.histories import Capacity, HistoryRecorder, ShapeRecorder, ValueHistory, bits_of

_BYTES_KEPT = 2**22
"""Bytes of the last states, searched for a state that comes again; at least one state."""


class Return(NamedTuple):
    """After `iteration` all has the bits that it had after the iteration `before`; no nearer one has them.

    What depends on nothing else repeats from the iteration `since` on (None: that is too long ago to be known).
    """

    iteration: int
    before: int
    since: int | None


class _SettledBits(NamedTuple):
    """Hold a value in successive iterations: type and shape, and bits as [iteration, word]."""

    kind: object
    bits: Array


_States = list[_SettledBits]
"""All values, in the same iterations."""


class RecurrenceSearch:
    """Looks for the first return of a state.

    One iteration is remembered (Brent's way) beside the iterations at hand. `note` takes the bits of each of so many
    values in the iterations since `look` was called last.
    """

    def __init__(self, values: int) -> None:
        self._noted: list[_States] = [[] for _ in range(values)]
        self._remembered: _States | None = None
        self._at, self._reach = 0, 0
        self._count = 0
        self._last: list[_States] = []
        """The last states before those that are noted, from the iteration `_begin` on."""
        self._begin, self._is_first = 0, True
        self.found: Return | None = None

    def note(self, value: int, kind: object, bits: Array) -> None:
        """Take the bits of a value, by its place, of type and shape `kind`."""
        if self.found is None:
            self._noted[value].append(_SettledBits(kind, bits))

    def forget(self) -> None:
        """Let go of all states: nothing comes any more, or nothing is looked for."""
        self._noted, self._remembered, self._last = [[] for _ in self._noted], None, []

    def look(self, count: int) -> None:
        """Compare what was noted of the iterations up to `count`, and forget most of it."""
        if self.found is not None or count == self._count:
            return
        first, made = self._count, count - self._count
        noted, self._count = self._noted, count
        self._noted = [[] for _ in noted]
        joined = [_joined(parts) for parts in noted]
        state = [one for one in joined if one is not None and len(one.bits) == made]
        if len(state) < len(noted):  # texts, or values that change their shapes
            self.forget()
            self._begin, self._is_first = count, False
            return
        if self._last and not _are_alike(self._last[-1], state):  # none of them comes again, as far as is known
            self._last, self._begin, self._is_first = [], first, True
        again = self._return_in(state, first)
        if again is not None:
            self.found = Return(*again, self._since(state, again[0] - again[1]))
            self.forget()
            return
        if self._remembered is None or count - 1 - self._at >= self._reach:
            self._reach = 2 * (count - 1 - self._at) if self._remembered is not None else made
            self._remembered = [_SettledBits(one.kind, one.bits[-1:].copy()) for one in state]
            self._at = count - 1
        self._keep(state)

    def _return_in(self, state: _States, first: int) -> tuple[int, int] | None:
        """Return an iteration of these, from `first` on, and the nearest one before it in which all was the same."""
        remembered, made = self._remembered, len(state[0].bits)
        if remembered is not None and _are_alike(remembered, state):
            again = _same(state, [one.bits[0] for one in remembered], made)
            if again.size:
                return first + int(again[0]), self._at
        again = _same(state, [one.bits[-1] for one in state], made - 1)
        return (first + made - 1, first + int(again[-1])) if again.size else None

    def _since(self, state: _States, period: int) -> int | None:
        """Return from which iteration on each state equals the state one period later.

        None if states were equal even before the earliest known state.
        """
        count = self._count - self._begin - period
        if count <= 0:
            return None
        differs = np.zeros(count, np.bool_)
        for place in range(len(state)):
            bits = np.concatenate([*(states[place].bits for states in self._last), state[place].bits])
            differs |= (bits[period:] != bits[:count]).any(axis=1)
        if differs[-1]:
            return None
        if not differs.any():
            return self._begin if self._is_first else None
        return self._begin + int(np.flatnonzero(differs)[-1]) + 1

    def _keep(self, state: _States) -> None:
        """Keep the last of these states with those before, as many as have room."""
        each = sum(one.bits[:1].nbytes for one in state) + 1
        kept, made = max(_BYTES_KEPT // each, 1), len(state[0].bits)
        self._last.append([_SettledBits(one.kind, one.bits[-kept:].copy()) for one in state])
        while len(self._last) > 1 and self._count - self._begin > kept:
            self._begin, self._is_first = self._begin + len(self._last.pop(0)[0].bits), False
        if made > kept:
            self._begin, self._is_first = self._count - kept, False


def _joined(parts: Sequence[_SettledBits]) -> _SettledBits | None:
    """Return what was noted of one value as one; None where it has several types or shapes, or nothing was noted."""
    if not parts or any(one.kind != parts[0].kind for one in parts):
        return None
    return parts[0] if len(parts) == 1 else _SettledBits(parts[0].kind, np.concatenate([one.bits for one in parts]))


def _are_alike(one: _States, other: _States) -> bool:
    """True if all values have the types and shapes of others."""
    return [value.kind for value in one] == [value.kind for value in other]


def _same(state: _States, row: list[Array], count: int) -> Array:
    """Return the places among the first `count` iterations at which all bits are those of a row."""
    places = np.arange(count)
    for part, one in sorted(zip(state, row, strict=True), key=lambda pair: pair[0].bits.shape[1]):
        if part.bits.shape[1]:
            places = places[part.bits[places, 0] == one[0]]  # most differ in their first word
            places = places[(part.bits[places] == one).all(axis=1)]
    return places


FIRST_RUNS = 16
LAST_RUNS = 16
"""Runs of a loop whose values are kept, of those inside of other loops."""
_FIRST_LOOK = 32
"""Iterations after which it is looked for a state that comes again; then after twice as many, up to full batches."""
_MOST_WAITING = 2048
_MOST_WAITING_NUMBERS = 2**14
_BYTES_WAITING = 2**23
_ELEMENTS_CUT = 2**20
_OUTER = Capacity()
_INNER = Capacity(32, 64)


class _ActivationRecorder:
    """Record of one run of a loop so far."""

    def __init__(
        self,
        number: int,
        stack: Frames,
        slots: Sequence[int],
        viewed: Mapping[int, int],
        capacity: Capacity,
        *,
        cuts_later: bool,
        has_pieces: bool,
    ) -> None:
        frame = stack[-1]
        activation, plan = frame.active, frame.loop
        assert plan is not None
        self.number = number
        self.outer = iterations_of(stack[:-1])
        self.tick = activation.entered
        self.limit = activation.limit
        self.condition_limit: ConditionLimit | None = None
        self.iterations = 0
        self.is_over = False
        self.ending: Ending | None = None
        entered = {entry.result: frame.values[entry.parameter] for entry in reversed(plan.merged)}
        own = {
            place: HistoryRecorder(capacity, entered.get(slot))
            for place, slot in enumerate(slots)
            if place not in viewed
        }
        self.histories = [own[viewed.get(place, place)] for place in range(len(slots))]
        self.own_places = tuple(own)
        """Places with a recorder of their own, which no other place shares."""
        self._own = tuple(own.values())
        self._shapes = {place: ShapeRecorder() for place in viewed}
        pairs = [(history, slots[place]) for place, history in own.items()]
        sources = {taken.parameter: taken for taken in activation.slices} if cuts_later else {}
        self._cut = [(history, sources[slot]) for history, slot in pairs if slot in sources]
        joined = {scan.result for scan in activation.scans if has_pieces and scan.result not in sources}
        self._joined = [(history, slot) for history, slot in pairs if slot in joined]
        self.scans: Sequence[Scan] = ()
        self._taken = [(history, slot) for history, slot in pairs if slot not in sources and slot not in joined]
        self._viewed = [(shapes.append, slots[place]) for place, shapes in self._shapes.items()]
        self.appends = [*((history.append, slot) for history, slot in self._taken), *self._viewed]
        self.waits = [*self.appends, *self._joined]
        """Values that wait to be settled, here or in what the loop gives, with their slots."""
        self._known: tuple[ValueHistory | None, ...] | None = None
        self._state: tuple[LayerSite, ...] = ()
        self._decides = True
        self._returns: RecurrenceSearch | None = None

    def look_for_recurrence(self, state: Mapping[int, LayerSite], *, decides: bool) -> None:
        """Look whether carried values, by their places, come again together.

        They depend on nothing else; `decides`: nor does how long the loop runs.
        """
        self._state, self._decides = tuple(state.values()), decides
        self._returns = RecurrenceSearch(len(state))
        for value, place in enumerate(state):
            self.histories[place].noted = partial(self._returns.note, value)

    @property
    def looks_for_recurrence(self) -> bool:
        """True if it is looked for a state that comes again, and none was found."""
        return self._returns is not None and self._returns.found is None

    @property
    def recurrence(self) -> StateRecurrence | None:
        """Return which state has come again, so that it comes for ever."""
        found = None if self._returns is None or self.is_over else self._returns.found
        if found is None:
            return None
        return StateRecurrence(found.iteration, found.before, found.since, self._state, self._decides)

    def quicken(self, values: Sequence[Value]) -> bool:
        """Take single numbers as bytes; True if all rows are such."""
        quick = [history.quicken(values[slot]) for history, slot in self._taken]
        quick += [values[slot].size == 1 for _, slot in self._joined]
        self.appends = [(history.append, slot) for history, slot in self._taken]
        if not all(quick):
            self.appends += self._viewed
        return all(quick)

    def forget(self) -> None:
        """The run has ended, and all is settled: what the loop gives may go, and what was looked for in it."""
        self.scans = ()
        if self._returns is not None:
            self._returns.forget()

    def _take_pieces(self) -> None:
        """Take the values that the loop keeps by itself from what it keeps, many at once."""
        scans = {scan.result: scan for scan in self.scans}
        for history, slot in self._joined:
            if slot in scans:
                for stack in scans[slot].stacks(history.count, self.iterations):
                    history.extend(stack.reshape(len(stack), stack[0].size), stack[0])

    def settle(self) -> None:
        """Put into bins what was appended."""
        self._take_pieces()
        for history in self._own:
            history.settle()
        for shapes in self._shapes.values():
            shapes.settle()
        if self._returns is not None and not self.is_over:
            self._returns.look(self.iterations)

    @property
    def nbytes(self) -> int:
        """Return the memory of what is kept, in bytes."""
        return sum(history.nbytes for history in self._own)

    def cut(self) -> None:
        """Take the slices of the iterations so far from what they are slices of, many at once."""
        for history, taken in self._cut:
            end = min(self.iterations, taken.walk.count)
            many = max(1, _ELEMENTS_CUT * taken.walk.count // max(taken.source.size, 1))
            for begin in range(history.count, end, many):
                history.extend(*_slices(taken, begin, min(begin + many, end)))

    @property
    def waiting(self) -> int:
        """Return how many iterations are not settled."""
        if self._taken:
            return self._taken[0][0].waiting
        if self._joined:
            return self.iterations - self._joined[0][0].count
        return max((shapes.waiting for shapes in self._shapes.values()), default=0)

    def view(self, taken: Sequence[int | None]) -> ActivationFacts:
        """Return the facts of the run so far; an ended run builds its values once."""
        known = self._known
        if known is None:
            self.cut()
            own = {history: history.view() for history in self._own}
            views = [own[history] for history in self.histories]
            for place, shapes in self._shapes.items():
                views[place] = shapes.view(views[place])
            known = tuple(None if place is None else views[place] for place in taken)
            self._known = None if self.ending is None else known
        return ActivationFacts(
            outer=self.outer,
            tick=self.tick,
            iterations=self.iterations,
            limit=self.limit,
            condition_limit=self.condition_limit,
            values=known,
            ending=self.ending,
            recurrence=self.recurrence,
        )


class _LoopRecord:
    """All runs of one loop."""

    def __init__(
        self,
        model: Model,
        program: Program,
        operation: Operation,
        plan: LoopPlan,
        capacity: Capacity,
        followed: Sequence[tuple[int, int, int]] = (),
        *,
        cuts_later: bool,
        edited: bool,
    ) -> None:
        self.operation, self.program, self.plan, self.capacity = operation, program, plan, capacity
        self.cuts_later = cuts_later
        self.file = str(model.path)
        self.slots = loop_rows(operation.layer, plan, self.file)
        if edited:  # a value that is set when its iteration is closed is handed on, but its piece is joined already
            self.slots.separate(RowKind.CONCATENATED)
        self.slots.follow(plan.program, followed, self.file)
        self.viewed = {} if edited else self.slots.viewed(plan.program)
        self.edited = edited
        self.control = control(model, program.graph, operation.layer)
        self.first: list[_ActivationRecorder] = []
        self.last: deque[_ActivationRecorder] = deque(maxlen=LAST_RUNS)
        self.current: _ActivationRecorder | None = None
        self.most = self._fullest = 1
        self.runs = self.total = self.fewest = self.largest = 0
        self.ended: Counter[EndReason] = Counter()
        self.checksums: list[int | None] = [0] * len(self.slots.slots)
        self._never_ends = False
        self._deciding = self._kept_of(plan.deciding or ())
        has_more = plan.sliced or plan.current_iteration or plan.program.has_memory
        self._whole = self._kept_of(() if has_more else plan.merged)

    def begin(self, stack: Frames) -> None:
        """A run of the loop begins."""
        self.current = run = _ActivationRecorder(
            self.runs,
            stack,
            self.slots.slots,
            self.viewed,
            self.capacity,
            cuts_later=self.cuts_later,
            has_pieces=not self.edited,  # else a value may be another one than its piece
        )
        for history, checksum in zip(run.histories, self.checksums, strict=True):
            history.checksum = checksum
        self.runs += 1
        self.most = self._fullest = 1
        self._never_ends = never_ends(stack[-1].active)

    def _kept_of(self, entries: Sequence[MergedInput]) -> dict[int, LayerSite]:
        """Return by place carried values that depend on nothing else; none where not all are kept.

        Nor of a run in which values are set by hand, which may be others than what the body makes of them.
        """
        slots = self.slots.slots
        if self.edited or not all(entry.result in slots for entry in entries):
            return {}
        program = self.plan.program
        return {
            slots.index(entry.result): layer_site(program.parameter(entry.parameter), self.file) for entry in entries
        }

    @property
    def never_ends(self) -> bool:
        """True if nothing can end the run that is under way, or the last one."""
        return self._never_ends or (self.current is not None and self.current.recurrence is not None)

    def close(self, frame: Frame) -> None:
        """An iteration was closed."""
        run, values, activation = self.current, frame.values, frame.active
        if run is None:
            return
        if self.edited:
            self.settle_if_due()
        for append, slot in run.appends:
            append(values[slot])
        if activation.iteration == 0:
            if run.number == 0 and not self.edited:  # else a value may be set by hand after it was looked at
                self._tell_apart(run, values)
            size = sum(values[slot].nbytes for _, slot in run.waits)
            self._fullest = max(1, min(_MOST_WAITING, _BYTES_WAITING // (size + 1)))
            if not self.plan.may_grow and self.plan.program.straight and run.quicken(values):
                self._fullest = _MOST_WAITING_NUMBERS
            run.condition_limit = condition_limit(frame)
            self._never_ends = never_ends(activation, closed=1)
            state = self._deciding or (self._whole if self._never_ends else {})
            if state and activation.limit is None:
                run.look_for_recurrence(state, decides=bool(self._deciding))
            self.most = self._batch(run)
        self.count(frame)
        if activation.ended is not None:
            run.ending = self._ending(frame)
        if not self.edited:  # else the next one settles, for what waits may still be changed
            self.settle_if_due()

    def _tell_apart(self, run: _ActivationRecorder, values: Sequence[Value]) -> None:
        """Ask for no checksums of rows that already have other bits than all others in the first iteration."""
        bits = {place: bits_of(values[self.slots.slots[place]]) for place in run.own_places}
        alike = Counter(bits.values())
        for place, one in bits.items():
            if alike[one] == 1:
                run.histories[place].checksum = None

    def settle_if_due(self) -> None:
        """Put into bins what was appended, where that is much."""
        if self.current is not None and self.current.waiting >= self.most:
            self.settle()

    def changed(self, frame: Frame, slot: int | None) -> None:
        """A value of an iteration that is closed was changed, or whether there is another iteration."""
        run, activation = self.current, frame.active
        if run is None or frame.phase is Phase.RUNNING or activation.iteration < 0:
            return
        if slot is None:
            run.limit = activation.limit
            run.ending = None if activation.ended is None else self._ending(frame)
            return
        rows = zip(self.slots.rows, self.slots.taken, strict=True)
        joined = {place for row, place in rows if row.kind is RowKind.CONCATENATED}
        for place, (history, at) in enumerate(zip(run.histories, self.slots.slots, strict=True)):
            if at == slot and place not in joined and history.waiting:
                history.replace_last(frame.values[slot])

    def count(self, frame: Frame) -> None:
        """Take over how many iterations the frame has closed."""
        run, activation = self.current, frame.active
        assert run is not None
        before = run.iterations
        run.iterations = activation.iteration + (0 if frame.phase is Phase.RUNNING else 1)
        run.limit, run.is_over = activation.limit, activation.ended is not None
        run.scans = activation.scans
        self.total += run.iterations - before

    def settle(self) -> None:
        """Put into bins what was appended."""
        if self.current is not None:
            self.current.settle()
            self.most = self._batch(self.current)

    def _batch(self, run: _ActivationRecorder) -> int:
        """Return how many iterations are settled together: few at first where a state may come again.

        But more than in runs that have ended: where a loop has many short ones, none is held up.
        """
        few = max(run.iterations, _FIRST_LOOK, 2 * self.largest)
        return min(self._fullest, few) if run.looks_for_recurrence else self._fullest

    def _ending(self, frame: Frame) -> Ending:
        activation = frame.active
        assert activation.ended is not None
        slot = self.plan.condition_result
        verdict = (
            None
            if slot is None or activation.iteration < 0
            else Verdicts(frame, self.file, self.slots.shown()).of(slot)
        )
        is_set = is_end_set(activation, frame.values)
        return Ending(activation.ended, activation.iteration, activation.limit, verdict, is_set)

    def leave(self, activation: Activation, around: Frame) -> None:
        """The run has ended."""
        run, self.current = self.current, None
        if run is None or activation.ended is None:
            return
        run.settle()
        run.forget()
        self.checksums = [history.checksum for history in run.histories]
        if run.ending is None:
            verdict = None
            if activation.ended is EndReason.INITIAL_CONDITION and self.plan.condition is not None:
                verdict = Verdicts(around, self.file, {}).of(self.operation.inputs[self.plan.condition])
            is_set = is_end_set(activation, None)
            run.ending = Ending(activation.ended, activation.iteration, activation.limit, verdict, is_set)
        count = run.iterations
        self.fewest = count if not self.ended else min(self.fewest, count)
        self.largest = max(self.largest, count)
        self.ended[activation.ended] += 1
        if len(self.first) < FIRST_RUNS:
            self.first.append(run)
        else:
            self.last.append(run)

    @property
    def kept(self) -> list[_ActivationRecorder]:
        """Return the runs with kept values, in order."""
        return [*self.first, *self.last, *([] if self.current is None else [self.current])]

    @property
    def nbytes(self) -> int:
        """Return the memory of what is kept, in bytes."""
        return sum(run.nbytes for run in self.kept)

    def view(self) -> LoopFacts:
        """Return the facts as they stand."""
        self.settle()
        layer, plan = self.operation.layer, self.plan
        runs = tuple(run.view(self.slots.taken) for run in self.kept)
        inner = Counter(one.layer.type for one in plan.program.operations if one.plans)
        return LoopFacts(
            path=f"{self.program.name} > {layer.type} '{layer.name}'",
            layer=layer_site(layer, self.file),
            depth=len(self.program.path),
            opened_from=layer.opened_from,
            operations=len(plan.program.graph.operations),
            inner=dict(inner),
            control=self.control,
            rows=self._rows(runs),
            never_ends=self.never_ends,
            fixed_by=self._fixed_by() if self.never_ends else (),
            runs=self.runs,
            total=self.total,
            fewest=self.fewest,
            most=self.largest,
            ended=dict(self.ended),
            activations=runs,
        )

    def _fixed_by(self) -> tuple[LayerSite, ...]:
        """Return the Parameters that the condition reads and no back edge leads to."""
        graph, result = self.plan.program.graph, self.control.goes_on
        if result is None or not self.plan.fixed_condition:
            return ()
        read = ancestors(graph, Source(result.layer.id, 0))
        return tuple(
            layer_site(graph.by_id[entry.parameter], self.file)
            for entry in roles_of(self.operation.layer).invariant
            if entry.parameter in read
        )

    def _rows(self, runs: Sequence[ActivationFacts]) -> tuple[Row, ...]:
        """Return the rows, with those that have the same bits as an earlier one."""
        run = next((one for one in reversed(self.kept) if one.iterations), None)
        rows, seen = [], dict[object, int]()
        for index, (row, place) in enumerate(zip(self.slots.rows, self.slots.taken, strict=True)):
            key: object = None if place is None else self.viewed.get(place, place)
            if place is not None and run is not None and run.histories[place].is_comparable:
                history = run.histories[place]
                key = history.type, history.checksum, history.bytes_each
            if place is not None and key in seen:
                row = replace(row, same_as=seen[key])
            elif place is not None:
                seen[key] = index
            rows.append(row)
        return tuple(rows)


class RunRecorder(RunObserver):
    """Keeps the values that the loops of a run take in, carry and give.

    It sees the run once, from its start. `edited`: a user may set values on the way, so a slice need not equal its
    source. `followed` are outputs of operations that get rows as well, by the `id` of the program: (index, index of the
    output, slot).
    """

    def __init__(
        self,
        compiled: CompiledModel,
        *,
        edited: bool = False,
        followed: Mapping[int, Sequence[tuple[int, int, int]]] = MappingProxyType({}),
    ) -> None:
        self._loops: dict[int, _LoopRecord] = {}
        for program, operation, plan in loops_of(compiled):
            key = id(plan.program)
            self._loops[key] = _LoopRecord(
                compiled.model,
                program,
                operation,
                plan,
                _INNER if any(layer.is_loop for layer in program.path) else _OUTER,
                followed.get(key, ()),
                cuts_later=not (program.path or edited),
                edited=edited,
            )
        self._file = file_of(compiled)

    # --- what the machine tells ----------------------------------------------------------------------------------

    def entered(self, stack: Frames) -> None:
        """Begin a run of a loop."""
        record = self._loops.get(id(stack[-1].program))
        if record is not None:
            record.begin(stack)

    def iteration_closed(self, frame: Frame) -> None:
        """Take the values of the iteration."""
        record = self._loops.get(id(frame.program))
        if record is not None:
            record.close(frame)

    def taps(self, frame: Frame) -> Taps | None:
        """Return what is taken from the iterations of a straight body."""
        record = self._loops.get(id(frame.program))
        if record is None or record.current is None:
            return None

        if record.edited:
            record.settle_if_due()

        def done() -> None:
            assert record is not None and record.current is not None
            record.count(frame)
            if not record.edited:
                record.settle_if_due()

        return Taps(record.current.appends, max(record.most - record.current.waiting, 1), done)

    def changed(self, frame: Frame, slot: int | None) -> None:
        """Take over what was changed by hand in an iteration that is closed."""
        record = self._loops.get(id(frame.program))
        if record is not None:
            record.changed(frame, slot)

    def loop_left(self, stack: Frames, activation: Activation) -> None:
        """End a run of a loop."""
        plan = activation.plan
        record = self._loops.get(id(plan.program))
        if record is not None:
            record.leave(activation, stack[-1])

    # --- what is known -------------------------------------------------------------------------------------------

    @property
    def iterations(self) -> int:
        """Return how many iterations of all loops were closed."""
        return sum(record.total for record in self._loops.values())

    @property
    def never_ends(self) -> bool:
        """True if a loop is under way that neither count nor condition can end."""
        return any(record.never_ends and record.current is not None for record in self._loops.values())

    @property
    def nbytes(self) -> int:
        """Return the memory of what is kept, in bytes."""
        return sum(record.nbytes for record in self._loops.values())

    def first_non_finite(self) -> int | None:
        """Return the tick at which the first iteration begins that has a NaN or Inf in a row.

        Only loops without nested graphs count; their iterations have as many ticks each. None if there is none.
        """
        found = [
            run.tick + iteration * (len(record.plan.program.code) + 2)
            for record in self._loops.values()
            if record.plan.program.straight
            for run in record.kept
            for history in run.histories
            if (iteration := history.first_non_finite) is not None
        ]
        return min(found, default=None)

    def view(self) -> tuple[LoopFacts, ...]:
        """Return the facts of all loops, outer before inner."""
        return tuple(record.view() for record in self._loops.values())


# --- rows -----------------------------------------------------------------------------------------------------------


def _slices(taken: Slices, begin: int, end: int) -> tuple[Array, Array]:
    """Return the slices of iterations [begin, end) as [iteration, element], and the first slice."""
    walk, source = taken.walk, np.moveaxis(taken.source, taken.walk.axis, 0)
    first, last = sorted((begin, end - 1), key=lambda iteration: walk.range(iteration)[0])
    low, high = walk.range(first)[0], walk.range(last)[1]
    parts = source[low:high].reshape(end - begin, walk.size, *source.shape[1:])
    if walk.step < 0:
        parts = parts[::-1]
    stack = np.moveaxis(parts, 1, walk.axis + 1)
    return np.ascontiguousarray(stack).reshape(end - begin, -1), stack[0]
