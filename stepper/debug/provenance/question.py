"""Questions that `why` answers, and how they are written: an address, a shape, a condition, the end of a loop.

h[0,3]@7   NAME[0,3]            an element, in an iteration, or of an output of the model
shape of h@7   h.shape@7[0]     why it has this shape
condition   condition of LOOP@3 why the condition of a loop is what it is
end   end of LOOP               why a loop ended
11 iterations   11 iterations of LOOP   why it ran so often
where does x[3] go              the other way round: what an element reaches

Each may begin with `why`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from stepper.arguments import text as text_of
from stepper.debug.iterations.loop_runs import address_from_the_first
from stepper.debug.provenance.facts import QuestionKind
from stepper.debug.timeline import Timeline
from stepper.engine.program import CompiledModel, LoopPlan
from stepper.engine.run import output_names
from stepper.errors import UsageError
from stepper.query.address_resolution import MAIN, layer_address, resolve, shape_asked
from stepper.query.address_syntax import Address, Level, Name, NameKind, parse_address
from stepper.records import Record

_SHAPE: Final = re.compile(r"(?:the |this )?shape of (?P<of>.+)|shape\((?P<called>.+)\)")
_BARE_SHAPE: Final = re.compile(r"(?:the |this )?shape\??")
_FORWARD: Final = re.compile(r"where (?:does|do) (?P<of>.+) go\??")
_CONDITION: Final = re.compile(r"(?:the )?condition(?: of (?P<loop>[^@]+))?(?:@(?P<at>-?\d{1,18}))?")
_END: Final = re.compile(r"(?:the )?end(?:(?: of)? (?P<loop>.+))?")
_ITERATIONS: Final = re.compile(r"(?P<count>\d{1,18}) iterations?(?: of (?P<loop>.+))?")


class WhyQuestion(Record):
    """A question: why the element, or the shape, of the value at an `address`; or why the loop of a name ended.

    `loop` is its name (empty: the one around the present, else the last); `iterations` how many it is said to have run.
    `output` is the name of the model's output that an address means, `told` is the address as it was written.
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
        raise UsageError("say of which value: 'shape of NAME', 'shape of NAME@7'")
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
