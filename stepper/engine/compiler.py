"""Compilation of a Model to a CompiledModel: `compile_model`.

Steps, graph by graph from the innermost outwards: leave out what no Result or Assign needs; order the rest (a layer
after its sources, ReadValue before Assign of its variable, otherwise as in the file); give every output a slot; bind
kernels; resolve port maps (plans.py); compute what follows from constants alone, once, in the bodies.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NoReturn

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.element_types import Array, Ints
from stepper.engine import arithmetic
from stepper.engine.loops import (
    ConcatenatedOutput,
    InvariantInput,
    LastValueOutput,
    MergedInput,
    RoleError,
    Roles,
    SlicedInput,
    check_stride,
    control_inputs,
    roles_of,
    whole_axis,
)
from stepper.engine.program import (
    BranchPlan,
    CompiledModel,
    LoopPlan,
    Operation,
    OpKind,
    Partner,
    Program,
    Step,
    Value,
    by_blocks,
    computed_elsewhere,
    default_partner,
    no_kernel,
    step_of,
)
from stepper.engine.rules import Rules, rules_called
from stepper.errors import KernelError, UnsupportedOperation
from stepper.ir.constants import constant_value
from stepper.ir.model import (
    EXECUTION_CONDITION,
    Body,
    Graph,
    InputMapping,
    Layer,
    Model,
    Slicing,
    Source,
    parameter_shape,
    parameter_type,
)
from stepper.ir.reader import ModelSource, opened
from stepper.ir.xml import FilePlace
from stepper.operation_types import FAMILIES, NO_OPERATIONS, VIEWS
from stepper.ops.registry import Kernel, find
from stepper.records import Record

# Values of a body that may be another in each iteration, and those that cannot, as the file says.

_REMEMBERING = frozenset({"RandomUniform", "Multinomial", "ReadValue"})
"""Operations that may give another value for the same inputs."""


def ancestors(graph: Graph, *values: Source | None) -> frozenset[int]:
    """Return the ids of all layers of a graph on which values depend, their own among them."""
    waiting = [one.layer for one in values if one is not None]
    seen = set(waiting)
    while waiting:
        for one in graph.sources.get(waiting.pop(), ()):
            if one is not None and one.layer not in seen:
                seen.add(one.layer)
                waiting.append(one.layer)
    return frozenset(seen)


def shaped_from(graph: Graph, source: Source | None) -> Source | None:
    """Return a value before it only changed its shape."""
    seen: set[int] = set()
    while source is not None and source.layer not in seen:
        seen.add(source.layer)
        layer = graph.by_id.get(source.layer)
        if layer is None or layer.type not in VIEWS or not graph.sources[layer.id]:
            return source
        source = graph.sources[layer.id][0]
    return source


def can_change(graph: Graph, roles: Roles, value: Source | None) -> bool:
    """Return True if a value of a body may be another one in the next iteration.

    It depends on a slice, the iteration number, a variable, a random number, or a carried value that changes.
    """
    sources = ancestors(graph, value)
    changing = {entry.parameter for entry in roles.sliced} | set(roles.current_iteration)
    for parameter, result in roles.merged_from.items():
        origin = shaped_from(graph, graph.source(result))
        if origin is None or origin.layer != parameter:
            changing.add(parameter)
    return bool(sources & changing) or any(_remembers(graph.by_id[one]) for one in sources if one in graph.by_id)


def decided_by(graph: Graph, roles: Roles, value: Source | None) -> frozenset[int] | None:
    """Return the carried Parameters whose values alone decide what a value is in this iteration and all later ones.

    None where something else has a say: a slice, the iteration number, a variable, a random number.
    """
    found: set[int] = set()
    waiting = [value]
    sources: frozenset[int] = frozenset()
    while waiting:
        sources |= ancestors(graph, waiting.pop())
        for parameter in sources & roles.merged_from.keys() - found:
            found.add(parameter)
            waiting += graph.sources.get(roles.merged_from[parameter], ())
    others = {entry.parameter for entry in roles.sliced} | set(roles.current_iteration)
    if sources & others or any(_remembers(graph.by_id[one]) for one in sources if one in graph.by_id):
        return None
    return frozenset(found)


def _remembers(layer: Layer) -> bool:
    if layer.type in _REMEMBERING:
        return True
    return any(_remembers(inner) for body in layer.bodies for inner in body.graph.layers)


# Port maps resolved to slots: what each entry is (sliced, merged, invariant, ...) and where in the body it leads.

Note = Callable[[str], None]


class PlanError(ValueError):
    """A port map that cannot be; `line` is the line of the entry, 0 where the whole is meant."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


