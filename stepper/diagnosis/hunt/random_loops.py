"""Build models with one or two loops from a seed, identical on every machine.

Each seed varies:

- TensorIterator and Loop, one after the other, and inside each other and If, three levels deep at most;
- sliced inputs: any axis of ranks 1 to 4, strides of 1, 2 and 3 in both directions, slices left over at the end;
  more slices than iterations (Loop), one outer value feeding several Parameters, slices of computed values;
- invariant inputs;
- carried states: free states, running sums, counters, two states that swap through a computing operation;
  one Result carried to two Parameters, states of LSTMCell, GRUCell and RNNCell, states that grow by a row each time;
- outputs: last values and concatenations in both orders, along any axis, of scalars, several of one Result;
  Results that lead nowhere, the condition itself;
- trip count: Const or Parameter, i32 or i64, scalar or [1], exact, beyond the stop, -1, from an outer body;
  measured by ShapeOf; zero iterations, by trip count or by condition;
- condition: Const or Parameter, always true, false at once, by the current iteration, by a counter;
  by a running total, by flags from a sliced input, or carried;
- element types f32, f16, i32, i64, u8 and boolean; at times Parameters of dynamic shape.

Magnitudes stay bounded, and no comparison depends on rounding. The generator leaves out these known errors of the
runtime:

- Results that reach a Parameter's memory through operations in place; Softmax of a Parameter;
- TensorIterators whose slices are unused; loops with an unused output beside a used output of the same Result;
- constant invariant inputs in front of the Parameter that counts iterations;
- undefined outputs of loops that do not run.

Slices are drawn only in the shapes that the specification and the runtime read alike: the whole axis forwards or
backwards, or an axis whose last slices are left over.

Loops around one operation run on every element type, with a layer of a network, or with quantised values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import openvino as ov
import openvino.opset14 as opset14
from openvino.op import if_op, loop, tensor_iterator

from stepper.diagnosis.hunt.random_operations import (
    ALL_TYPES,
    CAREFUL,
    FLOATING,
    FLOATS,
    GATES,
    INTEGERS,
    NUMBERS,
    USUAL_BOUND,
    Freedom,
    GraphScope,
    Value,
    add_operation,
    cell,
    like,
    ops,
    random_array,
    random_shape,
    recurrent,
)
from stepper.element_types import Array

# Inputs, back edges and outputs of a loop.

_INPUT_TYPES = (*("f32",) * 5, "f16", "i32", "i64", "u8", "boolean")


class SliceChoice(NamedTuple):
    """How an axis is cut: attributes of one port map entry, in the order of the functions of a loop's node."""

    start: int
    stride: int
    part_size: int
    end: int
    axis: int


def _cut_along(axis: int, stride: int, left_over: int = 0) -> SliceChoice:
    """The slicing of a whole axis in the direction of the stride, but for the last `left_over` elements."""
    start, end = (0, -1 - left_over) if stride > 0 else (-1, left_over)
    return SliceChoice(start, stride, abs(stride), end, axis)


@dataclass(eq=False)
class _DrawnInput:
    """A body Parameter that takes slices, or stays the same, or is carried in a `role`."""

    parameter: Value
    outer: Value
    cut: SliceChoice | None = None
    role: str = ""
    following: Value | None = None
    shared_with: _DrawnInput | None = None
    result: Any = None


class _DrawnOutput(NamedTuple):
    """An output of the loop: a body Result, as its last value or concatenated along an axis."""

    result: Any
    value: Value
    cut: SliceChoice | None


