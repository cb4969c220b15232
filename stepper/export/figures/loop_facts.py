"""Write a body as formulas, and describe a loop's start, end and iteration count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from stepper.debug.causes.loop_ends import ConditionLimit
from stepper.element_types import ElementType, is_floating
from stepper.engine.compiler import static_notes
from stepper.engine.loops import (
    ControlOrigin,
    NoEffect,
    RoleError,
    control,
    output_role,
    roles_of,
    without_effect,
)
from stepper.export.figures.drawn_graph import constant_symbol, layers_in_order, references_of, shortened
from stepper.export.numpy_code.emitters import ATOM, MOVEMENT, Term, pairs_of
from stepper.ir.model import Body, Graph, Layer, Model, Source
from stepper.operation_types import CELLS, COMPARISON_SIGNS, NO_OPERATIONS, VIEWS
from stepper.query.short_names import is_automatic, last_part, short_names_of
from stepper.wording import counted, enumerated, excerpt

_POWER = 8
_PRODUCT = 7
_TIMES = 6
_SIGN = 5
_SUM = 4
_COMPARED = 3
_NOT = 2
_AND = 1
CASES = 0

_FUNCTIONS = {
    **dict(pairs_of("""
        Tanh tanh Sigmoid σ Exp exp Log log Sin sin Cos cos Relu ReLU Softmax softmax Floor floor Ceiling ceil
        Sign sign Erf erf Gelu GELU SoftPlus softplus Sqrt √ Maximum max Minimum min LSTMCell LSTM GRUCell GRU
        RNNCell RNN
    """)),
    "LogSoftmax": "log softmax",
}  # fmt: skip
_SIGNS = {
    **{type: (sign, _COMPARED) for type, sign in COMPARISON_SIGNS.items()},
    **{
        type: (sign, strength)
        for strength, signs in (
            (_SUM, "Add + Subtract −"),
            (_TIMES, "Multiply · Divide /"),
            (_SIGN, "FloorDivide div Mod rem FloorMod mod"),
            (_AND, "LogicalAnd and LogicalOr or LogicalXor xor"),
        )
        for type, sign in pairs_of(signs)
    },
}
_ASSOCIATIVE = ("Add", "Multiply")
_SQUARE = "2"


def number(text: str) -> Term:
    """Return a number, or a name, with a minus of the height of a plus."""
    return Term(f"−{text[1:]}", _SIGN) if text.startswith("-") else Term(text)


def keeps_its_numbers(layer: Layer) -> bool:
    """True for an operation that formulas leave out: it changes the shape, or the type without rounding to integers."""
    if layer.type != "Convert":
        return layer.type in (*VIEWS, "Identity")
    before, after = layer.inputs[0].element_type, layer.outputs[0].element_type
    return not (_is_real(before) and not _is_real(after))


def written(layer: Layer, operands: Sequence[Term]) -> Term:
    """Return the first output of an operation, out of its operands."""
    if layer.type in _SIGNS and len(operands) == 2:
        is_whole = layer.type == "Divide" and not _is_real(layer.outputs[0].element_type)
        return _with_sign("FloorDivide" if is_whole else layer.type, *operands)
    if layer.type == "MatMul" and len(operands) == 2:
        sides = zip(operands, ("transpose_a", "transpose_b"), strict=True)
        parts = (f"{term.within(_POWER)}ᵀ" if layer.is_set(name) else term.within(_PRODUCT) for term, name in sides)
        return Term(" ".join(parts), _PRODUCT)
    if layer.type == "Power" and len(operands) == 2:
        base, exponent = operands
        raised = "²" if exponent.text == _SQUARE else f"^{exponent.within(ATOM)}"
        return Term(f"{base.within(ATOM)}{raised}", _POWER)
    if layer.type == "Negative":
        return Term(f"−{operands[0].within(_TIMES)}", _SIGN)
    if layer.type == "Abs":
        return Term(f"|{operands[0].text}|")
    if layer.type == "LogicalNot":
        return Term(f"not {operands[0].within(_SIGN)}", _NOT)
    name = _FUNCTIONS.get(layer.type, excerpt(layer.type))
    if layer.type == "Convert":
        kind = layer.outputs[0].element_type
        name = "Convert" if kind is None else kind.name
    return Term(f"{name}({', '.join(term.within(_AND) for term in operands)})")


def cases(condition: Term, then: Term, otherwise: Term) -> Term:
    """Return what an If gives: one term where its condition is true, else the other."""
    if otherwise.text == "false":
        return Term(f"{condition.within(_NOT)} and {then.within(_NOT)}", _AND)
    if then.text == "true":
        return Term(f"{condition.within(_NOT)} or {otherwise.within(_NOT)}", _AND)
    return Term(f"{then.within(_AND)} if {condition.within(_AND)}, else {otherwise.text}", CASES)


def _with_sign(type: str, a: Term, b: Term) -> Term:
    sign, strength = _SIGNS[type]
    if strength == _SUM and b.text.startswith("−"):  # a + −b
        sign, b = {"+": "−", "−": "+"}[sign], Term(b.text.removeprefix("−"), max(b.strength, _TIMES))
    if strength == _SIGN:
        left, right = a.within(_PRODUCT), b.within(_PRODUCT)
    else:
        left = a.within(strength + (strength in (_COMPARED, _AND)))
        right = b.within(strength + (type not in _ASSOCIATIVE))
    return Term(f"{left} {sign} {right}", strength)


def _is_real(kind: ElementType | None) -> bool:
    return kind is not None and is_floating(kind.dtype)


MOST_OPERATIONS = 16
"""Most operations of a body written as a formula; a longer formula explains nothing."""
MOST_EQUATIONS = 6
_LONGEST_EQUATION = 110
_LONGEST_NAME = 20


def equations(model: Model, layer: Layer) -> tuple[str, ...]:
    """Return the body of a loop as equations.

    The iteration t is the index of carried values and outputs. The last equation gives the condition as a `while`
    clause, if the body computes it. Returns no equations for a body that is too large, or whose names are ambiguous.
    """
    graph = layer.bodies[0].graph
    if sum(not keeps_its_numbers(one) for one in graph.operations) > MOST_OPERATIONS:
        return ()
    try:
        found = tuple(_Equations(model, layer).written())
    except _NoFormula:
        return ()
    return found if len(found) <= MOST_EQUATIONS and max(map(len, found), default=0) <= _LONGEST_EQUATION else ()


class _NoFormula(Exception):
    """A body has no formula that anyone would read."""


class _Equations:
    """Names of values and equations of one body under construction."""

    def __init__(self, model: Model, layer: Layer) -> None:
        self.model, self.layer, self.body = model, layer, layer.bodies[0]
        self.graph = self.body.graph
        self.short = short_names_of(self.graph)
        self._last_parts = frozenset(map(last_part, self.short.values()))
        self.names: dict[Source, Term] = {}
        self._parameters()
        self.results = tuple(self._results())

    def written(self) -> Iterator[str]:
        """Yield the equations; an operation of several outputs has one for all of them."""
        self._intermediates()
        if len({term.text for term in self.names.values()}) < len(self.names):
            raise _NoFormula
        named: dict[int, list[Source]] = {}
        for source in sorted(self.names):
            named.setdefault(source.layer, []).append(source)
        for key in layers_in_order(self.graph):
            owner = self.graph.by_id[key]
            if key not in named or owner.type == "Parameter":
                continue
            if owner.bodies or len(owner.outputs) == 1:
                for source in named[key]:
                    yield f"{self.names[source].text} = {self._computed(self.graph, source, {}).text}"
            else:
                left = ", ".join(self.names[source].text for source in named[key])
                yield f"{left} = {self._computed(self.graph, named[key][0], {}).text}"
        for name, source in self.results:
            if source not in self.names or self.names[source].text != name:
                yield f"{name} = {self._term(self.graph, source, {}).text}"
        yield from self._condition()

    def _parameters(self) -> None:
        """Name the Parameters by role."""
        try:
            roles = roles_of(self.layer)
        except RoleError:
            raise _NoFormula from None
        sliced = {entry.parameter for entry in roles.sliced}
        for parameter in self.graph.parameters:
            name = self._name(parameter)
            if parameter.id in roles.current_iteration:
                name = "t"
            elif parameter.id in sliced:
                name = self._at(name)
            elif parameter.id in roles.merged_from:
                name = self._at(name, "{t−1}")
            self.names[Source(parameter.id, 0)] = Term(name)

    def _results(self) -> Iterator[tuple[str, Source]]:
        """Yield what the body gives, with its name: carried values first, then outputs that are none of them."""
        roles, given = roles_of(self.layer), set[Source]()
        for parameter, result in roles.merged_from.items():
            source = self._source_of(self.graph, result)
            yield self._given(self._at(self._name(self.graph.by_id[parameter])), source, given), source
        for entry in self.body.outputs:
            source = self._source_of(self.graph, entry.result)
            if entry.output is None or source in given or output_role(entry).is_condition:
                continue
            owner = self.graph.by_id[entry.result]
            name = f"y{entry.output}" if is_automatic(owner) else self._name(owner).removesuffix("_result")
            yield self._given(self._at(name), source, given), source

    def _given(self, name: str, source: Source, given: set[Source]) -> str:
        """Return the name; the first one of a value that is computed stands for it wherever it is read."""
        given.add(source)
        if source not in self.names and self.graph.by_id[source.layer].type != "Constant":
            self.names[source] = Term(name)
        return name

    def _intermediates(self) -> None:
        """Name what several operations read, and outputs of operations that have more than one."""
        for owner in self.graph.layers:
            if owner.type in NO_OPERATIONS or keeps_its_numbers(owner):
                continue
            readers = [one for one, _ in self._real_readers(owner.id)]
            if len(readers) < 2 and len(owner.outputs) < 2:
                continue
            for index in range(len(owner.outputs)):
                source = Source(owner.id, index)
                if source not in self.names and source in self.graph.read_outputs:
                    if len(owner.outputs) > 1:
                        raise _NoFormula  # its outputs have no names of their own
                    self.names[source] = Term(self._at(self._name(owner)))

    def _real_readers(self, key: int) -> Iterator[tuple[Layer, int]]:
        """Yield what reads the numbers of a layer; Results that have the name of it are none."""
        for reader, index in self.graph.readers.get(key, ()):
            if keeps_its_numbers(reader):
                yield from self._real_readers(reader.id)
            elif reader.type != "Result":
                yield reader, index

    def _condition(self) -> Iterator[str]:
        found = next((one.result for one in self.body.outputs if output_role(one).is_condition), None)
        if found is None:
            return
        source = self._source_of(self.graph, found)
        if self.graph.by_id[source.layer].type != "Constant":
            yield f"goes on while {self._term(self.graph, source, {}).text}"

    # --- terms -----------------------------------------------------------------------------------------------------

    def _term(self, graph: Graph, source: Source, bound: Mapping[Source, Term]) -> Term:
        """Return a value: its name, or what it is computed from. `bound` are Parameters of the side of an If."""
        known = bound.get(source) if graph is not self.graph else self.names.get(source)
        return known or self._computed(graph, source, bound)

    def _computed(self, graph: Graph, source: Source, bound: Mapping[Source, Term]) -> Term:
        layer = graph.by_id[source.layer]
        if layer.type == "Constant":
            return number(constant_symbol(self.model, layer))
        if layer.is_loop or layer.type == "Parameter":
            raise _NoFormula
        read = graph.sources[layer.id]
        operands = [self._term(graph, one, bound) for one in read if one is not None]
        if len(operands) != len(read):
            raise _NoFormula
        if layer.bodies:
            then, otherwise = (self._side(body, source.output, operands) for body in layer.bodies)
            return cases(operands[0], then, otherwise)
        return operands[0] if keeps_its_numbers(layer) else written(layer, operands)

    def _side(self, body: Body, output: int, operands: list[Term]) -> Term:
        """Return what a side of an If gives for an output."""
        bound = {Source(one.parameter, 0): operands[one.input] for one in body.inputs if one.input is not None}
        result = next((one.result for one in body.outputs if one.output == output), None)
        if result is None:
            raise _NoFormula
        return self._term(body.graph, self._source_of(body.graph, result), bound)

    def _source_of(self, graph: Graph, result: int) -> Source:
        found = graph.sources[result][0] if graph.sources.get(result) else None
        if found is None:
            raise _NoFormula
        return found

    def _at(self, name: str, iteration: str = "t") -> str:
        """Return a name with the iteration as index; one that it has already is that, unless another value has none."""
        stem = name.removesuffix("_t")
        return f"{stem if stem and stem not in self._last_parts else name}_{iteration}"

    def _name(self, layer: Layer) -> str:
        name = last_part(self.short[layer.id])
        if name.isdigit():  # it would be read as a number
            raise _NoFormula
        return shortened(excerpt(name).replace(" ", "_"), _LONGEST_NAME)


_HEAVY = ("MatMul", "Einsum", "ScaledDotProductAttention")
_HEAVY_ENDS = ("Cell", "Sequence", "Convolution", "ConvolutionBackpropData")
_ARITHMETIC = ("Add", "Subtract", "Multiply", "Divide", "Mod", "FloorMod", "Power", "Negative", "Abs", "Select")
_TRUE_OR_FALSE = (*COMPARISON_SIGNS, "LogicalAnd", "LogicalOr")
_MOVING = frozenset((*MOVEMENT, "Convert"))


class RecurrentCell(NamedTuple):
    """Cell that a body is built round: its type, and how many units it has."""

    type: str
    units: int


def recurrent_cell(graph: Graph) -> RecurrentCell | None:
    """Return the cell of a body that has just one; None of another body."""
    found = [layer for layer in graph.operations if layer.type in CELLS]
    units = found[0].attributes.get("hidden_size", "") if len(found) == 1 else ""
    return RecurrentCell(found[0].type, int(units)) if units.isdigit() else None


def main_types(layers: Iterable[Layer]) -> tuple[tuple[str, int], ...]:
    """Return the types of operations with their counts: those that cost most first, then the most frequent.

    What only moves or converts numbers is left out, unless there is nothing else.
    """
    counts = Counter(layer.type for layer in layers)
    told = {type: count for type, count in counts.items() if type not in _MOVING} or counts
    return tuple(sorted(told.items(), key=lambda one: (_place(one[0]), -one[1])))


def _place(type: str) -> int:
    if type in _HEAVY or type.endswith(_HEAVY_ENDS) or type in ("If", "Loop", "TensorIterator"):
        return 0
    return 2 if type in _ARITHMETIC else 3 if type in _TRUE_OR_FALSE else 1


_LOGICAL = (*COMPARISON_SIGNS, "LogicalAnd", "LogicalOr", "LogicalXor", "LogicalNot")
"""Operations that give true or false."""
_CONDITIONS_ARITHMETIC = ("Add", "Subtract", "Multiply", "Abs", "Negative")
_DEEPEST = 3
_LONGEST = 44


def condition_text(model: Model, graph: Graph, layer: Layer) -> str:
    """Return the condition that a layer gives as an expression; empty where it compares nothing, or is too long."""
    root = _numbers_of(graph, layer)
    if root is None or root.type not in _LOGICAL:
        return ""
    text = _term(model, graph, root, _DEEPEST).text
    return text if len(text) <= _LONGEST else ""


def _term(model: Model, graph: Graph, layer: Layer, depth: int) -> Term:
    """Return what a layer gives: its comparison, or its name.

    Arithmetic whose name comes from a converter is written as a formula.
    """
    if layer.type == "Constant":
        return number(constant_symbol(model, layer))
    is_written = layer.type in _LOGICAL or (layer.type in _CONDITIONS_ARITHMETIC and is_automatic(layer))
    sources = graph.sources[layer.id]
    read = [None if one is None else _numbers_of(graph, graph.by_id[one.layer]) for one in sources]
    operands = [one for one in read if one is not None]
    if not (is_written and depth and operands and len(operands) == len(read)):
        return Term(shortened(excerpt(last_part(short_names_of(graph)[layer.id])), _LONGEST_NAME))
    return written(layer, [_term(model, graph, one, depth - 1) for one in operands])


def _numbers_of(graph: Graph, layer: Layer) -> Layer | None:
    """Return the layer that computes the numbers that a layer gives; None where nothing is connected."""
    while keeps_its_numbers(layer):
        before = graph.sources[layer.id][0]
        if before is None:
            return None
        layer = graph.by_id[before.layer]
    return layer


_LONGEST_NOTE = 200
NO_LIMIT = 2**63 - 1
"""The trip count that converters write where there is no limit."""


def loop_facts(model: Model, outer: Graph, layer: Layer, limit: ConditionLimit | None = None) -> tuple[str, ...]:
    """Return a line for each fact that starts or ends a loop, as far as the file says.

    For an If, return its condition. Further lines describe back edges without effect and differences of the rule books.
    `limit` is the limit of the loop's condition.
    """
    if not layer.is_loop:
        found = control(model, outer, layer)
        if found.condition is None:
            return ()
        return (f"then runs if {_truth(model, outer, found.condition)}, otherwise else",)
    lines = loop_course(model, outer, layer, limit)
    lines += [f"back edge {edge.name} has no effect: {edge.reason}" for edge in edges_without_effect(layer)]
    return (*lines, *rule_differences(outer, layer))


def loop_course(model: Model, outer: Graph, layer: Layer, limit: ConditionLimit | None = None) -> list[str]:
    """Return a line for each fact that starts or ends a loop; `limit` is its condition's limit."""
    found = control(model, outer, layer)
    if layer.type == "TensorIterator":
        ports = found.slices_of
        if len(ports) > 1:
            return [f"as many iterations as inputs {enumerated([*map(str, ports)])} have slices"]
        return [f"as many iterations as {f'input {ports[0]} has slices' if ports else 'its outputs say'}"]
    body = layer.bodies[0].graph
    is_exact = _is_always(found.condition) and _is_always(found.goes_on)
    lines = [
        _told(model, outer, found.condition, "starts always", "never starts", "starts if"),
        _told(model, body, found.goes_on, "no condition ends it", "ends after the first iteration", "goes on while"),
        _limit(found.trip_count, "" if is_exact else "at most "),
    ]
    if limit is not None:
        most = f"at most {counted(limit.iterations, 'iteration')}"
        if has_limit(found.trip_count):
            lines.append(f"{most} by its condition ({excerpt(limit.text)})")
        else:
            lines[-1] = f"no limit but its condition: {most} ({excerpt(limit.text)})"
    return lines