def branch_plan(body: Body, program: Program) -> BranchPlan:
    """Return one side of an If (If-8: input 0 is the condition; the port map's numbers are those of the layer)."""
    mapped = {entry.parameter for entry in body.inputs if entry.input is not None}
    for parameter in program.graph.parameters:
        if parameter.id not in mapped:
            raise PlanError(
                f"the Parameter {parameter.id} '{parameter.name}' of <{body.role}> is fed by nothing", body.line
            )
    inputs = [(entry.input, program.slot(entry.parameter)) for entry in body.inputs if entry.input is not None]
    outputs = [(entry.output, program.slot(entry.result)) for entry in body.outputs if entry.output is not None]
    return BranchPlan(program, tuple(inputs), tuple(outputs))


def loop_plan(layer: Layer, program: Program, outer: Graph, rules: Rules, note: Note) -> LoopPlan:
    """Return the whole port map of a TensorIterator or Loop.

    If several entries claim one Parameter, the rule that selects one was measured on OpenVINO. `note` is called where
    the rule books differ. Raises PlanError for a port map that neither allows.
    """
    body = layer.bodies[0]
    _check_dialect(layer, body, rules, note)
    is_loop = layer.type == "Loop"
    trip_count, condition = control_inputs(layer, body, outer) if is_loop else (None, None)
    try:
        roles = roles_of(layer)
    except RoleError as error:
        raise PlanError(str(error), error.line) from None
    _check_inputs(layer, roles, outer, rules, note)
    slot = program.slot
    merged, last_values = _merged(program, roles), _last_values(body, program, roles)
    return LoopPlan(
        program=program,
        sliced=tuple(
            SlicedInput(entry.input, slot(entry.parameter), entry.slicing, entry.line)
            for entry in roles.sliced
            if entry.input is not None and entry.slicing is not None
        ),
        merged=merged,
        rigid=_rigid(program, merged, last_values if is_loop else ()),
        passes_on=_passes_on(merged),
        carried=tuple((entry.parameter, entry.result) for entry in merged),
        may_grow=any(operation.layer.type not in _NEVER_LARGER for operation in program.operations),
        invariant=tuple(
            InvariantInput(entry.input, slot(entry.parameter), entry.line)
            for entry in roles.invariant
            if entry.input is not None
        ),
        unfed=tuple(slot(parameter.id) for parameter in roles.unfed),
        current_iteration=tuple(
            (slot(identity), _numbered(body.graph.by_id[identity], rules)) for identity in roles.current_iteration
        ),
        trip_count=trip_count,
        condition=condition,
        constant_condition=condition is not None and _is_constant(layer, condition, outer),
        condition_result=_condition_result(body, program, condition, rules) if is_loop else None,
        fixed_condition=is_loop and _is_fixed_condition(body, roles),
        deciding=_deciding(body, program, roles, merged) if is_loop else None,
        last_values=last_values,
        concatenated=_concatenated(body, program, rules, note),
        is_loop=is_loop,
        is_over_calls=layer.is_over_calls,
    )


def _is_fixed_condition(body: Body, roles: Roles) -> bool:
    """Return True if the body's condition is the same in each iteration, whatever it is."""
    given = _given_condition(body)
    return given is not None and not can_change(body.graph, roles, given)


def _deciding(
    body: Body, program: Program, roles: Roles, merged: tuple[MergedInput, ...]
) -> tuple[MergedInput, ...] | None:
    """Return the carried entries that alone decide the loop's end; None if others may decide."""
    given = _given_condition(body)
    parameters = None if given is None or roles.sliced else decided_by(body.graph, roles, given)
    if not parameters or program.has_memory:
        return None
    slots = {program.slot(identity) for identity in parameters}
    return tuple(entry for entry in merged if entry.parameter in slots)


def _given_condition(body: Body) -> Source | None:
    """Return what the body gives as its condition."""
    return None if body.condition is None else body.graph.source(body.condition)


def _merged(program: Program, roles: Roles) -> tuple[MergedInput, ...]:
    slot = program.slot
    return tuple(
        MergedInput(entry.input, slot(entry.parameter), slot(roles.merged_from[entry.parameter]), entry.line)
        for entry in roles.merged
        if entry.input is not None
    )


def _rigid(
    program: Program, merged: tuple[MergedInput, ...], may_change: tuple[LastValueOutput, ...]
) -> tuple[MergedInput, ...]:
    """Return those for which the file declares one fixed shape, and another for what is carried back."""
    relaxed = {entry.result for entry in may_change}

    def is_rigid(entry: MergedInput) -> bool:
        entering = parameter_shape(program.parameter(entry.parameter)).static
        leaving = program.declared(entry.result)[0]
        return entering is not None and -1 not in leaving and entering != leaving

    return tuple(entry for entry in merged if entry.result not in relaxed and is_rigid(entry))


_NEVER_LARGER_FAMILIES = (
    "elementwise comparison bitwise unary activation reduction normalization convert quantize recurrent"
)
_NEVER_LARGER = frozenset([*VIEWS, "Transpose"]).union(*(FAMILIES[name] for name in _NEVER_LARGER_FAMILIES.split()))
"""Operations that, again and again, cannot make a tensor grow without bound."""


