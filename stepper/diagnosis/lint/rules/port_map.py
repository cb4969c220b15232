"""Rules of the port map: entries that connect nothing, connect twice, or are not what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from stepper.diagnosis.findings import ERROR, NOTE, WARNING
from stepper.diagnosis.lint.subjects import IfSubject, LoopSubject, of_parameter
from stepper.diagnosis.rule import IF, LOOP, Hits, found_by, inside, outside
from stepper.ir.model import InputMapping, LayerSite, OutputMapping
from stepper.ir.xml import CURRENT_ITERATION, EXECUTION_CONDITION
from stepper.wording import enumerated, near_names

_PURPOSES: Final = (CURRENT_ITERATION, EXECUTION_CONDITION)


@found_by(
    "P201",
    "duplicate-outer-output",
    LOOP,
    ERROR,
    says="two outputs of the port map have external_port_id {number}: {first} counts, {second} is ignored",
    means="the output that was meant for the second is lost, and the outputs after it move up",
    do="give each output of the layer a number of its own",
)
def duplicate_outer_output(loop: LoopSubject) -> Hits:
    """Outputs that an entry before them with the same number makes count for nothing."""
    for entry in loop.body.ignored:
        if entry.result in loop.inner.by_id and entry.counts in loop.inner.by_id:
            first, second = loop.name(entry.counts), loop.name(entry.result)
            yield inside(entry, number=entry.number, first=first, second=second)


@found_by(
    "P202",
    "input-feeds-two-parameters",
    LOOP,
    WARNING,
    says="input {number} goes into {first} and into {second}, while {unused} of the layer goes into none",
    means="one of the two gets the value of the other",
    do="let external_port_id of one of them be the input that is left over",
)
def input_feeds_two_parameters(loop: LoopSubject) -> Hits:
    """Two entries of one input, where another input has none."""
    unused = _unmapped_inputs(loop)
    counts = Counter(entry.input for entry in loop.body.inputs if entry.input is not None)
    for entry in loop.body.inputs:
        if not unused or entry.input is None or counts[entry.input] < 2:
            continue
        first = next(one for one in loop.body.inputs if one.input == entry.input)
        if first is not entry:
            left = f"input {unused[0]}"
            yield inside(
                entry,
                number=entry.input,
                unused=left,
                first=loop.name(first.parameter),
                second=loop.name(entry.parameter),
            )


@found_by(
    "P203",
    "input-without-entry",
    LOOP,
    ERROR,
    says="input {number} has no entry in the port map: what comes there ('{value}') goes nowhere{unfed}",
    means="OpenVINO refuses the file: it counts entries and inputs",
    do="add an <input> with this external_port_id, or remove the port",
)
def input_without_entry(loop: LoopSubject) -> Hits:
    """Inputs of the layer that no entry names."""
    if loop.body.first_draft:
        return
    unmapped = _unmapped_inputs(loop)
    read = [loop.site(one) for one in loop.roles.unfed if loop.is_read(one.id)]
    unfed = f", and {read[0]} gets nothing" if len(read) == 1 else _fed_otherwise(loop)
    for index in unmapped if len(unmapped) > loop.body.unread_inputs else ():
        source = loop.source(index)
        value = "" if source is None else loop.graph.by_id[source.layer].name
        yield outside(loop.layer, number=index, value=value, unfed=unfed)


def _fed_otherwise(loop: LoopSubject) -> str:
    """Return which Parameters share an input, or take trip count or condition: one may be meant for what is left."""
    taken = Counter(entry.input for entry in loop.body.inputs if entry.input is not None)
    doubtful = [number for number, count in taken.items() if count > 1 or number in loop.control_inputs]
    if len(doubtful) != 1:
        return ""
    names = [str(loop.name(entry.parameter)) for entry in loop.body.inputs if entry.input == doubtful[0]]
    return f", while input {doubtful[0]} feeds {enumerated(names)}"


def _unmapped_inputs(loop: LoopSubject) -> list[int]:
    mapped = {entry.input for entry in loop.body.inputs}
    control = loop.control_inputs if loop.is_loop else ()
    return [index for index in range(len(loop.layer.inputs)) if index not in mapped and index not in control]


@found_by(
    "P204",
    "second-unconnected-output",
    LOOP,
    ERROR,
    says="two outputs have external_port_id -1, and only the first, {first}, counts: {second} is lost",
    means="where the condition is the one that is lost, the loop has no condition",
    do="leave out the entry of the other Result, which needs none",
)
def second_unconnected_output(loop: LoopSubject) -> Hits:
    """Outputs with -1 after the first one."""
    unconnected = [entry for entry in loop.body.outputs if entry.output is None]
    for entry in unconnected[1:]:
        yield inside(unconnected[0], first=loop.name(unconnected[0].result), second=loop.name(entry.result))


@found_by(
    "P205",
    "parameter-without-entry",
    LOOP,
    ERROR,
    says="{parameter} is not connected: no entry of the port map feeds it, and {reader} reads it",
    means="OpenVINO reads memory that nothing has written; here it is an error",
    do="add an <input> with internal_layer_id {id}",
)
def parameter_without_entry(loop: LoopSubject) -> Hits:
    """Parameters that something reads and nothing feeds."""
    if loop.role_error is not None or loop.body.first_draft:
        return
    for parameter in loop.roles.unfed:
        readers = loop.inner.readers.get(parameter.id)
        if readers and not _looks_like_iteration(loop, parameter.id):
            yield inside(parameter, reader=readers[0][0], id=parameter.id)


@found_by(
    "P206",
    "unused-parameter",
    LOOP,
    WARNING,
    says="{parameter} is not connected: no entry of the port map names it, and nothing reads it",
    means="nothing: but a value that was meant to come in does not",
    do="remove the Parameter, or connect it",
)
def unused_parameter(loop: LoopSubject) -> Hits:
    """Parameters that nothing feeds and nothing reads."""
    for parameter in loop.roles.unfed:
        if not loop.is_read(parameter.id):
            yield inside(parameter)


@found_by(
    "P207",
    "iteration-not-marked",
    LOOP,
    ERROR,
    says='{parameter} is a whole number that {reader} reads, and no entry feeds it: purpose="current_iteration" is '
    "missing",
    means="OpenVINO never writes the iteration number: the body reads whatever is in the memory",
    do='add <input external_port_id="-1" internal_layer_id="{id}" purpose="current_iteration"/>',
)
def iteration_not_marked(loop: LoopSubject) -> Hits:
    """A Parameter that can only be meant for the iteration number."""
    if loop.body.first_draft or not loop.is_loop:
        return
    for parameter in loop.inner.parameters:
        readers = loop.inner.readers.get(parameter.id)
        if readers and _looks_like_iteration(loop, parameter.id):
            yield inside(parameter, reader=readers[0][0], id=parameter.id)


def _looks_like_iteration(loop: LoopSubject, parameter: int) -> bool:
    if not loop.is_loop or any(entry.purpose == CURRENT_ITERATION for entry in loop.body.inputs):
        return False
    if any(entry.parameter == parameter and entry.input is not None for entry in loop.body.inputs):
        return False
    declared = of_parameter(loop.inner.by_id[parameter])
    return declared.type is not None and declared.type.name in ("i32", "i64") and declared.may_be_one_element


@found_by(
    "P208",
    "iteration-type",
    LOOP,
    ERROR,
    says="{fault}",
    means="OpenVINO refuses to compile the model",
    do="declare the Parameter as i64 or i32, as a scalar or of shape [1]",
)
def iteration_type(loop: LoopSubject) -> Hits:
    """A Parameter that cannot hold the iteration number."""
    error = loop.role_error
    if error is not None:
        entry = next(one for one in loop.body.inputs if one.line == error.line and one.purpose == CURRENT_ITERATION)
        yield inside(entry, fault=str(error))


@found_by(
    "P209",
    "iteration-from-outside",
    LOOP,
    NOTE,
    says="{parameter} is the iteration number and also has input {number} of the layer",
    means="OpenVINO's CPU plugin writes 0, 1, 2, ... over the value; its reference begins with it",
    do='give the entry external_port_id="-1"',
    source="OpenVINO 2026.4.1, measured",
)
def iteration_from_outside(loop: LoopSubject) -> Hits:
    """Entries of the iteration number that name an input."""
    for entry in loop.body.inputs:
        if loop.is_loop and entry.purpose == CURRENT_ITERATION and entry.input is not None:
            yield inside(entry, number=entry.input)


@found_by(
    "P210",
    "unknown-purpose",
    LOOP,
    ERROR,
    says="the entry of {layer} has the purpose '{purpose}', which {not_one}{near}",
    means="OpenVINO ignores it: the loop has no iteration number, or no condition",
    do="write current_iteration (an input) or execution_condition (an output)",
)
def unknown_purpose(loop: LoopSubject) -> Hits:
    """Purposes that no reader knows."""
    for entry, purpose, inner in _purposes(loop):
        meant = CURRENT_ITERATION if isinstance(entry, InputMapping) else EXECUTION_CONDITION
        if purpose not in _PURPOSES:
            near = near_names(purpose, _PURPOSES)
            text = f" (meant is maybe '{near[0]}')" if near else ""
            yield inside(entry, layer=inner, purpose=purpose, not_one="does not exist", near=text)
        elif loop.is_loop and purpose != meant:
            side = "an output has" if isinstance(entry, InputMapping) else "an input has"
            yield inside(entry, layer=inner, purpose=purpose, not_one=side, near=f" (here it is '{meant}')")


def _purposes(loop: LoopSubject) -> Iterator[tuple[InputMapping | OutputMapping, str, LayerSite]]:
    """Yield the entries that have a purpose, with the layer of the body that they name."""
    for entry in loop.body.inputs:
        if entry.purpose:
            yield entry, entry.purpose, loop.name(entry.parameter)
    for output in loop.body.outputs:
        if output.purpose:
            yield output, output.purpose, loop.name(output.result)


@found_by(
    "P211",
    "purpose-in-tensor-iterator",
    LOOP,
    WARNING,
    says="the entry of {layer} has the purpose '{purpose}', which only a Loop has",
    means="a TensorIterator ignores it",
    do="use a Loop, or leave the purpose out",
)
def purpose_in_tensor_iterator(loop: LoopSubject) -> Hits:
    """Purposes in a TensorIterator."""
    for entry, purpose, inner in _purposes(loop) if not loop.is_loop else ():
        if purpose in _PURPOSES:
            yield inside(entry, layer=inner, purpose=purpose)


@found_by(
    "P212",
    "parameter-mapped-twice",
    LOOP,
    ERROR,
    says="{parameter} has two entries in the port map, for inputs {first} and {second}: the first counts",
    means="the second value goes nowhere; OpenVINO refuses the file, as it counts entries and inputs",
    do="let internal_layer_id of one of them be the Parameter that was meant",
)
def parameter_mapped_twice(loop: LoopSubject) -> Hits:
    """A second entry of a Parameter."""
    first: dict[int, InputMapping] = {}
    for entry in loop.body.inputs:
        if entry.input is None:
            continue
        before = first.setdefault(entry.parameter, entry)
        if before is not entry:
            yield inside(entry, first=before.input, second=entry.input)


@found_by(
    "P213",
    "condition-missing",
    LOOP,
    ERROR,
    says='the Loop has no condition: no output of its port map has purpose="execution_condition"{left}',
    means="OpenVINO refuses the file (the outputs have no types); here the loop runs to its trip count",
    do='add <output external_port_id="-1" internal_layer_id="..." purpose="execution_condition"/>',
)
def condition_missing(loop: LoopSubject) -> Hits:
    """Loops without a condition; the Result that is left over, where there is one."""
    if not loop.is_loop or loop.body.first_draft or loop.condition_result is not None:
        return
    if any(entry.purpose and entry.purpose != EXECUTION_CONDITION for entry in loop.body.outputs):
        return  # that its purpose is misspelt says more
    named = {entry.result for entry in loop.body.outputs} | {edge.from_layer for edge in loop.body.back_edges}
    left = [result for result in loop.inner.results if result.id not in named]
    boolean = [one for one in left if (found := loop.of_result(one.id).type) is None or found.name == "boolean"]
    if len(boolean) == 1:
        yield inside(boolean[0], left=f" ({loop.site(boolean[0])} is left over)")
    else:
        yield outside(loop.layer, left="")


@found_by(
    "P214",
    "two-conditions",
    LOOP,
    ERROR,
    says='two outputs of the port map have purpose="execution_condition": {first} counts, {second} does not',
    means="the loop ends by the first alone",
    do="join them with LogicalAnd, and leave one entry",
    source="specification/Loop-5, port_map",
)
def two_conditions(loop: LoopSubject) -> Hits:
    """A second entry of the condition."""
    marked = [entry for entry in loop.body.outputs if entry.purpose == EXECUTION_CONDITION]
    for entry in marked[1:] if loop.is_loop else ():
        if entry.result != marked[0].result:
            yield inside(entry, first=loop.name(marked[0].result), second=loop.name(entry.result))


@found_by(
    "P215",
    "if-parameter-without-entry",
    IF,
    ERROR,
    says="{parameter} of the {role} is not connected: no entry of its port map feeds it, and {reader} reads it",
    means="the model cannot run",
    do="add an <input> with internal_layer_id {id} to the port map of this side",
    source="specification/If-8",
)
def if_parameter_without_entry(facts: IfSubject) -> Hits:
    """Parameters of a side that something reads and nothing feeds."""
    for side in facts.sides():
        fed = {entry.parameter for entry in side.body.inputs}
        unfed = [one for one in side.inner.parameters if one.id not in fed and side.is_read(one.id)]
        for parameter in unfed if len(unfed) > side.body.unread_inputs else ():
            reader = side.inner.readers[parameter.id][0][0]
            yield outside(parameter, role=side.body.role.replace("_", " "), id=parameter.id, reader=reader)


@found_by(
    "P216",
    "if-condition-as-value",
    IF,
    WARNING,
    says="{parameter} of the {role} takes input 0 of the If, which is its condition",
    means="the side computes with true or false, and the value that was meant goes nowhere",
    do="let external_port_id be the index of an input, from 1 on",
    source="specification/If-8",
)
def if_condition_as_value(facts: IfSubject) -> Hits:
    """Entries that map the condition into a side."""
    for side in facts.sides():
        for entry in side.body.inputs:
            parameter = side.inner.by_id.get(entry.parameter)
            if entry.input == 0 and parameter is not None:
                yield outside(parameter, role=side.body.role.replace("_", " "))