def rule_differences(outer: Graph, layer: Layer) -> tuple[str, ...]:
    """Return where the rule books differ on a loop of a graph, a line each."""
    return tuple(excerpt(note, _LONGEST_NOTE) for note in static_notes(layer, outer))


def differences_within(graph: Graph, layers: Iterable[Layer] | None = None) -> Iterator[str]:
    """Yield where the rule books differ on loops of a graph (among these layers) and of its bodies, by name."""
    for layer in graph.layers if layers is None else layers:
        if layer.is_loop:
            yield from (f"{layer.type} '{excerpt(layer.name)}': {note}" for note in rule_differences(graph, layer))
        for body in layer.bodies:
            yield from differences_within(body.graph)


def condition_effect(model: Model, outer: Graph, layer: Layer) -> str:
    """Return what the condition that a body computes means for its loop, in a few words."""
    condition = control(model, outer, layer).goes_on
    if condition is None or _is_always(condition):
        return "always true"
    return "false: ends after one" if condition.value is False else "runs on while true"


_REASONS = {
    NoEffect.EARLIER: ("an earlier back edge", "to {} counts"),
    NoEffect.SLICED: ("{} is sliced,", "each iteration gets its slice"),
    NoEffect.NUMBER: ("{} is the", "iteration number"),
    NoEffect.NOT_FED: ("no input is led", "to {}"),
}