def _passes_on(merged: tuple[MergedInput, ...]) -> bool:
    parameters = {entry.parameter for entry in merged}
    return any(entry.result in parameters - {entry.parameter} for entry in merged)


def static_notes(layer: Layer, outer: Graph) -> tuple[str, ...]:
    """Return what a run by the specification notes of a loop before it begins: mostly where OpenVINO departs from it.

    What cannot run has no notes.
    """
    notes: dict[str, None] = {}
    body = layer.bodies[0]

    def note(text: str) -> None:
        notes.setdefault(text)

    try:
        _check_dialect(layer, body, Rules.SPEC, note)
        _check_inputs(layer, roles_of(layer), outer, Rules.SPEC, note)
        for entry in body.outputs:
            if entry.output is not None and entry.slicing is not None:
                _check_joined(entry.slicing, entry.line, Rules.SPEC, note)
    except (PlanError, RoleError):
        return ()
    return tuple(notes)


def _check_dialect(layer: Layer, body: Body, rules: Rules, note: Note) -> None:
    if body.first_draft:
        if rules is Rules.OPENVINO:
            raise PlanError("is written in the first draft of Loop-5, which OpenVINO refuses")
        note("is written in the first draft of Loop-5, which OpenVINO refuses")
    nested = [inner for inner in body.graph.layers if inner.type == "TensorIterator" and not inner.opened_from]
    if layer.type == "TensorIterator" and nested:
        text = f"has a TensorIterator in its body ({nested[0]}), which OpenVINO refuses"
        if rules is Rules.OPENVINO:
            raise PlanError(text)
        note(text)


def _check_inputs(layer: Layer, roles: Roles, outer: Graph, rules: Rules, note: Note) -> None:
    for entry in roles.fed:
        _check_slicing(entry, rules, note, is_loop=layer.type == "Loop")
        if outer.sources[layer.id][entry.input or 0] is None:
            raise PlanError(f"no edge reaches input {entry.input}, which the port map leads into the body", entry.line)
    for parameter in roles.unfed:
        note(f"nothing feeds the body's {parameter}: zeros are used, where OpenVINO leaves junk")
    _note_aliasing(layer.bodies[0].graph, roles, note)


def _note_aliasing(graph: Graph, roles: Roles, note: Note) -> None:
    """Note where the plugin's back edges, which copy in turn, would read what they overwrote (measured)."""
    overwritten = {entry.parameter for entry in (*roles.sliced, *roles.merged)}
    for target, result in roles.merged_from.items():
        layer = graph.by_id[result]
        while layer.type in (*VIEWS, "Identity", "Result"):
            source = graph.sources[layer.id][0]
            assert source is not None, "the reader has seen to it"
            layer = graph.by_id[source.layer]
        if layer.type == "Parameter" and layer.id != target and layer.id in overwritten:
            names = f"{layer.id} '{layer.name}' to {target} '{graph.by_id[target].name}'"
            note(
                f"a back edge carries Parameter {names} unchanged; OpenVINO's plugin may copy what it overwrote before"
            )


def _check_slicing(entry: InputMapping, rules: Rules, note: Note, *, is_loop: bool) -> None:
    slicing = entry.slicing
    if slicing is None:
        return
    _check_stride(slicing, entry.line, rules, note)
    default = whole_axis(slicing)
    if is_loop and (slicing.start, slicing.end) != default:
        note(
            f"the sliced input on line {entry.line} has start {slicing.start} and end {slicing.end}, "
            "at which OpenVINO does not look in a Loop: it takes slices from the edge on"
        )
    elif slicing.start != default[0]:
        note(
            f"the sliced input on line {entry.line} has start {slicing.start}: the specification begins there, "
            "OpenVINO begins at the edge and only counts by it"
        )
    if slicing.axis < 0:
        note(f"the sliced input on line {entry.line} has axis {slicing.axis}, which OpenVINO refuses")
        if rules is Rules.OPENVINO:
            raise PlanError(
                f"the axis {slicing.axis} of a sliced input is negative, which OpenVINO refuses", entry.line
            )


def _check_stride(slicing: Slicing, line: int, rules: Rules, note: Note) -> None:
    try:
        check_stride(slicing, Rules.SPEC)
    except KernelError as error:
        if rules is Rules.SPEC or slicing.stride == 0:
            raise PlanError(str(error), line) from None
        note(f"on line {line} {error} by the specification; OpenVINO goes by the stride")


def _check_joined(slicing: Slicing, line: int, rules: Rules, note: Note) -> None:
    _check_stride(slicing, line, rules, note)
    if slicing.axis < 0:
        text = f"the concatenated output on line {line} has axis {slicing.axis}, which OpenVINO refuses"
        if rules is Rules.OPENVINO:
            raise PlanError(text, line)
        note(text)