class _LoopDraft:
    """Inputs, states, Results and outputs of one loop inside `outer`, while its body is being built."""

    def __init__(self, outer: GraphScope, kind: str) -> None:
        self.outer, self.kind, self.rng, self.body = outer, kind, outer.rng, outer.inside(kind)
        self.is_nested, self.is_loop = bool(outer.path), kind == "Loop"
        self.iterations = self.rng.choice((1, 2, 2, 3, 3) if self.is_nested else (1, 2, 3, 3, 4, 4, 5, 6))
        self.runs = self.is_nested or not self.is_loop or not outer.chance(0.1)
        self.inputs: list[_DrawnInput] = []
        self.iteration: Value | None = None
        self.results: list[Any] = []
        self.outputs: list[_DrawnOutput] = []
        self.kept: list[Any] = []

    @property
    def carried(self) -> list[_DrawnInput]:
        """The inputs that back edges carry."""
        return [one for one in self.inputs if one.role]

    def parameters(self) -> list[Value]:
        """The Parameters of the body, so far as anything feeds them."""
        return [*(one.parameter for one in self.inputs), *([self.iteration] if self.iteration else [])]

    def many(self, at_top: Sequence[int], nested: Sequence[int]) -> range:
        """A random number of steps."""
        return range(self.rng.choice(nested if self.is_nested else at_top))

    def form(self, number: float, types: Sequence[Any] = (np.int32, np.int64)) -> Array:
        """A single number in one of the forms that control inputs may have."""
        return np.full(self.rng.choice(((), (1,))), number, self.rng.choice(types))

    # Inputs

    def add(self, parameter: Value, outer: Value, cut: SliceChoice | None = None, role: str = "") -> _DrawnInput:
        """A new input."""
        self.inputs.append(_DrawnInput(self.body.keep(parameter), outer, cut, role))
        return self.inputs[-1]

    def add_slice(self, outer: Value, cut: SliceChoice) -> Value:
        """A body Parameter that reads slices of `outer`."""
        shape = (*outer.shape[: cut.axis], cut.part_size, *outer.shape[cut.axis + 1 :])
        parameter = self.body.parameter(shape, outer.element_type, outer.bound, coarse=outer.coarse)
        return self.add(parameter, outer, cut).parameter

    def add_sliced(self) -> None:
        """A sliced input of random rank, axis and stride, at times read by a second Parameter in another way."""
        rng, is_loop = self.rng, self.is_loop
        rank = rng.choice((1, 2, 2, 2, 3, 3, 4))
        axis, stride = rng.randrange(rank), rng.choice((1, 1, 1, 1, -1, -1, -1, 2, -2, 3, -3))
        part = abs(stride)
        left_over = rng.choice((0, 0, 0, 1, 2)) * (part if stride < 0 or is_loop else 1)
        extent = (self.iterations + (rng.choice((0, 0, 1)) if is_loop else 0)) * part + left_over
        cut = _cut_along(axis, stride, left_over)
        if part > 1 and self.outer.chance(self.outer.freedom.slices):
            cut = cut._replace(part_size=rng.randint(1, part + 1))
            extent += cut.part_size - part
        shape = list(random_shape(rng, rank, largest=2 if rank == 4 else 4))
        shape[axis] = extent
        outer = self.outer.obtain(rng.choice(_INPUT_TYPES), tuple(shape))
        self.add_slice(outer, cut)
        if rng.random() < 0.2:
            if extent % cut.part_size or rng.random() < 0.3:
                self.add(self.body.parameter_for(outer), outer)
            else:
                self.add_slice(outer, _cut_along(axis, -stride, left_over))

    def add_invariant(self) -> None:
        """An input that every iteration sees whole."""
        outer = self.outer.obtain(self.rng.choice(_INPUT_TYPES), random_shape(self.rng, self.rng.randint(0, 3)))
        self.add(self.body.parameter_for(outer), outer)

    # States

    def add_state(self, role: str, initial: Value, growth: float = 0, least: float = 0) -> _DrawnInput:
        """A carried state whose bound grows by so much in each iteration."""
        bound = max(initial.bound, least) + growth * self.iterations
        return self.add(replace(self.body.parameter_for(initial), bound=bound), initial, None, role)

    def add_carried(self) -> None:
        """Add one or two carried states in a random role."""
        rng = self.rng
        element_type = rng.choice(ALL_TYPES if rng.random() < 0.35 else ("f32",))
        shape, kind = random_shape(rng, rng.randint(0, 3)), rng.choice(tuple(GATES))
        role = rng.choice(("free", "free", "free", "sum", "swap", "fan", "recurrent"))
        if (role == "sum" and element_type not in NUMBERS) or (role in ("swap", "fan") and not self.runs):
            role = "free"
        if role == "recurrent":
            element_type, shape = "f32", random_shape(rng, 2, 3)
        count = 2 if role in ("swap", "fan") or (role == "recurrent" and kind == "lstm") else 1
        growth = [float(USUAL_BOUND[element_type]) if role == "sum" else 0.0, float(role == "recurrent")][:count]
        usual = USUAL_BOUND[element_type]
        states = [self.add_state(role, self.outer.obtain(element_type, shape), one, usual) for one in growth]
        parameters = [state.parameter for state in states]
        if role == "recurrent":
            for state, value in zip(states, cell(self.body, parameters, kind), strict=True):
                state.following = value
        elif count == 2 and parameters[0].coarse == parameters[1].coarse:
            if role == "fan":
                states[1].shared_with = states[0]
            else:
                for state, other in zip(states, reversed(parameters), strict=True):
                    state.following = self.body.touched(other)

    def add_total(self, role: str, initial: Array, step: Any, growth: float) -> _DrawnInput:
        """Whole numbers that grow by a step in each iteration."""
        state = self.add_state(role, self.outer.exactly(initial), growth)
        state.following = self.body.offer(ops.add, state.parameter.bound, state.parameter, step)
        return state

    def add_growing(self) -> None:
        """A state that gains one row in each iteration; only its reduction is offered to the body."""
        rng, body, width = self.rng, self.body, self.rng.randint(1, 3)
        initial = self.outer.obtain("f32", (rng.randint(1, 2), width))
        parameter = body.parameter((-1, width), "f32", max(1.5, initial.bound), coarse=initial.coarse)
        self.add(parameter, initial, None, "growing")
        make = rng.choice((ops.reduce_sum, ops.reduce_max))
        body.offer(make, parameter.bound * 9, parameter, [0], rng.random() < 0.5)

    def close(self) -> None:
        """Choose what every state without one becomes in the next iteration, and make the Results that carry it."""
        for state in self.carried:
            if state.shared_with is None:
                state.following = state.following or self._following(state)
                state.result = self.result(state.following)
        for state in self.carried:
            if state.shared_with is not None:
                state.following, state.result = state.shared_with.following, state.shared_with.result

    def _following(self, state: _DrawnInput) -> Value:
        """The next value of a state, made from something that the body has computed or from the state alone."""
        body, own = self.body, state.parameter
        source = body.pick(ALL_TYPES, lambda v: bool(v.roots) and v is not own and (own.coarse or not v.coarse))
        source = own if source is None or not self.runs else source
        if state.role == "growing":
            row = body.touched(body.adapted(source, "f32", (1, own.shape[1])))
            return body.derive(lambda *both: ops.concat(both, 0), own.bound, own, row)
        if state.role == "sum":
            share = min((own.bound - state.outer.bound) / self.iterations, USUAL_BOUND[own.element_type])
            return body.derive(ops.add, own.bound, own, body.adapted(source, own.element_type, own.shape, share))
        return body.touched(body.adapted(source, own.element_type, own.shape, own.bound))

    # Results and outputs

    def result(self, value: Value) -> Any:
        """A new Result of this value."""
        self.body.unused = [one for one in self.body.unused if one is not value]
        self.results.append(ops.result(value.output))
        return self.results[-1]

    def expose(self, result: Any, value: Value, cut: SliceChoice | None = None) -> None:
        """Make the Result an output of the loop."""
        self.outputs.append(_DrawnOutput(result, value, cut))

    def concatenation(self, value: Value) -> SliceChoice | None:
        """Return the axis and the order in which the value can be concatenated without a reshape."""
        longest = 1 if self.is_loop else 3
        fitting = [(axis, size) for axis, size in enumerate(value.shape or (1,)) if 0 < size <= longest]
        if not fitting:
            return None
        axis, size = self.rng.choice(fitting)
        return _cut_along(axis, size if self.is_loop or self.rng.random() >= 0.4 else -size)

    def expose_either_way(self, result: Any, value: Value) -> None:
        """An output from the Result, concatenated if its shape allows that and chance wills it."""
        self.expose(result, value, self.concatenation(value) if self.outer.chance(0.5) else None)

    def expose_alone(self, value: Value, *, concatenate: bool) -> Any:
        """An output from a new Result, given an axis of length 1 if it lacks one to be concatenated along."""
        cut = self.concatenation(value) if concatenate else None
        if concatenate and cut is None:
            place = self.rng.randint(0, value.rank)
            value = self.body.reshaped(value, (*value.shape[:place], 1, *value.shape[place:]))
            cut = _cut_along(place, 1 if self.is_loop or self.rng.random() >= 0.4 else -1)
        result = self.result(value)
        self.expose(result, value, cut)
        return result, value

    def fresh_value(self) -> Value:
        """A value of the body that no Parameter's memory backs."""
        body = self.body
        value = body.pick(ALL_TYPES, lambda v: bool(v.roots) and v.computed) if body.chance(0.8) else None
        return body.touched(value or body.pick(ALL_TYPES, lambda v: bool(v.roots)) or self.parameters()[0])

    def choose_outputs(self) -> None:
        """Outputs from the back edges' Results and from Results of their own; at least one."""
        rng, runs = self.rng, self.runs
        for state in self.carried:
            value, is_growing = state.following, state.role == "growing"
            if value is None or state.shared_with is not None:
                continue
            if is_growing or rng.random() < 0.6 or not runs:
                self.expose(state.result, value)
            if not is_growing and rng.random() < 0.35 and (cut := self.concatenation(value)):
                self.expose(state.result, value, cut)
        count = len(self.many((1, 1, 2, 3), (0, 1, 1, 2)) if runs else self.many((0, 1), (0, 1)))
        for _ in range(count or not self.outputs):
            exposed = self.expose_alone(self.fresh_value(), concatenate=not runs or rng.random() < 0.6)
            if runs and rng.random() < 0.2:
                self.expose_either_way(*exposed)
        if rng.random() < 0.1:
            self.kept.append(self.result(self.fresh_value()))

    # Leaving out what a loop does not need: the runtime loses count where it removes unused inputs of a body itself.

    def live_roots(self, more: Sequence[Value]) -> set[str]:
        """The Parameters that matter for the outputs and `more`, in any number of iterations."""
        roots, found = (
            set[str](),
            {root for value in (*(one.value for one in self.outputs), *more) for root in value.roots},
        )
        while found - roots:
            roots |= found
            states = (one for one in self.carried if one.following and one.parameter.name in roots)
            found = {root for state in states if state.following for root in state.following.roots}
        return roots

    def results_in_use(self, carried: Iterable[_DrawnInput]) -> list[Any]:
        """The Results that an output, a back edge or something else needs."""
        used = [*self.kept, *(output.result for output in self.outputs), *(state.result for state in carried)]
        return [result for result in self.results if any(result is other for other in used)]

    def idle_parameters(self, roots: set[str]) -> list[Value]:
        """Parameters to give an output of their own: used for their shape only, or the slices that count iterations."""
        nodes = _reachable(self.results_in_use(one for one in self.carried if one.parameter.name in roots))
        idle = [p for p in self.parameters() if p.name in nodes and p.name not in roots]
        counting = [one.parameter for one in self.inputs if one.cut]
        if not self.is_loop and not any(one.name in roots for one in counting):
            idle += counting[:1]
        return idle

    def prune(self, more: Sequence[Value]) -> None:
        """Drop dead inputs, states and Results, but not what the values `more` need."""
        if self.outer.chance(self.outer.freedom.idle):
            return
        while idle := self.idle_parameters(roots := self.live_roots(more)):
            self.expose_alone(self.body.touched(idle[0]), concatenate=not self.runs or self.outer.chance(0.5))
        self.inputs = [one for one in self.inputs if one.parameter.name in roots]
        if self.iteration and self.iteration.name not in roots:
            self.iteration = None
        self.results = self.results_in_use(self.carried)

    # The node

    def connected(self, control: Sequence[Value], condition: Any) -> list[Value]:
        """The node with its inputs and outputs, each group in random order; the outputs as values of the outer graph.

        The Parameter that counts iterations comes first where an unchanging input is constant: the runtime moves such
        constants into the body without renumbering the rest, and then counts into a wrong Parameter.
        """
        rng, parameters, iteration = self.rng, self.parameters(), self.iteration
        for group in (parameters, self.results, self.inputs, self.outputs):
            rng.shuffle(group)
        has_constant = any(not (one.cut or one.role or one.outer.roots) for one in self.inputs)
        if has_constant and not self.outer.chance(self.outer.freedom.order):
            parameters.sort(key=lambda value: value is not iteration)
        node: Any = loop(*(value.output for value in control)) if self.is_loop else tensor_iterator()
        nodes = [value.output.get_node() for value in parameters]
        node.set_function(ov.Model(self.results, nodes, "body"))
        if self.is_loop:
            counted = parameters.index(iteration) if iteration else -1
            node.set_special_body_ports([counted, self.results.index(condition)])
        self._connect(node)
        parents = [*control, *(one.outer for one in self.inputs)]
        return _outputs_of(self.outer, node, parents, [[one.value for one in self.outputs]])

    def _connect(self, node: Any) -> None:
        """Make the inputs and outputs those of the node."""
        for one in self.inputs:
            inner, outer = one.parameter.output.get_node(), one.outer.output
            if one.cut:
                node.set_sliced_input(inner, outer, *one.cut)
            elif one.role:
                node.set_merged_input(inner, outer, one.result.output(0))
            else:
                node.set_invariant_input(inner, outer)
        for output in self.outputs:
            port = output.result.output(0)
            if output.cut:
                node.get_concatenated_slices(port, *output.cut)
            else:
                node.get_iter_value(port, -1)
        node.validate_and_infer_types()