class EdgeWithoutEffect(NamedTuple):
    """A back edge without effect: its name, such as `h_result → x`, what it is led to, and the reason."""

    result: int
    parameter: int
    name: str
    target: str
    reason: NoEffect

    @property
    def told(self) -> tuple[str, ...]:
        """The reason in short lines, to stand at the edge."""
        return tuple(line.format(self.target) for line in _REASONS[self.reason])


def edges_without_effect(layer: Layer) -> tuple[EdgeWithoutEffect, ...]:
    """Return the back edges of a loop that have no effect."""
    body, names = layer.bodies[0], references_of(layer.bodies[0].graph)
    try:
        roles = roles_of(layer)
    except RoleError:
        return ()
    found = []
    for edge in body.back_edges:
        reason = without_effect(body, roles, edge)
        if reason is not None and edge.from_layer in names and edge.to_layer in names:
            name = f"{excerpt(names[edge.from_layer])} → {excerpt(names[edge.to_layer])}"
            target = excerpt(names[edge.to_layer])
            found.append(EdgeWithoutEffect(edge.from_layer, edge.to_layer, name, target, reason))
    return tuple(found)


def _told(model: Model, graph: Graph, condition: ControlOrigin | None, always: str, never: str, where: str) -> str:
    """Return what a condition of a graph means: always true, always false, or computed."""
    if condition is None or _is_always(condition):
        return always
    return f"{never}: {_named(condition)}" if condition.value is False else f"{where} {_truth(model, graph, condition)}"