def _numbered(parameter: Layer, rules: Rules) -> Callable[[int], Value]:
    """Return the conversion of an iteration number to a value of the Parameter's type and shape."""
    declared = parameter_type(parameter)
    dtype = np.dtype(np.int32 if rules is Rules.OPENVINO or declared is element_types.I32 else np.int64)
    if not parameter_shape(parameter).accepts(()):
        return lambda iteration: np.array([iteration], dtype)
    return dtype.type


def _is_constant(layer: Layer, index: int, outer: Graph) -> bool:
    source = outer.sources[layer.id][index]
    return source is not None and outer.by_id[source.layer].type == "Constant"


def _condition_result(body: Body, program: Program, condition: int | None, rules: Rules) -> int | None:
    """Return the slot of the body's condition; None if it does not count (first draft, no condition input)."""
    for entry in body.outputs:
        if entry.purpose == EXECUTION_CONDITION:
            return program.slot(entry.result)
        if entry.output is None and rules is Rules.OPENVINO:
            raise PlanError("a second <output> with external_port_id -1 hides the condition from OpenVINO", entry.line)
    if not body.first_draft:
        raise PlanError('no <output> of its port map has purpose="execution_condition", which Loop demands')
    if condition is None:
        return None
    marked = {entry.parameter for entry in body.inputs if entry.condition}
    for edge in body.back_edges:
        if edge.to_layer in marked:
            return program.slot(edge.from_layer)
    raise PlanError('no back edge leads into the Parameter marked condition="True", so nothing renews the condition')


def _last_values(body: Body, program: Program, roles: Roles) -> tuple[LastValueOutput, ...]:
    """Return the last-value outputs; of several Parameters fed by a Result, the lowest input counts (measured)."""
    found = []
    for entry in body.outputs:
        if entry.output is None or entry.slicing is not None:
            continue
        fed = [merged for merged in roles.merged if roles.merged_from[merged.parameter] == entry.result]
        first = min(fed, key=lambda merged: merged.input or 0, default=None)
        slot = None if first is None else program.slot(first.parameter)
        found.append(LastValueOutput(entry.output, program.slot(entry.result), slot, entry.line))
    return tuple(found)


def _concatenated(body: Body, program: Program, rules: Rules, note: Note) -> tuple[ConcatenatedOutput, ...]:
    found = []
    for entry in body.outputs:
        slicing = entry.slicing
        if entry.output is None or slicing is None:
            continue
        _check_joined(slicing, entry.line, rules, note)
        found.append(ConcatenatedOutput(entry.output, program.slot(entry.result), slicing, entry.line))
    return tuple(found)


_LARGEST_FOLDED = 256 * 2**20
_MOST_FORMS = 4
NO_PROGRAMS: Final[Mapping[int, Program]] = MappingProxyType({})


def compile_model(
    model: ModelSource,
    rules: str | Rules = Rules.SPEC,
    partner: Partner | None = None,
    known: Mapping[int, Program] = NO_PROGRAMS,
) -> CompiledModel:
    """Settle everything that does not change from run to run.

    `model` may be the path of one. `rules` is "spec" or "openvino". `partner` computes the operations that it claims
    (see partners.py). Raises ModelError with the place for what the file says but cannot be (an attribute, a port map,
    a missing .bin). An operation without a kernel is not an error here: the run stops when it gets there. A model keeps
    its last few forms: the same again is the one that is there.
    """
    model, rules, partner = opened(model), rules_called(rules), partner or default_partner()
    forms: dict[tuple[Rules, int], CompiledModel] = model.compiled
    key = rules, id(partner)  # a new partner begins anew, such as after a crash of the runtime; its form keeps it alive
    if key in forms:
        return forms[key]
    notes: list[tuple[str, str]] = []
    programs: dict[int, Program] = {}
    recipe = _Recipe(model, rules, partner)
    for index, (path, graph) in reversed(list(enumerate(model.graphs()))):
        if id(graph) in known:
            programs[id(graph)] = known[id(graph)]
            continue
        program = _Compiler(model, rules, partner, programs, notes, path, graph).compile()
        programs[id(graph)] = replace(program, origin=(recipe, index))
    main = programs[id(model.graph)]
    found = tuple(reversed(programs.values()))
    compiled = CompiledModel(model, rules, main, found, tuple(dict.fromkeys(notes)), recipe=recipe)
    if partner is not None and computed_elsewhere(compiled):
        compiled = replace(compiled, engine=partner.description)
    if len(forms) == _MOST_FORMS:
        forms.pop(next(iter(forms)), None)
    forms[key] = compiled
    return compiled


def whole_program(
    compiled: CompiledModel, base: Program, model: Model, graph: Graph, programs: Mapping[int, Program]
) -> Program:
    """Compile one graph again that takes the place of another; `programs` are those of its bodies, by id of graph."""
    return _Compiler(model, compiled.rules, partner_in(compiled), dict(programs), [], base.path, graph).compile()