def _outputs_of(
    scope: GraphScope, node: Any, parents: Sequence[Value], bodies: Sequence[Sequence[Value]], *, computed: bool = True
) -> list[Value]:
    """Return the outputs of a subgraph operation whose bodies give these values."""
    found = []
    for k, values in enumerate(zip(*bodies, strict=True)):
        value = scope.value_of(node.output(k), max(one.bound for one in values), parents, computed=computed)
        found.append(replace(value, computed=computed, coarse=value.coarse or any(one.coarse for one in values)))
    return found


def _reachable(results: Iterable[Any]) -> set[str]:
    """The names of the nodes from which a path leads to the Results."""
    found, pending = set[str](), list(results)
    while pending:
        node = pending.pop()
        if node.get_name() not in found:
            found.add(node.get_name())
            pending += [port.get_node() for port in node.input_values()]
    return found


def _add_loop(scope: GraphScope, kind: str) -> list[Value]:
    """A TensorIterator or Loop inside `scope`; its outputs, none where the runtime would fold it."""
    draft, rng = _LoopDraft(scope, kind), scope.rng
    control, goes_on = _plan(draft) if draft.is_loop else ((), None)
    fewest = 0 if draft.is_loop else 1
    for _ in draft.many((fewest, 1, 1, 2, 2 + (not fewest)), (fewest, 1, 1 + fewest)):
        draft.add_sliced()
    for _ in draft.many((0, 1, 1, 2), (0, 0, 1)):
        draft.add_invariant()
    states = len(draft.many((0, 1, 1, 1, 2, 2), (0, 1, 1, 2)))
    has_slices = draft.runs and any(one.cut for one in draft.inputs)
    for _ in range(states or not has_slices):
        draft.add_carried()
    if draft.is_loop and draft.runs and rng.random() < 0.15:
        draft.add_growing()
    if not draft.body.values:
        draft.body.keep(draft.body.constant((2,), "f32"))
    _fill(draft.body, rng.randint(2, 4) if draft.is_nested else rng.randint(3, 8))
    draft.close()
    needed, condition = list[Value](), None
    if goes_on:
        needed = [goes_on()]
        carried = [state.result for state in draft.carried if state.following is needed[0]]
        condition = carried[0] if carried and rng.random() < 0.5 else draft.result(needed[0])
        if needed[0].roots and draft.runs and rng.random() < 0.1:
            draft.expose_either_way(condition, needed[0])
        draft.kept.append(condition)
    draft.choose_outputs()
    draft.prune(needed)
    if draft.is_nested and not any(value.roots for value in (*control, *(one.outer for one in draft.inputs))):
        return []
    return draft.connected(control, condition)


