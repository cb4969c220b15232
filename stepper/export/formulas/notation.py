"""Operations in the notation of the field: `a + b`, `tanh(a)`, `a bᵀ`; without a usual sign the type as a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from stepper.element_types import ElementType, is_floating
from stepper.ir.model import Layer
from stepper.operation_types import COMPARISON_SIGNS, VIEWS
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