def changed_program(
    compiled: CompiledModel,
    base: Program,
    model: Model,
    graph: Graph,
    changed: Collection[int],
    programs: Mapping[int, Program],
) -> tuple[Program, frozenset[int]]:
    """Compile one graph again in which a few layers changed or are new; everything else is taken from its program.

    Return the slots that may have other values, too: those of changed layers. Parameters stay, and in a body Results;
    dead code that the change makes is computed. `programs` are those of the bodies by id of graph, changed or not.
    Raises ValueError for a circle, and what compiling the layers raises.
    """
    compiler = _ChangeCompiler(model, compiled.rules, partner_in(compiled), dict(programs), [], base.path, graph)
    return compiler.change(base, changed)


def compiled_alike(compiled: CompiledModel, model: Model) -> CompiledModel:
    """Return another form of a model compiled by the same rules, with the same partner."""
    return compile_model(model, compiled.rules, partner_in(compiled))


def partner_in(compiled: CompiledModel) -> Partner | None:
    """Return the partner with which a model was compiled."""
    recipe = compiled.recipe
    return recipe.partner if isinstance(recipe, _Recipe) else None


class _Recipe(Record):
    """Source of a compiled model; called, it gives that again, which a model keeps."""

    model: Model
    rules: Rules
    partner: Partner | None

    def __call__(self) -> CompiledModel:
        known = (one for one in list(self.model.compiled.values()) if one.recipe == self)
        return next(known, None) or compile_model(self.model, self.rules, self.partner)


def unsupported_layers(model: Model) -> list[tuple[tuple[Layer, ...], Layer]]:
    """Return every layer that no kernel serves, with the layers that lead to its graph."""
    return [
        (path, layer)
        for path, graph in model.graphs()
        for layer in graph.layers
        if not layer.bodies and layer.type not in NO_OPERATIONS and _kernel_of(layer) is None
    ]


def given_away(model: Model, partner: Partner | None) -> dict[tuple[int, int], str]:
    """Return the provider of each layer that has no kernel of ours to run, without compiling the model."""
    found = {}
    for _path, graph in model.graphs() if partner is not None else ():
        for layer in graph.layers:
            if partner is not None and not layer.bodies and _is_claimed(partner, layer, _kernel_of(layer)):
                _function, who = partner.bind(layer, [None] * len(graph.sources[layer.id]))
                if who:
                    found[id(graph), layer.id] = who
    return found


def _is_claimed(partner: Partner, layer: Layer, kernel: Kernel | None) -> bool:
    """Return True if the partner computes a layer without bodies; what has state or computes nothing stays."""
    if layer.type in NO_OPERATIONS or (kernel is not None and kernel.stateful):
        return False
    return partner.computes(layer, has_kernel=kernel is not None)


def _kernel_of(layer: Layer) -> Kernel | None:
    return None if layer.definition is None else find(layer.type, layer.definition)