# Ends of a Loop: its trip count, its initial condition and the condition that the body computes.

_Condition = Callable[[], Value]


def _plan(draft: _LoopDraft) -> tuple[tuple[Value, Value], _Condition]:
    """Choose how the Loop ends and add the inputs that its body needs for that: both control inputs, the condition."""
    rng, outer, body = draft.rng, draft.outer, draft.body
    stops = [*(("never",) * 4), *(("iteration", "counter", "total") * 2), "flags", "carried condition", "once"]
    stop = rng.choice(stops if draft.runs else ("trip 0", "condition false"))
    trip = _trip(draft, stop)
    is_false = stop == "condition false"
    condition = outer.exactly(draft.form(not is_false, (np.bool_,)), at_run_time=is_false)
    if stop == "iteration" or outer.chance(0.6):
        shape, element_type = rng.choice(((), (1,))), rng.choice(INTEGERS)
        draft.iteration = body.keep(body.parameter(shape, element_type, draft.iterations))
    return (trip, condition), _CONDITIONS.get(stop, _constant_condition)(draft, stop)


def _trip(draft: _LoopDraft, stop: str) -> Value:
    """The trip count: exact, beyond the stop, unlimited, computed or measured."""
    outer, rng = draft.outer, draft.rng
    number = draft.iterations
    if not draft.runs:
        number = 0 if stop == "trip 0" else number
    elif stop in ("iteration", "counter") and outer.chance(0.6):
        number = rng.choice((-1, 100))
    elif not draft.is_nested and outer.chance(0.12):
        data = outer.obtain("f32", (number, rng.randint(1, 3)))  # the loop goes along its first axis
        draft.add_slice(data, _cut_along(0, 1))
        index, kind = draft.form(0), rng.choice(INTEGERS)
        return outer.derive(lambda x: ops.gather(ops.shape_of(x, kind), index, 0), number, data)
    elif draft.is_nested and outer.chance(0.4) and (source := outer.pick(INTEGERS, lambda v: not v.coarse)):
        within = lambda x: ops.add(ops.clamp(ops.abs(x), 0.0, number - 1.0), like(x, 1))  # noqa: E731
        return outer.derive(within, 4, outer.total(source))
    return outer.exactly(draft.form(number), at_run_time=not draft.runs)


