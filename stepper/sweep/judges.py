"""Judges of the inputs of a sweep: what breakpoints stop at, or findings of `check`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from stepper.debug.breakpoints.data_breakpoints import break_description
from stepper.debug.causes.cause import NonFiniteKind
from stepper.debug.causes.cause_texts import sentences
from stepper.debug.debugger import Debugger
from stepper.debug.overview.overview_facts import Overview, RunState
from stepper.debug.provenance.operation_at import address_at
from stepper.debug.stop import Reason, Stop
from stepper.diagnosis.rule import Finding, Severity
from stepper.diagnosis.texts import headline
from stepper.element_types import FLOATING, Array, Ints
from stepper.engine.frames import Activation, Frame, RunObserver, Taps
from stepper.engine.machine import Machine
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Operation, OpKind, Program
from stepper.engine.rules import Rules
from stepper.engine.run import LoopLog
from stepper.errors import StepperError
from stepper.sweep import sweep_results
from stepper.sweep.sweep_inputs import Prepared, limited, overdue
from stepper.sweep.sweep_results import LoopCount, SweepOutcome, SweepRow, name_and_type, row_text

# --- A quick look for NaN and Inf: where a run on a plain machine has certainly none, no debugger need look ----------
#
# Most operations give a NaN where they are given one. A value whose NaN goes on through such operations alone, round
# the back edges too, to an output of the model is *shown*, and need not be looked at. The others are, where they are
# not shown by another way: those that go into a Select, a slice, a comparison, an If. Their values are kept for some
# iterations and looked at together. What is found is a suspicion: a sum that overflows, a NaN that the run was given.
#
#     Sigmoid ── Multiply ── Add ── Result ══ output        all shown
#     Divide ── Select ── Result ══ output                  Divide is looked at, and what is before it is shown


KEEPS_NON_FINITE = frozenset({
    "Abs", "Add", "Broadcast", "Concat", "MatMul", "Multiply", "Negative", "ReduceMean", "ReduceSum", "Reshape",
    "Split", "Squeeze", "Subtract", "Transpose", "Unsqueeze", "VariadicSplit",
})  # fmt: skip
"""Types that give something that is not finite wherever one of their floats is not: NaN of some infinities."""

KEEPS_NAN = KEEPS_NON_FINITE | frozenset({
    "Acos", "Asin", "Atan", "Ceiling", "Cos", "Divide", "Erf", "Exp", "Floor", "GRUCell", "LSTMCell", "Log", "Maximum",
    "Minimum", "RNNCell", "Relu", "Round", "Sigmoid", "Sin", "SoftPlus", "Softmax", "Sqrt", "SquaredDifference", "Tan",
    "Tanh",
})  # fmt: skip
"""Types that give a NaN wherever one of their floats is NaN."""

_MOST_KEPT = 1024
_BYTES_KEPT = 2**23
"""Iterations, and bytes of their values, that are looked at together."""


class Screen:
    """Values that have to be looked at to know that a run makes no NaN (or Inf, or both).

    `slots` are by the id of the program; those of `ends` need be looked at after the last iteration alone, for before
    that they go on to where they show. `is_possible` is False where some of it is in a side of an If, whose values
    are gone when it has run: then every run is for a debugger.
    """

    def __init__(self, compiled: CompiledModel, kinds: Iterable[NonFiniteKind]) -> None:
        self.compiled, self.kinds = compiled, tuple(kinds)
        nan_alone = self.kinds == (NonFiniteKind.NAN,)
        # Where the plugin departs from the specification, and in fewer bits, other rules hold for NaN.
        self._keeping = KEEPS_NAN if nan_alone and compiled.rules is Rules.SPEC else KEEPS_NON_FINITE
        found, ends = _shown_and_looked_at(compiled, self._keeps)
        self.slots: Mapping[int, Ints] = {key: tuple(slots) for key, slots in found.items() if slots}
        self.ends: Mapping[int, Ints] = {key: tuple(slots) for key, slots in ends.items() if slots}
        sides = {
            id(plan.program)
            for program in compiled.programs
            for operation in program.operations
            for plan in operation.plans
            if isinstance(plan, BranchPlan)
        }
        self.is_possible = not sides.intersection(self.slots)
        self.keeps_main = id(compiled.main) in self.slots

    def _keeps(self, operation: Operation) -> bool:
        is_ours = operation.kind is OpKind.KERNEL and not operation.computed_by
        return is_ours and operation.layer.type in self._keeping

    def is_suspect(self, values: Sequence[Any]) -> bool:
        """Return True if an element of these values may be what is looked for."""
        if not values:
            return False
        try:
            return self._has(np.concatenate(values, axis=None))
        except TypeError:  # of types that have no common one, or texts, or what was not computed
            floats = [value for value in values if value is not None and value.dtype in FLOATING]
            return any(self._has(np.asarray(value)) for value in floats)

    def _has(self, array: Array) -> bool:
        if self.kinds == (NonFiniteKind.NAN,):
            return bool(np.isnan(array).any())
        return not bool(np.isfinite(array).all())  # an Inf may have become a NaN before it shows


class ScreenedRun(RunObserver):
    """Looks on while a machine runs, and ends the run early where something is suspect."""

    def __init__(self, screen: Screen, machine: Machine) -> None:
        self._screen, self._machine = screen, machine
        self._main = machine.stack[0]
        self._kept: list[Any] = []
        self._frames: list[Frame] = []
        self._bytes = 0
        self.is_suspect = False

    def entered(self, stack: Sequence[Frame]) -> None:
        """Take note of the frame, for when it ends."""
        if id(stack[-1].program) in self._screen.ends:
            self._frames.append(stack[-1])

    def loop_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """Keep what is to be looked at of the last iteration."""
        if self._frames and self._frames[-1].activation is activation:
            frame = self._frames.pop()
            slots = self._screen.ends[id(frame.program)]
            self._kept += [frame.values[slot] for slot in slots]
            self._count(self._size(frame, slots))

    def iteration_closed(self, frame: Frame) -> None:
        """Keep what is to be looked at of the iteration."""
        slots = self._screen.slots.get(id(frame.program))
        if slots:
            self._kept += [frame.values[slot] for slot in slots]
            self._count(self._size(frame, slots))

    def taps(self, frame: Frame) -> Taps | None:
        """Return what is to be looked at of the next iterations."""
        slots = self._screen.slots.get(id(frame.program))
        if not slots:
            return None
        size, before = self._size(frame, slots), len(self._kept)
        most = min(_MOST_KEPT, max(1, (_BYTES_KEPT - self._bytes) // max(size, 1)))
        append = self._kept.append
        each = size // len(slots)
        done = lambda: self._count((len(self._kept) - before) * each)  # noqa: E731
        return Taps([(append, slot) for slot in slots], most, done)

    def ended(self) -> bool:
        """Return True if anything in the run was suspect; to be asked when it has come to its end."""
        self._kept += self._machine.outputs or ()
        self._kept += [self._main.values[slot] for slot in self._screen.slots.get(id(self._main.program), ())]
        self._look()
        return self.is_suspect

    @staticmethod
    def _size(frame: Frame, slots: Iterable[int]) -> int:
        return sum(getattr(frame.values[slot], "nbytes", 0) for slot in slots)

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes >= _BYTES_KEPT or len(self._kept) >= _MOST_KEPT:
            self._look()

    def _look(self) -> None:
        if not self.is_suspect and self._screen.is_suspect(self._kept):
            self.is_suspect = True
            self._machine.request_pause()
        self._kept.clear()
        self._bytes = 0


# --- which values show ----------------------------------------------------------------------------------------------


class _Uses(Struct):
    """Where the values of a program go: operations that keep what is not finite, by slot; and who has the program."""

    program: Program
    by_slot: dict[int, list[Operation]]
    host: tuple[Program, Operation, LoopPlan | BranchPlan] | None


def _shown_and_looked_at(
    compiled: CompiledModel, keeps: Callable[[Operation], bool]
) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return the slots to be looked at by the id of their program: of each iteration, and of the last one alone.

    All values are taken to be shown until that proves wrong; one that has to be looked at shows what is before it.
    """
    programs = {id(program): _Uses(program, {}, None) for program in compiled.programs}
    for program in compiled.programs:
        for operation in program.operations:
            for plan in operation.plans:
                programs[id(plan.program)].host = program, operation, plan
            for slot in operation.inputs if keeps(operation) else ():
                programs[id(program)].by_slot.setdefault(slot, []).append(operation)
    hidden: set[tuple[int, int]] = set()
    looked: dict[int, list[int]] = {id(program): [] for program in compiled.programs}
    is_settled = False
    while not is_settled:
        is_settled = True
        for uses in programs.values():
            for slot, is_computed_here in _values(uses.program):
                key = id(uses.program), slot
                if key in hidden or slot in looked[key[0]] or _is_shown(uses, slot, hidden):
                    continue
                is_settled = False
                if is_computed_here:
                    looked[key[0]].append(slot)
                else:
                    hidden.add(key)
    ends = {
        key: [
            slot for slot in set(uses.program.results) if slot not in looked[key] and _shows_later(uses, slot, hidden)
        ]
        for key, uses in programs.items()
    }
    return looked, ends