class _Compiler:
    """Compile one graph, after its nested graphs."""

    def __init__(
        self,
        model: Model,
        rules: Rules,
        partner: Partner | None,
        programs: dict[int, Program],
        notes: list[tuple[str, str]],
        path: tuple[Layer, ...],
        graph: Graph,
    ) -> None:
        self.model, self.rules, self.programs, self.notes = model, rules, programs, notes
        self.partner, self.path, self.graph = partner, path, graph
        self.slots: dict[tuple[int, int], int] = {}
        self.template: list[Value] = []
        self.constant: set[int] = set()
        self._converts: dict[int, int] = {}
        """Slots of constants, by the slot that has one converted when the model runs."""

    def compile(self) -> Program:
        operations: list[Operation] = []
        folded: list[Operation] = []
        code: list[Step] = []
        for layer in _ordered(self.graph):
            if layer.type == "Result":
                source = self.graph.sources[layer.id][0]
                assert source is not None, "the reader has seen to it"
                self.slots[layer.id, 0] = self.slots[source.layer, source.output]
            elif layer.type == "Constant":
                value = arithmetic.narrowed_constant(constant_value(self.model, layer), self.rules)
                self._new_slot(layer, 0, value, constant=True)
            elif layer.type == "Parameter":
                self._new_slot(layer, 0, None)
            else:
                operation = self._operation(layer)
                if self._fold(operation):
                    folded.append(operation)
                else:
                    operations.append(operation)
                    code.append(step_of(operation))
                    if layer.type == "Convert" and operation.inputs[0] in self.constant:
                        self._converts[operation.outputs[0]] = operation.inputs[0]
        return self._program(operations, folded, code)

    def _program(self, operations: list[Operation], folded: list[Operation], code: list[Step]) -> Program:
        for parameter in self.graph.parameters:
            if (parameter.id, 0) not in self.slots:  # nothing reads it, but it may still be fed and looked at
                self._new_slot(parameter, 0, None)
        results = tuple(self.slots[layer.id, 0] for layer in self.graph.results)
        return Program(
            graph=self.graph,
            path=self.path,
            operations=tuple(operations),
            folded=tuple(folded),
            code=tuple(code),
            straight=all(step[0] is not None for step in code),
            template=tuple(self.template),
            slots=self.slots,
            parameters=tuple(self.slots[layer.id, 0] for layer in self.graph.parameters),
            results=results,
            dead_after=_dead_after(operations, set(results) | self.constant),
        )

    def _new_slot(self, layer: Layer, output: int, value: Value, *, constant: bool = False) -> int:
        slot = len(self.template)
        self.slots[layer.id, output] = slot
        self.template.append(value)
        if constant:
            self.constant.add(slot)
        return slot

    def _operation(self, layer: Layer) -> Operation:
        sources = self.graph.sources[layer.id]
        inputs = tuple(-1 if source is None else self.slots[source.layer, source.output] for source in sources)
        outputs = tuple(self._new_slot(layer, index, None) for index in range(len(layer.outputs)))
        if layer.bodies:
            kind = OpKind.LOOP if layer.is_loop else OpKind.BRANCH
            return Operation(layer, kind, inputs, outputs, plans=self._plans(layer))
        kernel = _kernel_of(layer)
        if self.partner is not None and _is_claimed(self.partner, layer, kernel):
            return self._given_away(self.partner, layer, inputs, outputs)
        if kernel is None:
            return Operation(layer, OpKind.KERNEL, inputs, outputs, _refusal(layer), several_outputs=True)
        function = by_blocks(layer, self._bound(layer, kernel, len(inputs)), self._converted(inputs))
        if kernel.stateful:
            key = layer.attributes.get("variable_id") or "/".join(str(step.id) for step in (*self.path, layer))
            return Operation(layer, OpKind.STATEFUL, inputs, outputs, function, kernel.several_outputs, state_key=key)
        if (settled := self._settled(layer, kernel, inputs)) is not None:
            return Operation(layer, OpKind.KERNEL, inputs, outputs, function, kernel.several_outputs, settled=settled)
        # Under the plugin's rules, and with attributes that differ from their defaults, it is another function.
        floating = kernel.floating if function in (kernel.direct, kernel.function) else None
        return Operation(layer, OpKind.KERNEL, inputs, outputs, function, kernel.several_outputs, floating)

    def _given_away(self, partner: Partner, layer: Layer, inputs: Ints, outputs: Ints) -> Operation:
        constants = [self.template[slot] if slot in self.constant else None for slot in inputs]
        if self.rules is Rules.OPENVINO:
            held = layer._replace(attributes=arithmetic.plugin_attributes(layer))
            function, computed_by = partner.bind(held, constants)
            function = arithmetic.narrowing(function)
        else:
            function, computed_by = partner.bind(layer, constants)
        return Operation(layer, OpKind.KERNEL, inputs, outputs, function, several_outputs=True, computed_by=computed_by)

    def _converted(self, inputs: Ints) -> Array | None:
        """Return the constant that a Convert of this graph makes the second input of; None of another one."""
        convert = self._converts.get(inputs[1]) if len(inputs) > 1 else None
        return None if convert is None else self.template[convert]

    def _bound(self, layer: Layer, kernel: Kernel, inputs: int) -> Callable[..., Any]:
        least, most = kernel.accepted_inputs()
        if inputs < least or (most is not None and inputs > most):
            expected = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            self._fail(layer, f"has {inputs} inputs, expected {expected}")
        if len(layer.outputs) > 1 and not kernel.several_outputs:
            self._fail(layer, f"has {len(layer.outputs)} output ports, expected one")
        if difference := arithmetic.difference(layer):
            self.notes.append((self._where(layer), difference))
        try:
            if self.rules is Rules.OPENVINO:
                return arithmetic.as_the_plugin(kernel.bind, layer, stateful=kernel.stateful)
            return kernel.bind(layer.attributes)
        except KernelError as error:
            self._fail(layer, str(error))

    def _settled(self, layer: Layer, kernel: Kernel, inputs: Ints) -> Callable[..., Any] | None:
        """Return the kernel as a function of the first input alone, if the others are constants and it pays."""
        if len(inputs) < 2 or not self.constant.issuperset(inputs[1:]):
            return None
        try:
            settled = kernel.settle(layer.attributes, [self.template[slot] for slot in inputs[1:]])
        except Exception:  # the kernel itself refuses these constants, when the run gets there
            return None
        if settled is None or self.rules is Rules.SPEC:
            return settled
        return arithmetic.as_the_plugin(lambda _attributes: settled, layer, stateful=False)

    def _plans(self, layer: Layer) -> tuple[LoopPlan | BranchPlan, ...]:
        where = self._where(layer)
        try:
            if layer.is_loop:
                program = self.programs[id(layer.bodies[0].graph)]
                plan = loop_plan(layer, program, self.graph, self.rules, lambda text: self.notes.append((where, text)))
                return (plan,)
            return tuple(branch_plan(body, self.programs[id(body.graph)]) for body in layer.bodies)
        except PlanError as error:
            FilePlace(self.model.path, error.line or layer.line, where).fail(str(error))

    def _where(self, layer: Layer) -> str:
        return " > ".join([*(f"{step.type} '{step.name}'" for step in self.path), str(layer)])

    def _fail(self, layer: Layer, message: str) -> NoReturn:
        FilePlace(self.model.path, layer.line, self._where(layer)).fail(message)

    def _fold(self, operation: Operation) -> bool:
        """Compute an operation of a body now if all its inputs are constants; whether that was done.

        An operation that fails is left to the run, where it fails at its place; so is the model's own graph, which runs
        once anyway.
        """
        foldable = operation.kind is OpKind.KERNEL and operation.inputs and self.constant.issuperset(operation.inputs)
        if not self.path or not foldable:
            return False
        assert operation.function is not None
        try:
            with np.errstate(all="ignore"):
                results = operation.function(*[self.template[slot] for slot in operation.inputs])
        except Exception:
            return False
        outputs = tuple(results) if operation.several_outputs else (results,)
        if len(outputs) < len(operation.outputs) or sum(output.nbytes for output in outputs) > _LARGEST_FOLDED:
            return False
        for slot, value in zip(operation.outputs, outputs, strict=False):
            self.template[slot] = value
            self.constant.add(slot)
        return True


