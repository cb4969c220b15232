"""Read questions that `why` answers: an address, a shape, a condition, the end of a loop.

    h[0,3]@7   NAME[0,3]            an element, in an iteration, or of an output of the model.
    shape of h@7   h.shape@7[0]     why it has this shape.
    condition   condition of LOOP@3 why the condition of a loop has its value.
    end   end of LOOP               why a loop ended.
    11 iterations   11 iterations of LOOP   why it ran so often.
    where does x[3] go              the other way round: what an element reaches.

Each may begin with `why`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from stepper.argument_checks import text as text_of
from stepper.debug.causes.cause import Element
from stepper.debug.causes.loop_ends import never_ends
from stepper.debug.causes.nan_origins import first_element
from stepper.debug.causes.run_walk import EarlierFrames, EndedLoop, ReferenceSlots, Seat, ValueSpot, ended_run
from stepper.debug.loop_runs import address_from_the_first
from stepper.debug.scopes import enclosing_loop, innermost_loop
from stepper.debug.story.story_facts import QuestionKind
from stepper.debug.timeline import Timeline, ValueEdit
from stepper.element_types import FLOATING, Array, read_only
from stepper.engine.frames import Frame
from stepper.engine.program import BranchPlan, CompiledModel, LoopPlan, Program
from stepper.engine.run import output_names
from stepper.errors import UsageError
from stepper.ir.model import Layer
from stepper.ops.operands import shape_text
from stepper.query.address_resolution import MAIN, Atlas, Target, layer_address, resolve, shape_asked
from stepper.query.address_syntax import (
    Address,
    Iterations,
    Level,
    Name,
    NameKind,
    address_given,
    numpy_index,
    parse_address,
)
from stepper.records import Record
from stepper.tensors.difference import index_of

_SHAPE = re.compile(r"(?:the |this )?shape of (?P<of>.+)|shape\((?P<called>.+)\)")
_BARE_SHAPE = re.compile(r"(?:the |this )?shape\??")
_FORWARD = re.compile(r"where (?:does|do) (?P<of>.+) go\??")
_CONDITION = re.compile(r"(?:the )?condition(?: of (?P<loop>[^@]+))?(?:@(?P<at>-?\d{1,18}))?")
_END = re.compile(r"(?:the )?end(?:(?: of)? (?P<loop>.+))?")
_ITERATIONS = re.compile(r"(?P<count>\d{1,18}) iterations?(?: of (?P<loop>.+))?")


class WhyQuestion(Record):
    """Ask for the reason of a value's element or shape at an `address`, or of a loop's end.

    `loop` is its name (empty: the loop around the present, else the last loop); `iterations` how many the user says it
    has run. `output` is the name of the model's output that an address means, `told` is the address as it was written.
    """

    kind: QuestionKind
    address: Address | None = None
    loop: str = ""
    iterations: int | None = None
    output: str = ""
    told: str = ""


def question_at(timeline: Timeline, text: str | Address) -> WhyQuestion:
    """Return the question that a text asks where the run stands; `@-1` in it is the last iteration that the loop runs.

    The present stays. Raise as `question_of` and `address_from_the_first` do.
    """
    machine = timeline.machine
    asked = question_of(text, machine.compiled, in_main=len(machine.stack) < 2)
    return asked if asked.address is None else replace(asked, address=address_from_the_first(timeline, asked.address))


def question_of(text: str | Address, compiled: CompiledModel, *, in_main: bool = False) -> WhyQuestion:
    """Return the question that a text asks. AddressError or UsageError for one that asks nothing.

    `in_main`: the run stands in the model's own graph, where the name of an output means that before anything else.
    """
    question = _question(text, compiled)
    address = question.address
    if not in_main or address is None or address.operation is None:
        return question
    if address.levels or address.port is not None or address.iterations is not None:
        return question
    name = address.operation.text
    results = dict(zip(output_names(compiled.model), compiled.model.graph.results, strict=True))
    if name not in results or address.operation.kind not in (NameKind.PLAIN, NameKind.QUOTED):
        return question
    by_id, main = Name(NameKind.ID, str(results[name].id)), Level(Name(NameKind.PLAIN, MAIN))
    meant = replace(address, levels=(main,), operation=by_id)
    return replace(question, address=meant, output=name, told=str(address))


def _question(text: str | Address, compiled: CompiledModel) -> WhyQuestion:
    if isinstance(text, Address):
        return WhyQuestion(QuestionKind.VALUE, text)
    said = _said(text_of("address", text, "a str or an Address"))
    if _BARE_SHAPE.fullmatch(said) and said not in _names(compiled):
        raise UsageError("name the value: 'shape of NAME', 'shape of NAME@7'")
    if found := _SHAPE.fullmatch(said):
        return WhyQuestion(QuestionKind.SHAPE, parse_address(found["of"] or found["called"]))
    if found := _ITERATIONS.fullmatch(said):
        return WhyQuestion(QuestionKind.END, loop=found["loop"] or "", iterations=int(found["count"]))
    if said not in _names(compiled):
        if found := _END.fullmatch(said):
            return WhyQuestion(QuestionKind.END, loop=found["loop"] or "")
        if found := _CONDITION.fullmatch(said):
            return WhyQuestion(QuestionKind.VALUE, _condition(compiled, found["loop"] or "", found["at"]))
    address = parse_address(said)
    of_shape = shape_asked(address, compiled)
    return WhyQuestion(QuestionKind.VALUE, address) if of_shape is None else WhyQuestion(QuestionKind.SHAPE, of_shape)


def with_meant(text: str, compiled: CompiledModel, meant: Callable[[Address], Address]) -> str:
    """Return a question with what is meant by its address in its place. Raise as `question_of` does."""
    if forward := forward_address(text):
        return f"where does {meant(parse_address(forward))} go"
    asked = _question(text, compiled)
    if asked.address is None or (address := meant(asked.address)) == asked.address:
        return text
    return f"shape of {address}" if asked.kind is QuestionKind.SHAPE else str(address)


def forward_address(text: str) -> str:
    """Return the address of what is asked about by `where does ADDR go`; empty for any other text."""
    found = _FORWARD.fullmatch(_said(text))
    return "" if found is None else found["of"]


def _said(text: str) -> str:
    return " ".join(text.split()).removeprefix("why ")


def _names(compiled: CompiledModel) -> set[str]:
    return {layer.name for program in compiled.programs for layer in program.graph.layers}


def _condition(compiled: CompiledModel, loop: str, iteration: str | None) -> Address:
    """Return the address of the condition that the body of a loop computes."""
    bodies = [
        (program, plan)
        for outer in compiled.programs
        for operation in outer.operations
        for plan in operation.plans
        if isinstance(plan, LoopPlan) and plan.condition_result is not None
        for program in (plan.program,)
    ]
    if loop:
        path = (*resolve(parse_address(loop), compiled).program.path, resolve(parse_address(loop), compiled).layer)
        bodies = [(program, plan) for program, plan in bodies if program.path == path]
    if len(bodies) != 1:
        known = ", ".join(f"'{program.path[-1].name}'" for program, _ in bodies[:8])
        problem = f"several loops have a condition: {known}; say which with 'condition of LOOP'" if bodies else ""
        raise UsageError(problem or "no loop of the model has a condition that its body computes")
    program, plan = bodies[0]
    place = next(key for key, slot in program.slots.items() if slot == plan.condition_result)
    layer = program.graph.by_id[place[0]]
    address = layer_address(layer, program, compiled)
    at = None if iteration is None else int(iteration)
    levels: tuple[Level, ...] = address.levels
    return Address(levels, address.operation, place[1] if len(layer.outputs) > 1 else None, at, ())


def element_asked(value: Array, address: Address, told: str = "") -> Element | None:
    """Return the first NaN element of an address, else the first infinite one, else the first.

    None for an address without an index, if all are finite. `told` is the address in messages.
    """
    try:
        chosen = np.ravel(np.arange(value.size).reshape(value.shape)[numpy_index(address.index)])
        first = int(chosen[0])
    except IndexError:
        problem = f"there is no such element in the shape {shape_text(value.shape)}"
        raise UsageError(f"'{told or address}': {problem}") from None
    among = value.reshape(-1)[chosen]
    for test in (np.isnan, np.isinf) if value.dtype in FLOATING else ():
        bad = chosen[test(among)]
        if bad.size:
            return index_of(int(bad.min()), value.shape)
    return index_of(first, value.shape) if address.index else None


class NoValueYet(UsageError):
    """A value that is not computed at this moment."""


def spot_of(
    frames: EarlierFrames,
    compiled: CompiledModel,
    address: Address,
    reference: ReferenceSlots | None = None,
    *,
    of_shape: bool = False,
    told: str = "",
) -> tuple[ValueSpot, Target]:
    """Return the element that an address means.

    Without an index it is the first that an edit changed, else the first that is NaN, else infinite, else the first.
    With a `reference` the first that differs from it comes before these. `of_shape`: its shape is asked for, and the
    index is an axis; without an index it is the first axis along which there are several. `told` is the address in
    messages.

    Iterations that are not named are the iterations of the present, or the last of a loop that has ended. Raise
    NoValueYet for what the run has not come to, UsageError for what does not exist.
    """
    here = frames.frame(frames.present).program
    told = told or str(address)
    target = resolve(replace(address, index=()), compiled, here)
    if any(not (asked is None or isinstance(asked, int)) for asked in target.iterations):
        raise UsageError(f"'{told}': one iteration has one cause; name one")
    seat = seat_in(frames, Atlas(compiled), target.program, target.iterations, told)
    frame = frames.frame(seat)
    slot = target.slot
    if seat == frames.present[: len(seat)] and not frame.is_current(slot):
        raise NoValueYet(f"'{target.named.name}' has no value here: {frame.why_absent(slot)}")
    if frame.values[slot] is None:
        raise NoValueYet(f"'{target.named.name}' is no longer kept")
    value = read_only(frame.values[slot])
    if of_shape:
        return ValueSpot(seat, slot, _axis_asked(value, address, told), is_shape=True), target
    if not value.size:
        raise UsageError(f"'{target.named.name}' has no elements here")
    element, edit = None, frames.edit(frame, slot)
    other = None if reference is None or address.index else reference.differs(seat, slot, value)
    if other is not None:
        element = first_element(other) if other.any() else None
    if element is None and not address.index and isinstance(edit, ValueEdit):
        changed = np.asarray(edit.value != edit.before)
        element = first_element(changed) if changed.any() else None
    element = element or element_asked(value, address, told) or (0,) * value.ndim
    return ValueSpot(seat, slot, element), target


def _axis_asked(value: Array, address: Address, told: str) -> Element | None:
    """Return the axis that an address names, or the one that says most; None of a scalar."""
    rank = value.ndim
    if address.index:
        index = numpy_index(address.index)
        if len(index) != 1 or not isinstance(index[0], int) or not -rank <= index[0] < rank:
            raise UsageError(f"'{told}': the shape {shape_text(value.shape)} has the axes 0 to {rank - 1}")
        return (index[0] % rank,)
    return (next((axis for axis, size in enumerate(value.shape) if size != 1), 0),) if rank else None


def ended_loop(frames: EarlierFrames, compiled: CompiledModel, name: str, iterations: int | None = None) -> EndedLoop:
    """Return the run of the loop of this name that ended last; without one of that around the present, else the last.

    Raise NoValueYet where it has not ended, UsageError for a name that no loop has, or where it ran another number of
    `iterations` than is said.
    """
    found = _ended_loop(frames, compiled, name)
    count = found.activation.iteration + 1
    if iterations is not None and iterations != count:
        raise UsageError(f"'{found.activation.operation.layer.name}' ran {count} iterations, not {iterations}")
    return found


def _ended_loop(frames: EarlierFrames, compiled: CompiledModel, name: str) -> EndedLoop:
    stack = frames.at(frames.present)
    asked: tuple[Iterations | None, ...] = ()
    if "::" in name:
        target = resolve(address_given(name), compiled)
        path, asked = (*target.program.path, target.layer), target.iterations
        if not target.layer.is_loop:
            raise UsageError(f"'{target.layer.name}' is no loop")
    else:
        path = _loop_path(stack, compiled, name)
    depth = len(path)
    if not any(one is not None for one in asked) and len(stack) > depth and stack[depth].program.path == path:
        activation = stack[depth].active
        if activation.ended is None:
            at = max(activation.iteration, 0)
            outlook = "; it can never end: there is no trip count, and no condition that may turn false"
            never = outlook if never_ends(activation) else ""
            raise NoValueYet(f"'{path[-1].name}' has not ended here: it is in iteration {at:,}{never}")
        return ended_run(frames, frames.present[:depth])
    atlas = Atlas(compiled)
    outer = seat_in(frames, atlas, atlas.holding(path[-1]), asked, path[-1].name)
    index = _index_of(frames.frame(outer), path[-1])
    _ensure_ran(frames, outer, index)
    return ended_run(frames, frames.left(outer, index)[0])


def _loop_path(stack: list[Frame], compiled: CompiledModel, name: str) -> tuple[Layer, ...]:
    """Return the layers that lead to the loop that is meant."""
    here = innermost_loop(stack)
    loops = [one.path for one in compiled.programs if one.path and one.path[-1].is_loop]
    if name:
        if here is not None:
            try:
                return stack[-1].program.path[: enclosing_loop(stack[-1].program.path, name)]
            except UsageError:
                pass
        fitting = [path for path in loops if path[-1].is_called(name)]
        fitting = fitting or [path for path in loops if path[-1].name.endswith((f"/{name}", f".{name}"))]
        if len(fitting) != 1:
            known = ", ".join(f"'{path[-1].name}'" for path in (fitting or loops)[:8])
            problem = "there are several loops" if fitting else "there is no loop"
            raise UsageError(f"{problem} of the name '{name}': {known or 'the model has none'}")
        return fitting[0]
    if here is not None:
        return stack[here].program.path
    ran = [path for path in loops if len(path) == 1]
    if not ran:
        raise UsageError("the model has no loop whose end could be explained")
    places = compiled.main.indices
    before = [path for path in ran if places.get(path[0].id, 0) < stack[0].pc]
    return max(before or ran[:1], key=lambda path: places.get(path[0].id, 0))


def _index_of(frame: Frame, layer: Layer) -> int:
    index = frame.program.indices.get(layer.id)
    if index is None:
        raise NoValueYet(f"{layer} is never computed: no Result needs it")
    return index


def _ensure_ran(frames: EarlierFrames, seat: Seat, index: int) -> None:
    frame = frames.frame(seat)
    operation = frame.program.operations[index]
    if seat == frames.present[: len(seat)] and not (
        all(frame.is_current(slot) for slot in operation.outputs) and (frame.pc > index or len(seat) > 0)
    ):
        raise NoValueYet(f"{operation.layer.type} '{operation.layer.name}' has not run here")


def seat_in(
    frames: EarlierFrames, atlas: Atlas, program: Program, asked: tuple[Iterations | None, ...], told: str
) -> Seat:
    """Return the seat of a program's frame, in the iterations that are asked for."""
    seat: Seat = ()
    for level, layer in enumerate(program.path):
        wanted = asked[level] if level < len(asked) else None
        frame = frames.frame(seat)
        index = _index_of(frame, layer)
        here = frames.present
        if len(here) > level and here[:level] == seat and here[level][0] == index:
            now = here[level][1]
            inside = frames.frame(here[: level + 1])
            if now is not None and now < 0:
                raise NoValueYet(f"'{told}': no iteration of '{layer.name}' has begun")
        else:
            _ensure_ran(frames, seat, index)
            inner, inside = frames.left(seat, index)
            now = inner[-1][1]
        activation = inside.active
        if isinstance(activation.plan, BranchPlan):
            if inside.program is not atlas.ancestor(program, level + 1):
                raise UsageError(f"'{told}': the other side of '{layer.name}' ran there")
            seat = (*seat, (index, None))
            continue
        seat = (*seat, (index, _iteration(wanted, now, told)))
    return seat


def _iteration(wanted: Iterations | None, now: int | None, told: str) -> int:
    last = -1 if now is None else now
    number = last if not isinstance(wanted, int) else wanted if wanted >= 0 else last + 1 + wanted
    if last < 0:
        raise NoValueYet(f"'{told}': no iteration ran")
    if not 0 <= number <= last:
        raise NoValueYet(f"'{told}': iterations 0 to {last} have run here")
    return number