def _constant_condition(draft: _LoopDraft, stop: str) -> _Condition:
    return lambda: draft.body.constant_of(draft.form(stop != "once", (np.bool_,)))


def _iteration_condition(draft: _LoopDraft, _stop: str) -> _Condition:
    iteration = draft.iteration
    assert iteration is not None
    return lambda: draft.body.derive(ops.less, 1, iteration, like(iteration.output, draft.iterations - 1))


def _counter_condition(draft: _LoopDraft, _stop: str) -> _Condition:
    """True if a counter is still below what it reaches in the last planned iteration."""
    step, initial = draft.rng.randint(1, 2), draft.form(draft.rng.randint(0, 2))
    state = draft.add_total("counter", initial, np.array(step, initial.dtype), step)
    compare, highest = draft.rng.choice((ops.less, ops.not_equal)), like(state.parameter.output, state.parameter.bound)
    return lambda: draft.body.derive(compare, 1, state.following, highest)


def _total_condition(draft: _LoopDraft, _stop: str) -> _Condition:
    """True if the largest running total is still small; seen at the start or at the end of the iteration."""
    rng, width, most = draft.rng, draft.rng.randint(1, 3), 3 * draft.iterations
    steps = np.array([[rng.randint(1, 3) for _ in range(width)] for _ in range(draft.iterations)], np.int32)
    step = draft.add_slice(draft.outer.exactly(steps), _cut_along(0, 1))
    state = draft.add_total("total", np.zeros((1, width), np.int32), step, 3)
    is_small = lambda x: ops.less_equal(ops.reduce_max(x, [0, 1], False), np.int32(rng.randint(3, most)))  # noqa: E731
    return lambda: draft.body.derive(is_small, 1, state.following if rng.random() < 0.7 else state.parameter)


def _flags_condition(draft: _LoopDraft, _stop: str) -> _Condition:
    """A sliced boolean input, one flag for each iteration."""
    flags = np.array([draft.rng.random() < 0.85 for _ in range(draft.iterations)])
    flag = draft.add_slice(draft.outer.exactly(flags), _cut_along(0, 1))
    return lambda: draft.body.derive(ops.logical_and, 1, flag, np.array([True]))


def _carried_condition(draft: _LoopDraft, _stop: str) -> _Condition:
    """A condition that is carried: it stays true while a whole number of the body allows it."""
    body, state = draft.body, draft.add_state("condition", draft.outer.exactly(np.array(True)))
    source = draft.iteration or body.pick(INTEGERS, lambda v: not v.coarse)
    if source is None:
        state.following = body.derive(ops.logical_not, 1, state.parameter)
    else:
        low = lambda x, y: ops.logical_and(x, ops.less(y, like(y, draft.rng.randint(0, 3))))  # noqa: E731
        state.following = body.derive(low, 1, state.parameter, body.total(source))
    return lambda: state.following  # type: ignore[return-value]  # it was given


_CONDITIONS: Final[dict[str, Callable[[_LoopDraft, str], _Condition]]] = {
    "iteration": _iteration_condition,
    "counter": _counter_condition,
    "total": _total_condition,
    "flags": _flags_condition,
    "carried condition": _carried_condition,
}


# An If inside a body: two branches that do different work and may ignore their inputs.


def _branch_condition(scope: GraphScope) -> Value | None:
    """A single boolean that the body has computed, or a whole number compared with a constant."""
    known = scope.pick(("boolean",), lambda v: v.size == 1 and bool(v.roots))
    if known is not None and scope.chance(0.6):
        return known if known.rank <= 1 else scope.reshaped(known, ())
    number = scope.pick(INTEGERS, lambda v: bool(v.roots) and not v.coarse)
    if number is None:
        return None
    threshold = like(number.output, scope.rng.randint(0, 2))
    return scope.derive(scope.rng.choice((ops.greater, ops.less_equal)), 1, scope.total(number), threshold)


