"""Recurrent cells written out as their formulas: LSTMCell, GRUCell, RNNCell."""

from __future__ import annotations

from typing import Final

from stepper.export.numpy_code.emit_context import EmitContext, Emitted, Emitter
from stepper.export.numpy_code.expressions import CodeExpression, call, infix

_SUM: Final = 11
_PRODUCT: Final = 12


def _is_plain(context: EmitContext, activations: tuple[str, ...], weights: int) -> bool:
    """True if the cell has the default activations, no clipping, and two separate matrices of weights."""
    chosen = tuple(part.strip() for part in context.attribute("activations", ",".join(activations)).split(","))
    alone = chosen in (activations, ("",)) and not float(context.attribute("clip", "0") or 0)
    return (
        alone
        and context.is_real
        and context.has(weights + 1)
        and context.rank(weights) == context.rank(weights + 1) == 2
    )


def _sigmoid(context: EmitContext, text: str) -> str:
    context.needs.add("sigmoid")
    return f"sigmoid({text})"


def _affine(x: CodeExpression, weights: CodeExpression, h: CodeExpression, recurrent: CodeExpression) -> CodeExpression:
    first = infix(x, "@", CodeExpression(f"{weights.atom}.T"))
    return infix(first, "+", infix(h, "@", CodeExpression(f"{recurrent.atom}.T")))


def _with_bias(context: EmitContext, index: int, total: CodeExpression) -> CodeExpression:
    return infix(total, "+", context.named(index)) if context.has(index) else total


def _lstm(context: EmitContext) -> Emitted:
    merged = len(context) == 5 and context.is_real and context.rank(3) == 2 and context.rank(4) == 1
    is_plain = _is_plain(context, ("sigmoid", "tanh", "tanh"), 3)
    clean = not context.flag("input_forget") and not context.has(6) and not float(context.attribute("clip", "0") or 0)
    if not clean or not (is_plain or (merged and not context.attribute("activations"))):
        return None
    x, h, c = (context.named(index) for index in range(3))
    if merged:
        joined = call("np.concatenate", f"[{x.text}, {h.text}]", axis="1")
        total = infix(infix(joined, "@", CodeExpression(f"{context.named(3).atom}.T")), "+", context.named(4))
    else:
        total = _with_bias(context, 5, _affine(x, context.named(3), h, context.named(4)))
    gates, f, i, g, o, cell = (
        context.temporary(name) for name in ("gates", "forget_gate", "input_gate", "candidate", "output_gate", "cell")
    )
    context.lines += [
        f"{gates} = {total.text}",
        f"{f}, {i}, {g}, {o} = np.split({gates}, 4, axis=1)",
        f"{cell} = {_sigmoid(context, f)} * {c.text} + {_sigmoid(context, i)} * np.tanh({g})",
    ]
    context.results = [CodeExpression(f"{_sigmoid(context, o)} * np.tanh({cell})", _PRODUCT), CodeExpression(cell)]
    return context.results[0]


def _gru(context: EmitContext) -> Emitted:
    """Emit a GRU; with linear_before_reset the reset gate comes after the recurrent product.

    That product then has a bias of its own, the last quarter of B.
    """
    resets_late = context.flag("linear_before_reset")
    if not _is_plain(context, ("sigmoid", "tanh"), 2) or (resets_late and not context.has(4)):
        return None
    x, h, weights, recurrent = (context.named(index) for index in range(4))
    z, r, g = (context.temporary(name) for name in ("update_gate", "reset_gate", "candidate"))
    x_parts = [context.temporary(f"x_{gate}") for gate in "zrh"]
    if resets_late:
        bias, last = context.temporary("B_zrh"), context.temporary("B_of_h")
        h_parts = [context.temporary(f"h_{gate}") for gate in "zrh"]
        context.lines += [
            f"{bias}, {last} = np.split({context.named(4).text}, [{weights.atom}.shape[0]])",
            f"{', '.join(x_parts)} = np.split({x.text} @ {weights.atom}.T + {bias}, 3, axis=1)",
            f"{', '.join(h_parts)} = np.split({h.text} @ {recurrent.atom}.T, 3, axis=1)",
        ]
        candidate = f"{r} * ({h_parts[2]} + {last})"
    else:
        total = _with_bias(context, 4, infix(x, "@", CodeExpression(f"{weights.atom}.T")))
        parts = [context.temporary(f"R_{gate}") for gate in "zrh"]
        context.lines += [
            f"{', '.join(x_parts)} = np.split({total.text}, 3, axis=1)",
            f"{', '.join(parts)} = np.split({recurrent.text}, 3)",
        ]
        h_parts = [f"{h.text} @ {part}.T" for part in parts]
        candidate = f"({r} * {h.text}) @ {parts[2]}.T"
    context.lines += [
        f"{z} = {_sigmoid(context, f'{x_parts[0]} + {h_parts[0]}')}",
        f"{r} = {_sigmoid(context, f'{x_parts[1]} + {h_parts[1]}')}",
        f"{g} = np.tanh({x_parts[2]} + {candidate})",
    ]
    return CodeExpression(f"(1 - {z}) * {g} + {z} * {h.text}", _SUM)


def _rnn(context: EmitContext) -> Emitted:
    if not _is_plain(context, ("tanh",), 2):
        return None
    x, h, weights, recurrent = (context.named(index) for index in range(4))
    return call("np.tanh", _with_bias(context, 4, _affine(x, weights, h, recurrent)))


EMITTERS: Final[dict[str, Emitter]] = {"LSTMCell": _lstm, "GRUCell": _gru, "RNNCell": _rnn}
"""By operation type. Where an emitter returns None, the operation is a call of its kernel."""