def _values(program: Program) -> list[tuple[int, bool]]:
    """Return what is computed, the last first, and what comes in: each slot, and if an operation computes it here.

    What a loop gives out comes in here, too: it was computed, and seen, inside of it.
    """
    found = [
        (slot, not operation.plans)
        for operation in reversed(program.operations)
        for output, slot in enumerate(operation.outputs)
        if _may_be_floating(operation, output)
    ]
    return found + [(slot, False) for slot in program.parameters]


def _may_be_floating(operation: Operation, output: int) -> bool:
    ports = operation.layer.outputs
    element_type = ports[output].element_type if output < len(ports) else None
    return element_type is None or element_type.dtype in FLOATING


def _is_shown(uses: _Uses, slot: int, hidden: set[tuple[int, int]]) -> bool:
    program, here = uses.program, id(uses.program)
    for operation in uses.by_slot.get(slot, ()):
        if operation.outputs and not any((here, out) in hidden for out in operation.outputs):
            return True
    if slot not in program.results:
        return False
    if uses.host is None:
        return True
    outer, operation, plan = uses.host
    there = id(outer)

    def shows(output: int) -> bool:
        return (there, operation.outputs[output]) not in hidden

    if isinstance(plan, BranchPlan):
        return any(shows(output) for output, result in plan.outputs if result == slot)
    if _shows_later(uses, slot, hidden):
        return True
    return any(shows(one.output) for one in plan.concatenated if one.result == slot)