def _add_if(scope: GraphScope, kind: str) -> list[Value]:
    """An If inside `scope`; its outputs, none where nothing can decide between the branches."""
    condition, rng = _branch_condition(scope), scope.rng
    if condition is None:
        return []
    inputs = [value for value in (scope.pick(ALL_TYPES) for _ in range(rng.randint(1, 3))) if value is not None]
    types = ("f32", "f32", "f32", *INTEGERS, "boolean")
    given = [(rng.choice(types), random_shape(rng, rng.randint(0, 2))) for _ in range(rng.randint(1, 2))]
    wiring: list[list[Any]] = [[None, None] for _ in inputs]
    ignoring = [rng.choice((0, 1)) if scope.chance(0.2) else None for _ in inputs]
    models, results = [], []
    for branch in (0, 1):
        body = scope.inside(kind)
        taken = [
            (value, wires) for value, wires, other in zip(inputs, wiring, ignoring, strict=True) if other != branch
        ]
        parameters = [body.keep(body.parameter_for(value)) for value, _ in taken]
        _fill(body, rng.randint(1, 3))
        for parameter in parameters:
            body.keep(body.touched(parameter))
        results.append([body.touched(body.obtain(*one)) for one in given])
        needed = _reachable(value.output.get_node() for value in results[-1])
        for (_, wires), parameter in zip(taken, parameters, strict=True):
            wires[branch] = parameter.output.get_node() if parameter.name in needed else None
        ends = [ops.result(value.output) for value in results[-1]]
        models.append(ov.Model(ends, [wires[branch] for wires in wiring if wires[branch]], "branch"))
    node: Any = if_op(condition.output)
    node.set_then_body(models[0])
    node.set_else_body(models[1])
    used = [(value, wires) for value, wires in zip(inputs, wiring, strict=True) if any(wires)]
    for value, wires in used:
        node.set_input(value.output, *wires)
    for then, other in zip(models[0].results, models[1].results, strict=True):
        node.set_output(then, other)
    node.validate_and_infer_types()
    return _outputs_of(scope, node, [condition, *(value for value, _ in used)], results, computed=False)


# How a body is filled: operations in random order, branches and loops inside it.

_SUBGRAPH_CHANCE = (0.0, 0.09, 0.16, 0.0)
"""How often a step in a body of this depth adds a subgraph operation."""


def _fill(scope: GraphScope, steps: int) -> None:
    """Add operations that offer about `steps` new values to the scope.

    All outputs of an If or a loop go into one value: the runtime mends loops whose outputs are unused badly. It refuses
    a TensorIterator in a TensorIterator.
    """
    for _ in range(steps):
        if not scope.chance(_SUBGRAPH_CHANCE[len(scope.path)]):
            add_operation(scope)
            continue
        kind = scope.rng.choice([one for one in SUBGRAPHS if one != "TensorIterator" or one not in scope.path])
        values = []
        for value in (_add_if if kind == "If" else _add_loop)(scope, kind):
            if not value.settled:  # every axis of unknown length is reduced away
                if value.element_type == "boolean":
                    value = scope.derive(ops.convert, 1, value, "i32")
                value = scope.total(value, [axis for axis, size in enumerate(value.shape) if size != -1])
            values.append(scope.tamed(scope.converted(value, "f32")))
        if values:
            total = values[0]
            for value in values[1:]:
                total = scope.tamed(scope.derive(ops.add, total.bound + value.bound, total, scope.total(value)))
            scope.keep(total)


SUBGRAPHS = ("TensorIterator", "Loop", "If")


class RandomLoop(NamedTuple):
    """A model with loops and the arrays to run it with, in the order of its Parameters."""

    model: ov.Model
    inputs: list[Array]


def build(seed: int, freedom: Freedom = CAREFUL) -> RandomLoop:
    """The model of this seed: at times with two loops, and at times of dynamic shape."""
    rng = random.Random(seed)
    scope = GraphScope(rng, freedom)
    outputs: list[Value] = []
    for _ in range(2 if rng.random() < 0.15 else 1):
        outputs += [
            scope.keep(value) for value in _add_loop(scope, "Loop" if rng.random() < 0.58 else "TensorIterator")
        ]
    results = []
    for value in outputs:  # half precision leaves the model in f16, others at times after one more operation
        if value.coarse and value.element_type == "f32":
            value = scope.derive(ops.convert, value.bound, value, "f16")
        if value.element_type in FLOATS and rng.random() < 0.15:
            value = scope.derive(ops.sigmoid, 1.0, value)
        results.append(ops.result(value.output))
    model = ov.Model(results, [value.output.get_node() for value in scope.parameters], f"random_loop_{seed}")
    give_names(model)
    if rng.random() < 0.2:
        _make_dynamic(scope, model)
    return RandomLoop(model, scope.arrays)


def give_names(graph: Any, prefix: str = "") -> None:
    """Name nodes by type and place, in bodies too, and their tensors: names given by default count on for ever."""
    nodes = graph.get_ordered_ops()
    named = [(node, f"{node.get_type_name()}_{place}", set[str]()) for place, node in enumerate(nodes)]
    for kind, ends in (("input", graph.get_parameters()), ("output", graph.get_results())):
        texts = [f"{prefix}{kind}_{place}" for place in range(len(ends))]
        named += [(node, text, {text}) for node, text in zip(ends, texts, strict=True)]
    for node, name, tensor_names in named:
        node.set_friendly_name(name)
        for port in node.outputs():
            port.get_tensor().set_names(tensor_names)
    for node in nodes:
        for body in inner_graphs(node):
            give_names(body, "body_")


def inner_graphs(node: Any) -> list[Any]:
    """The graphs inside a node."""
    if node.get_type_name() == "If":
        return [node.get_function(branch) for branch in (0, 1)]
    return [node.get_function()] if node.get_type_name() in SUBGRAPHS else []


def _make_dynamic(scope: GraphScope, model: ov.Model) -> None:
    """Leave some or all dimensions of some Parameters to the run, where the model allows that."""
    rng, shapes = scope.rng, {}
    for place, value in enumerate(scope.parameters):
        if value.rank and value not in scope.exact and rng.random() < 0.6:
            everything = rng.random() < 0.4
            shapes[place] = ov.PartialShape([-1 if everything or rng.random() < 0.5 else size for size in value.shape])
    before = {place: model.input(place).get_partial_shape() for place in shapes}
    try:
        if shapes:
            model.reshape(shapes)
    except RuntimeError:
        model.reshape(before)


ops14: Any = opset14
_ROWS = 2
_INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
_ALL = (*FLOATING, *_INTEGERS)