_Place = tuple[int, int]
"""Place of an operation: the index of one that is there already, and the number among those that follow it."""


class _ChangeCompiler(_Compiler):
    """Compile a graph that shares most operations with a compiled program."""

    def change(self, base: Program, changed: Collection[int]) -> tuple[Program, frozenset[int]]:
        self._base, self._changed = base, changed
        self.slots, self.template, self.constant = dict(base.slots), list(base.template), {*base.constant_slots}
        self._made: dict[int, tuple[_Place, Operation] | None] = {}
        self._places: dict[int, _Place] = {}
        stale = {self._constant(key) for key in changed if self.graph.by_id[key].type == "Constant"} - {-1}
        for key in self._affected(stale):
            self._make(key)
        for result in base.graph.results:
            if result.id in changed:
                self.slots[result.id, 0] = self._slot_of(self.graph.sources[result.id][0])
        made = [one for one in self._made.values() if one is not None]
        program = self._changed_program(made)
        return program, frozenset(stale.union(*(operation.outputs for _place, operation in made)))

    def _constant(self, key: int) -> int:
        """Take another value of a Constant; return its slot, -1 for one that has none yet."""
        slot = self.slots.get((key, 0), -1)
        if slot >= 0:
            value = constant_value(self.model, self.graph.by_id[key])
            self.template[slot] = arithmetic.narrowed_constant(value, self.rules)
        return slot

    def _affected(self, stale: set[int]) -> dict[int, None]:
        """Return the layers to compile: those that changed, and those into which changed constants or bodies went."""
        base, found = self._base, dict[int, None]()
        for operation in base.folded:
            if operation.layer.id in self._changed or not stale.isdisjoint(operation.inputs):
                found[operation.layer.id] = None
                stale.update(operation.outputs)
                self.constant.difference_update(operation.outputs)
        for slot in stale:
            found.update(dict.fromkeys(base.operations[index].layer.id for index in base.readers.get(slot, ())))
        for index in base.holders:
            operation = base.operations[index]
            if any(self.programs[id(plan.program.graph)] is not plan.program for plan in operation.plans):
                found[operation.layer.id] = None
        used = (key for key in self._changed if key in base.used and self.graph.by_id[key].type not in NO_OPERATIONS)
        found.update(dict.fromkeys(used))
        return found

    def _slot_of(self, source: Source | None) -> int:
        """Return the slot of a value; what the program does not compute is compiled."""
        assert source is not None
        if (source.layer, source.output) not in self.slots:
            self._make(source.layer)
        return self.slots[source.layer, source.output]

    def _make(self, key: int) -> None:
        layer = self.graph.by_id[key]
        if layer.type == "Constant":
            value = arithmetic.narrowed_constant(constant_value(self.model, layer), self.rules)
            self._new_slot(layer, 0, value, constant=True)
            return
        if key in self._made:
            if self._made[key] is None:
                raise ValueError("the change makes a circle")
            return
        self._made[key] = None
        for source in self.graph.sources[key]:
            if source is not None:
                self._slot_of(source)
        index = self._base.indices.get(key)
        if layer.bodies and index is not None and key not in self._changed:
            operation = self._base.operations[index]
            operation = replace(operation, plans=tuple(map(self._with_program, operation.plans)))
        else:
            operation = self._operation(layer)
        behind = max((self._place(slot)[0] for slot in operation.inputs), default=-1)
        place = (index, 0) if index is not None else (behind, len(self._made))
        self._places.update(dict.fromkeys(operation.outputs, place))
        self._made[key] = place, operation

    def _with_program(self, plan: LoopPlan | BranchPlan) -> LoopPlan | BranchPlan:
        """Return a plan with the program that its body has now, without claims that the change may make wrong."""
        program = self.programs[id(plan.program.graph)]
        if isinstance(plan, BranchPlan):
            return replace(plan, program=program)
        return replace(plan, program=program, may_grow=True, fixed_condition=False, deciding=None)

    def _place(self, slot: int) -> _Place:
        return self._places.get(slot) or (self._base.computed_at.get(slot, -1), 0)

    def _new_slot(self, layer: Layer, output: int, value: Value, *, constant: bool = False) -> int:
        known = self._base.slots.get((layer.id, output))
        return super()._new_slot(layer, output, value, constant=constant) if known is None else known

    def _changed_program(self, made: Sequence[tuple[_Place, Operation]]) -> Program:
        base = self._base
        operations, code = list(base.operations), list(base.code)
        added = list[tuple[_Place, Operation]]()
        for place, operation in made:
            if operation.layer.id in base.indices:
                operations[place[0]], code[place[0]] = operation, step_of(operation)
            else:
                added.append((place, operation))
        for (behind, _number), operation in sorted(added, key=itemgetter(0), reverse=True):
            operations.insert(behind + 1, operation)
            code.insert(behind + 1, step_of(operation))
        if not all(self._place(slot) < place for place, operation in made for slot in operation.inputs):
            operations = _sources_first(operations)
            code = [step_of(operation) for operation in operations]
        return replace(
            base,
            operations=tuple(operations),
            folded=tuple(one for one in base.folded if one.layer.id not in self._made),
            code=tuple(code),
            straight=base.straight and not any(operation.kind is not OpKind.KERNEL for _place, operation in made),
            template=tuple(self.template),
            slots=self.slots,
            results=tuple(self.slots[layer.id, 0] for layer in base.graph.results),
            dead_after=(),
            origin=None,
        )