def _shows_later(uses: _Uses, slot: int, hidden: set[tuple[int, int]]) -> bool:
    """Return True if a back edge carries a Result to where it shows in the next iteration: in all but the last."""
    if uses.host is None or not isinstance(uses.host[2], LoopPlan):
        return False
    here = id(uses.program)
    return any(result == slot and (here, parameter) not in hidden for parameter, result in uses.host[2].carried)


# ---------------------------------------------------------------------------------------------------------------------


class BreakJudge:
    """Looks for what breakpoints wait for."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared
        self._breaks = [break_description(text) for text in prepared.job.breaks]
        words = [
            word
            for one in self._breaks
            if (word := next((kind for kind in NonFiniteKind if one == break_description(str(kind))), None)) is not None
        ]
        screen = Screen(prepared.compiled, words) if words and len(words) == len(self._breaks) else None
        self._screen = screen if screen is not None and screen.is_possible else None

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return where the first breakpoint stops the run."""
        prepared, log = self._prepared, LoopLog()
        if self._screen is not None:
            machine = prepared.machine(inputs, states, keeps=self._screen.keeps_main)
            screened = ScreenedRun(self._screen, machine)
            machine.observers = (log, screened)
            try:
                prepared.run(machine)
            except StepperError:
                screened.is_suspect = True  # a breakpoint may stop the run before it fails
            if not (screened.is_suspect or screened.ended()):
                return sweep_results.clean_row(name, sweep_results.counts_of_run(log.summaries))
        machine, log = prepared.machine(inputs, states), LoopLog()
        debugger = Debugger.of(machine, inputs)
        for description in self._breaks:
            debugger.breakpoints.add(description)
        machine.observers = (log,)
        with limited(machine, prepared.job.seconds):
            stop = debugger.continue_()
        if stop.reason is Reason.BREAK:
            return _stop_row(name, stop, prepared.compiled)
        if stop.reason is Reason.PAUSED:
            raise overdue(prepared.job.seconds)
        return sweep_results.clean_row(name, sweep_results.counts_of_run(log.summaries))


def _stop_row(name: str, stop: Stop, compiled: CompiledModel) -> SweepRow:
    """Return the row of an input with which a breakpoint stopped the run."""
    cause = stop.cause
    assert cause is not None, "a breakpoint stopped it"
    path, address = cause.location.path, address_at(cause.location, compiled)
    layer = cause.location.operation or (path[-1].layer if path else None)
    loops = tuple(str(one.layer) for one in path)
    numbers = tuple(one.iteration for one in path if one.iteration is not None)
    where, text = "" if address is None else str(address), row_text(sentences(cause)[0])
    return SweepRow(name, SweepOutcome.STOPPED, str(cause.kind), *name_and_type(layer), loops, numbers, where, text)


class CheckJudge:
    """Asks the rules of `check`; the most severe finding that is at least a warning counts."""

    def __init__(self, prepared: Prepared) -> None:
        self._prepared = prepared

    def row(self, name: str, inputs: Sequence[Array], states: dict[str, Any]) -> SweepRow:
        """Return the most severe finding."""
        from stepper.diagnosis.check.checking import check_run  # few sweeps ask for it

        debugger = Debugger.of(self._prepared.machine(inputs, states), inputs)
        checked = check_run(debugger, seconds=self._prepared.job.seconds)
        loops = _counts_of_overview(checked.overview)
        grave = [one for one in checked.findings if one.severity is not Severity.NOTE]
        if grave:
            return _finding_row(name, grave[0], loops)
        if checked.overview.state is not RunState.FINISHED:
            raise overdue(self._prepared.job.seconds)
        return sweep_results.clean_row(name, loops)


def _finding_row(name: str, finding: Finding, loops: Sequence[LoopCount]) -> SweepRow:
    """Return the row of an input with which check finds something."""
    spot, text = finding.spot, row_text(headline(finding))
    return SweepRow(
        name,
        SweepOutcome.FINDING,
        finding.rule,
        *name_and_type(spot.layer or spot.loop),
        tuple(map(str, spot.path)),
        finding.iterations,
        finding.address,
        text,
        tuple(loops),
    )


def _counts_of_overview(overview: Overview) -> tuple[LoopCount, ...]:
    """Return the same of the facts of a run."""
    found = [
        LoopCount(one.path, one.runs, one.total, tuple(sorted(map(str, one.ended))))
        for one in overview.loops
        if one.runs
    ]
    return tuple(sorted(found, key=lambda one: one.path))