_Make = Callable[[Any, Any], Any]
"""A function of a slice x [2, width], and a state of the same shape."""


class _Weights:
    def __init__(self, seed: int, kind: str) -> None:
        self._numbers, self.dtype = np.random.default_rng(seed), np.float16 if kind == "f16" else np.float32

    def __call__(self, *shape: int) -> Any:
        return ops.constant(self._numbers.uniform(-1, 1, shape).astype(self.dtype))


def _convolution(rng: random.Random, weights: _Weights, width: int) -> _Make:
    """Convolve the rows as two channels of a line, or as one channel of an image with two lines."""
    is_flat, kind = rng.random() < 0.6, rng.choice(("plain", "plain", "grouped", "backprop"))
    kernel, channels, inner = rng.randint(1, 3), rng.randint(1, 4), _ROWS if is_flat else 1
    shape, size, strides = [1, _ROWS, width], [kernel], [rng.randint(1, 2)]
    dilations, begin, end = [rng.randint(1, 2)], [rng.randint(0, 2)], [rng.randint(0, 2)]
    if not is_flat:
        shape, size, strides = [1, *shape], [min(kernel, 2), kernel], [1, *strides]
        dilations, begin, end = [1, *dilations], [0, *begin], [1, *end]
    convolve, leading, more = {
        "plain": (ops.convolution, [channels, inner], []),
        "grouped": (ops.group_convolution, [inner, channels, 1], []),
        "backprop": (ops.convolution_backprop_data, [inner, channels], [None]),  # no output shape
    }[kind]

    def make(x: Any, _state: Any) -> Any:
        return convolve(ops.reshape(x, shape, False), weights(*leading, *size), strides, *more, begin, end, dilations)

    return make


