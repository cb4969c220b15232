"""Compilation of a Model to a CompiledModel: `compile_model`.

Steps, graph by graph from the innermost outwards: leave out what no Result or Assign needs; order the rest (a layer
after its sources, ReadValue before Assign of its variable, otherwise as in the file); give every output a slot; bind
kernels; resolve port maps (plans.py); compute what follows from constants alone, once, in the bodies.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper import ops
from stepper.element_types import Array
from stepper.engine import arithmetic
from stepper.engine.compilation import plans
from stepper.engine.compilation.blocks import by_blocks
from stepper.engine.partners import Partner, computed_elsewhere, default_partner, no_kernel
from stepper.engine.program import (
    BranchPlan,
    CompiledModel,
    LoopPlan,
    Operation,
    OpKind,
    Program,
    Step,
    Value,
    step_of,
)
from stepper.engine.rules import Rules, rules_called
from stepper.errors import KernelError, UnsupportedOperation
from stepper.ir.constants import constant_value
from stepper.ir.model import Graph, Layer, Model
from stepper.ir.opening import ModelSource, opened
from stepper.ir.xml import FilePlace
from stepper.operation_types import NO_OPERATIONS

_LARGEST_FOLDED = 256 * 2**20
_MOST_FORMS = 4


def compile_model(model: ModelSource, rules: str | Rules = Rules.SPEC, partner: Partner | None = None) -> CompiledModel:
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


def compiled_alike(compiled: CompiledModel, model: Model) -> CompiledModel:
    """Return another form of a model compiled by the same rules, with the same partner."""
    return compile_model(model, compiled.rules, partner_in(compiled))


def partner_in(compiled: CompiledModel) -> Partner | None:
    """Return the partner with which a model was compiled."""
    recipe = compiled.recipe
    return recipe.partner if isinstance(recipe, _Recipe) else None


class _Recipe(Struct, frozen=True):
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


def _is_claimed(partner: Partner, layer: Layer, kernel: ops.Kernel | None) -> bool:
    """Return True if the partner computes a layer without bodies; what has state or computes nothing stays."""
    if layer.type in NO_OPERATIONS or (kernel is not None and kernel.stateful):
        return False
    return partner.computes(layer, has_kernel=kernel is not None)


def _kernel_of(layer: Layer) -> ops.Kernel | None:
    return None if layer.definition is None else ops.find(layer.type, layer.definition)


class _Compiler:
    """Compiles one graph, of which the nested ones are compiled already."""

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

    def _given_away(
        self, partner: Partner, layer: Layer, inputs: tuple[int, ...], outputs: tuple[int, ...]
    ) -> Operation:
        constants = [self.template[slot] if slot in self.constant else None for slot in inputs]
        if self.rules is Rules.OPENVINO:
            held = layer._replace(attributes=arithmetic.plugin_attributes(layer))
            function, computed_by = partner.bind(held, constants)
            function = arithmetic.narrowing(function)
        else:
            function, computed_by = partner.bind(layer, constants)
        return Operation(layer, OpKind.KERNEL, inputs, outputs, function, several_outputs=True, computed_by=computed_by)

    def _converted(self, inputs: tuple[int, ...]) -> Array | None:
        """Return the constant that a Convert of this graph makes the second input of; None of another one."""
        convert = self._converts.get(inputs[1]) if len(inputs) > 1 else None
        return None if convert is None else self.template[convert]

    def _bound(self, layer: Layer, kernel: ops.Kernel, inputs: int) -> Callable[..., Any]:
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

    def _settled(self, layer: Layer, kernel: ops.Kernel, inputs: tuple[int, ...]) -> Callable[..., Any] | None:
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
                plan = plans.loop_plan(
                    layer, program, self.graph, self.rules, lambda text: self.notes.append((where, text))
                )
                return (plan,)
            return tuple(plans.branch_plan(body, self.programs[id(body.graph)]) for body in layer.bodies)
        except plans.PlanError as error:
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


def _dead_after(operations: list[Operation], kept: set[int]) -> tuple[tuple[int, ...], ...]:
    last: dict[int, int] = {}
    for index, operation in enumerate(operations):
        for slot in (*operation.outputs, *operation.inputs):
            last[slot] = index
    dead: list[list[int]] = [[] for _ in operations]
    for slot, index in last.items():
        if slot >= 0 and slot not in kept:
            dead[index].append(slot)
    return tuple(tuple(slots) for slots in dead)