def _sources_first(operations: Sequence[Operation]) -> list[Operation]:
    """Return operations in an order in which each comes after those that it reads. ValueError for a circle."""
    maker = {slot: index for index, operation in enumerate(operations) for slot in operation.outputs}
    before = [{maker[slot] for slot in operation.inputs if slot in maker} for operation in operations]
    behind: list[list[int]] = [[] for _ in operations]
    for index, sources in enumerate(before):
        for source in sources:
            behind[source].append(index)
    waiting = [len(sources) for sources in before]
    ready, found = [index for index, count in enumerate(waiting) if not count], list[Operation]()
    while ready:
        index = heapq.heappop(ready)
        found.append(operations[index])
        for other in behind[index]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, other)
    if len(found) < len(operations):
        raise ValueError("the change makes a circle")
    return found


def _refusal(layer: Layer) -> Callable[..., Any]:
    """Return the function of an operation without a kernel: it stops the run."""

    def refuse(*_inputs: Any) -> Any:
        raise UnsupportedOperation(no_kernel(layer))

    return refuse


def _ordered(graph: Graph) -> list[Layer]:
    """Return the layers that some Result or Assign needs and all Parameters, sources first, else in file order."""
    position = {layer.id: index for index, layer in enumerate(graph.layers)}
    needed = _needed(graph)
    waiting: dict[int, int] = {}
    consumers: dict[int, list[int]] = {key: [] for key in needed}
    for key in needed:
        sources = {source.layer for source in graph.sources[key] if source is not None} | _reads_before(
            graph, key, needed
        )
        waiting[key] = len(sources)
        for source in sources:
            consumers[source].append(key)
    ready = [position[key] for key, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order = []
    while ready:
        layer = graph.layers[heapq.heappop(ready)]
        order.append(layer)
        for consumer in consumers[layer.id]:
            waiting[consumer] -= 1
            if waiting[consumer] == 0:
                heapq.heappush(ready, position[consumer])
    return order


def _needed(graph: Graph) -> set[int]:
    found = [layer.id for layer in graph.layers if layer.type in ("Result", "Assign")]
    needed = set(found)
    while found:
        for source in graph.sources[found.pop()]:
            if source is not None and source.layer not in needed:
                needed.add(source.layer)
                found.append(source.layer)
    return needed


def _reads_before(graph: Graph, key: int, needed: set[int]) -> set[int]:
    """Return the ReadValues that must come before an Assign of the same variable."""
    layer = graph.by_id[key]
    if layer.type != "Assign":
        return set()
    variable = layer.attributes.get("variable_id")
    return {
        other.id
        for other in graph.layers
        if other.type == "ReadValue" and other.attributes.get("variable_id") == variable and other.id in needed
    }


def _dead_after(operations: list[Operation], kept: set[int]) -> tuple[Ints, ...]:
    last: dict[int, int] = {}
    for index, operation in enumerate(operations):
        for slot in (*operation.outputs, *operation.inputs):
            last[slot] = index
    dead: list[list[int]] = [[] for _ in operations]
    for slot, index in last.items():
        if slot >= 0 and slot not in kept:
            dead[index].append(slot)
    return tuple(tuple(slots) for slots in dead)