def _pooling(rng: random.Random, _weights: _Weights, width: int) -> _Make:
    kernel, stride, dilation = rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 2)
    pads = [[rng.randint(0, kernel // 2)] for _ in range(2)]
    rounding, kind = rng.choice(("floor", "ceil", "ceil_torch")), rng.choice(("max", "average", "average, no pads"))

    def make(x: Any, _state: Any) -> Any:
        data = ops.reshape(x, [1, _ROWS, width], False)
        if kind == "max":
            return ops14.max_pool(data, [stride], [dilation], *pads, [kernel], rounding).output(0)
        return ops14.avg_pool(data, [stride], *pads, [kernel], kind != "average", rounding)

    return make


def _recurrent(rng: random.Random, weights: _Weights, width: int) -> _Make:
    """Apply a cell to the rows and the state, or a sequence whose steps are the rows."""
    kind, is_cell = rng.choice(tuple(GATES)), rng.random() < 0.5
    direction, length = rng.choice(("forward", "reverse", "bidirectional")), rng.randint(1, _ROWS)
    options: dict[str, Any] = {"clip": rng.choice((0.0, 0.0, 0.7))}
    if kind == "gru":
        options["linear_before_reset"] = rng.random() < 0.5
    count = 2 if kind == "lstm" else 1

    def make(x: Any, state: Any) -> Any:
        if is_cell:
            given, leading = [x, state, ops.tanh(state)][: 1 + count], []
        else:
            options["direction"], leading = direction, [2 if direction == "bidirectional" else 1]
            states = [weights(1, *leading, width) for _ in range(count)]
            given = [ops.reshape(x, [1, _ROWS, width], False), *states, ops.constant(np.array([length], np.int32))]
        name = f"{kind}_{'cell' if is_cell else 'sequence'}"
        return recurrent(name, given, width, width, weights, *leading, **options).output(0)

    return make


_LAYERS = {"convolution": _convolution, "pooling": _pooling, "recurrent": _recurrent}

_UNARY: Final[tuple[tuple[str, tuple[str, ...], float, float], ...]] = (
    ("acos asin atan atanh cos cosh sin sinh tan", FLOATING, -0.9, 0.9),
    ("asinh elu erf exp gelu hsigmoid hswish mish", FLOATING, -3.0, 3.0),
    ("sigmoid softplus softsign tanh ceiling floor swish", FLOATING, -3.0, 3.0),
    ("acosh log sqrt", FLOATING, 1.0, 4.0),
    ("abs negative relu sign round", _ALL, -5.0, 5.0),
)
"""Functions with the element types and the numbers that they take."""
_MORE_INPUTS = {"elu": (0.7,), "gelu": ("erf",), "round": ("half_to_even",)}
_NAMES = {
    "binary": "add subtract multiply divide maximum minimum mod floor_mod squared_difference",
    "compared": "equal not_equal greater greater_equal less less_equal",
    "reduced": "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_l1 reduce_l2",
}
_MOVED: Final[dict[str, Callable[[Any], Any]]] = {
    "transpose": lambda x: ops.transpose(x, [1, 0]),
    "concat": lambda x: ops.concat([x, x], -1),
    "gather": lambda x: ops.gather(x, [1, 0, 1], 1),
    "tile": lambda x: ops.tile(x, [1, 2]),
    "pad": lambda x: ops.pad(x, [0, 1], [1, 0], "edge"),
    "strided_slice": lambda x: ops.strided_slice(x, [0, 1], [2, 3], [1, 1], [1, 0], [1, 0]),
    "cum_sum": lambda x: ops.cum_sum(x, 1),
    "topk": lambda x: ops.topk(x, ops.constant(np.int64(2)), 1, "max", "value").output(0),
    "roll": lambda x: ops.roll(x, [1], [1]),
    "softmax": lambda x: ops.softmax(x, 1),
    "one_hot": lambda x: ops.one_hot(ops.abs(x), 6, np.float32(2), np.float32(-1), -1),
}


def build_operation(seed: int) -> RandomLoop:
    """A loop that applies one operation to slices of its input."""
    rng = random.Random(seed)
    around = partial(_around, seed, rng)
    family = rng.choice(("unary", "binary", "compared", "reduced", "moved", "power", "product", *_LAYERS))
    if draw := _LAYERS.get(family):
        kind, width = rng.choice(("f32", "f32", "f16")), rng.choice((3, 4, 7, 8))
        return around(draw(rng, _Weights(seed, kind), width), kind, (-2.0, 2.0), width)
    types: tuple[str, ...] = _ALL
    low, high, flag = -5.0, 5.0, rng.random() < 0.5
    make: _Make = ops.power
    if family == "unary":
        functions, types, low, high = rng.choices(_UNARY, [len(row[0].split()) for row in _UNARY])[0]
        name = rng.choice(functions.split())
        make = lambda x, _y: getattr(ops, name)(x, *_MORE_INPUTS.get(name, ()))  # noqa: E731
    elif family in _NAMES:
        name = rng.choice(_NAMES[family].split())
        make = getattr(ops, name) if family != "reduced" else lambda x, _y: getattr(ops, name)(x, 1, flag)
    elif family == "moved":
        name = rng.choice(tuple(_MOVED))
        types = (*types, "boolean") if name in ("transpose", "concat", "gather", "tile") else types
        make = lambda x, _y: _MOVED[name](x)  # noqa: E731
    elif family == "power":
        low, high, types = 1.0, 3.0, FLOATING
    else:
        types = FLOATING
        make = lambda x, y: ops.matmul(x, y, not flag, flag)  # noqa: E731
    return around(make, rng.choice(types), (low, high))


def build_quantised(seed: int) -> RandomLoop:
    """A loop whose state goes through a product with compressed weights, or through FakeQuantize."""
    rng = random.Random(seed)
    numbers = np.random.default_rng(seed)
    width = rng.choice((4, 8, 16, 32, 64))
    kind, form = rng.choice(("i8", "u8", "i4", "u4", "none")), rng.choice(("plain", "zero point", "grouped"))
    levels = rng.choice((256, 255, 16, 0))

    def quantised(value: Any, reach: float) -> Any:
        ends = [np.float32(end) for end in (-reach, reach, -reach, reach)]
        return ops.fake_quantize(value, *ends, levels) if levels else value

    def make(x: Any, _y: Any) -> Any:
        low, high = {"i8": (-127, 127), "u8": (0, 255), "i4": (-8, 7), "u4": (0, 15), "none": (-9, 9)}[kind]
        stored = numbers.integers(low, high + 1, (width, width))
        if kind == "none":
            weights = quantised(ops.constant((stored / 9).astype(np.float32)), 1.0)
        else:
            grouped, element = form == "grouped" and width >= 8, getattr(ov.Type, kind)
            shape = (width, 2, width // 2) if grouped else (width, width)
            weights = ops.convert(ops.constant(stored.reshape(shape), element), "f32")
            if form == "zero point":
                zero = ops.constant(np.full((width, 1), (low + high + 1) // 2), element)
                weights = ops.subtract(weights, ops.convert(zero, "f32"))
            scale = numbers.uniform(0.5, 1.5, (width, 2, 1) if grouped else (width, 1)) / (high * width**0.5)
            weights = ops.multiply(weights, scale.astype(np.float32))
            if grouped:
                weights = ops.reshape(weights, [width, width], False)
        return ops.tanh(ops.matmul(quantised(x, 3.0), weights, False, True))

    return _around(seed, rng, make, "f32", (-2.0, 2.0), width)


def _around(
    seed: int, rng: random.Random, make: _Make, kind: str, limits: tuple[float, float], width: int = 3
) -> RandomLoop:
    """The loop: it slices x, and concatenates what the operation gives for each slice, and for the state."""
    count, slice_shape = rng.randint(1, 4), [_ROWS, width]
    shapes = [_ROWS * count, width], slice_shape, slice_shape, slice_shape
    x, start, part, other = (ops.parameter(shape, getattr(ov.Type, kind)) for shape in shapes)
    result = ops.result(make(part, other))
    goes_on = ops.result((ops.logical_or if kind == "boolean" else ops.maximum)(part, other))
    node: Any = tensor_iterator()
    node.set_function(ov.Model([result, goes_on], [part, other], "body"))
    first, stride, end = (-1, -_ROWS, 0) if rng.random() < 0.3 else (0, _ROWS, -1)
    node.set_sliced_input(part, x.output(0), first, stride, _ROWS, end, 0)
    node.set_merged_input(other, start.output(0), goes_on.output(0))
    outputs = [node.get_iter_value(result.output(0), -1)]
    shape = result.get_output_partial_shape(0)
    if len(shape) and shape[0].is_static:
        size = shape[0].get_length()
        outputs.append(node.get_concatenated_slices(result.output(0), 0, size, size, -1, 0))
    node.validate_and_infer_types()
    model = ov.Model([ops.result(one) for one in outputs], [x, start], f"random_{seed}")
    give_names(model)
    low = 1 if kind.startswith("u") else limits[0]
    arrays = [random_array(rng, shape, kind, low, limits[1]) for shape in shapes[:2]]
    if kind in _INTEGERS:  # no division by zero
        arrays = [np.where(array == 0, array.dtype.type(1), array) for array in arrays]
    return RandomLoop(model, arrays)
