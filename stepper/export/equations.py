"""Formulas of a body: equations of its values, the condition that ends the loop, and its main operations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from stepper.element_types import ElementType, is_floating
from stepper.engine.loops import RoleError, output_role, roles_of
from stepper.export.figures.drawn_graph import constant_symbol, shortened
from stepper.export.figures.folding import layers_in_order
from stepper.export.numpy_code.operations import MOVEMENT
from stepper.ir.model import Body, Graph, Layer, Model, Source
from stepper.operation_types import CELLS, COMPARISON_SIGNS, NO_OPERATIONS, VIEWS
from stepper.query.short_names import is_automatic, last_part, short_names_of
from stepper.wording import excerpt

ATOM: Final = 9
_POWER: Final = 8
_PRODUCT: Final = 7
_TIMES: Final = 6
_SIGN: Final = 5
_SUM: Final = 4
_COMPARED: Final = 3
_NOT: Final = 2
_AND: Final = 1
CASES: Final = 0

_FUNCTIONS: Final = {
    "Tanh": "tanh", "Sigmoid": "σ", "Exp": "exp", "Log": "log", "Sin": "sin", "Cos": "cos", "Relu": "ReLU",
    "Softmax": "softmax", "LogSoftmax": "log softmax", "Floor": "floor", "Ceiling": "ceil", "Sign": "sign",
    "Erf": "erf", "Gelu": "GELU", "SoftPlus": "softplus", "Sqrt": "√", "Maximum": "max", "Minimum": "min",
    "LSTMCell": "LSTM", "GRUCell": "GRU", "RNNCell": "RNN",
}  # fmt: skip
_SIGNS: Final = {
    "Add": ("+", _SUM), "Subtract": ("−", _SUM), "Multiply": ("·", _TIMES), "Divide": ("/", _TIMES),
    "FloorDivide": ("div", _SIGN), "Mod": ("rem", _SIGN), "FloorMod": ("mod", _SIGN),
    **{type: (sign, _COMPARED) for type, sign in COMPARISON_SIGNS.items()},
    "LogicalAnd": ("and", _AND), "LogicalOr": ("or", _AND), "LogicalXor": ("xor", _AND),
}  # fmt: skip
_ASSOCIATIVE: Final = ("Add", "Multiply")
_SQUARE: Final = "2"


class Term(NamedTuple):
    """A text, and how strongly it holds together: with a sign around it that binds more strongly it is in brackets."""

    text: str
    strength: int = ATOM

    def within(self, strength: int) -> str:
        """Return the text as an operand of a sign of this strength."""
        return self.text if self.strength >= strength else f"({self.text})"


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


MOST_OPERATIONS: Final = 16
"""Operations of a body of which a formula is written; a longer one explains nothing."""
MOST_EQUATIONS: Final = 6
_LONGEST_EQUATION: Final = 110
_LONGEST_NAME: Final = 20


def equations(model: Model, layer: Layer) -> tuple[str, ...]:
    """Return the body of a loop as equations, its carried values and outputs with the iteration t as index.

    `goes on while ...` is the last one, where the condition is computed. None of a body that is too large, or that has
    names that are not told apart.
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
            return self._if(layer, source.output, operands)
        return operands[0] if keeps_its_numbers(layer) else written(layer, operands)

    def _if(self, layer: Layer, output: int, operands: list[Term]) -> Term:
        then, otherwise = (self._side(body, output, operands) for body in layer.bodies)
        return cases(operands[0], then, otherwise)

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


_HEAVY: Final = ("MatMul", "Einsum", "ScaledDotProductAttention")
_HEAVY_ENDS: Final = ("Cell", "Sequence", "Convolution", "ConvolutionBackpropData")
_ARITHMETIC: Final = ("Add", "Subtract", "Multiply", "Divide", "Mod", "FloorMod", "Power", "Negative", "Abs", "Select")
_TRUE_OR_FALSE: Final = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr")
_MOVING: Final = frozenset((*MOVEMENT, "Convert"))


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


_LOGICAL: Final = frozenset({"LogicalAnd", "LogicalOr", "LogicalXor", "LogicalNot"})
_CONDITIONS_ARITHMETIC: Final = frozenset({"Add", "Subtract", "Multiply", "Abs", "Negative"})
_DEEPEST: Final = 3
_LONGEST: Final = 44


def condition_text(model: Model, graph: Graph, layer: Layer) -> str:
    """Return the condition that a layer gives as an expression; empty where it compares nothing, or is too long."""
    root = _numbers_of(graph, layer)
    if root is None or not (root.type in COMPARISON_SIGNS or root.type in _LOGICAL):
        return ""
    text = _term(model, graph, root, _DEEPEST).text
    return text if len(text) <= _LONGEST else ""


def _term(model: Model, graph: Graph, layer: Layer, depth: int) -> Term:
    """Return what a layer gives: what it compares, or its name; arithmetic that only a converter has named as it is."""
    if layer.type == "Constant":
        return number(constant_symbol(model, layer))
    is_expression = layer.type in COMPARISON_SIGNS or layer.type in _LOGICAL
    is_written = is_expression or (layer.type in _CONDITIONS_ARITHMETIC and is_automatic(layer))
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