def _is_always(condition: ControlOrigin | None) -> bool:
    return condition is None or condition.value is True


def has_limit(trip_count: ControlOrigin | None) -> bool:
    """True if a trip count ends a loop: it is computed, or neither negative nor what converters write for no limit."""
    count = None if trip_count is None else trip_count.value
    return trip_count is not None and (not isinstance(count, int | float) or 0 <= count != NO_LIMIT)


def _limit(trip_count: ControlOrigin | None, most: str) -> str:
    if trip_count is None or not has_limit(trip_count):
        return "no limit on iterations"
    count = trip_count.value
    if not isinstance(count, int | float) or not math.isfinite(count):
        return f"{most}as many iterations as {_named(trip_count)} says"
    return f"{most}{counted(int(count), 'iteration')}"


def _truth(model: Model, graph: Graph, condition: ControlOrigin) -> str:
    """Return what has to be true: `start ≠ 1 (start_is_not_one)`, or `ready (LogicalNot) is true`."""
    expression = condition_text(model, graph, graph.by_id[condition.layer.id])
    return f"{expression} ({excerpt(condition.layer.name)})" if expression else f"{_named(condition)} is true"


def _named(origin: ControlOrigin) -> str:
    """Return name and type, such as `keep_going (NotEqual)`."""
    output = "" if origin.output is None else f", output {origin.output}"
    value = "" if origin.value is None else f" = {str(origin.value).lower()}"
    return f"{excerpt(origin.layer.name)} ({origin.layer.type}{output}){value}"
