"""Recurrent cells written out as their formulas: LSTMCell, GRUCell, RNNCell."""

from __future__ import annotations

from typing import Final

from stepper.export.numpy_code.expressions import Expression, call, infix
from stepper.export.numpy_code.sites import Made, Maker, Site

_SUM: Final = 11
_PRODUCT: Final = 12


def _is_plain(site: Site, activations: tuple[str, ...], weights: int) -> bool:
    """True if the cell has the default activations, no clipping, and two separate matrices of weights."""
    chosen = tuple(part.strip() for part in site.attribute("activations", ",".join(activations)).split(","))
    alone = chosen in (activations, ("",)) and not float(site.attribute("clip", "0") or 0)
    return alone and site.is_real and site.has(weights + 1) and site.rank(weights) == site.rank(weights + 1) == 2


def _sigmoid(site: Site, text: str) -> str:
    site.needs.add("sigmoid")
    return f"sigmoid({text})"


def _affine(x: Expression, weights: Expression, h: Expression, recurrent: Expression) -> Expression:
    first = infix(x, "@", Expression(f"{weights.atom}.T"))
    return infix(first, "+", infix(h, "@", Expression(f"{recurrent.atom}.T")))


def _with_bias(site: Site, index: int, total: Expression) -> Expression:
    return infix(total, "+", site.named(index)) if site.has(index) else total


def _lstm(site: Site) -> Made:
    merged = len(site) == 5 and site.is_real and site.rank(3) == 2 and site.rank(4) == 1
    is_plain = _is_plain(site, ("sigmoid", "tanh", "tanh"), 3)
    clean = not site.flag("input_forget") and not site.has(6) and not float(site.attribute("clip", "0") or 0)
    if not clean or not (is_plain or (merged and not site.attribute("activations"))):
        return None
    x, h, c = (site.named(index) for index in range(3))
    if merged:
        joined = call("np.concatenate", f"[{x.text}, {h.text}]", axis="1")
        total = infix(infix(joined, "@", Expression(f"{site.named(3).atom}.T")), "+", site.named(4))
    else:
        total = _with_bias(site, 5, _affine(x, site.named(3), h, site.named(4)))
    gates, f, i, g, o, cell = (
        site.temporary(name) for name in ("gates", "forget_gate", "input_gate", "candidate", "output_gate", "cell")
    )
    site.lines += [
        f"{gates} = {total.text}",
        f"{f}, {i}, {g}, {o} = np.split({gates}, 4, axis=1)",
        f"{cell} = {_sigmoid(site, f)} * {c.text} + {_sigmoid(site, i)} * np.tanh({g})",
    ]
    site.results = [Expression(f"{_sigmoid(site, o)} * np.tanh({cell})", _PRODUCT), Expression(cell)]
    return site.results[0]


def _gru(site: Site) -> Made:
    if not _is_plain(site, ("sigmoid", "tanh"), 2):
        return None
    x, h, weights, recurrent = (site.named(index) for index in range(4))
    if site.flag("linear_before_reset"):
        return _gru_reset_late(site, x, h, weights, recurrent)
    total = _with_bias(site, 4, infix(x, "@", Expression(f"{weights.atom}.T")))
    z, r, g = (site.temporary(name) for name in ("update_gate", "reset_gate", "candidate"))
    x_parts = [site.temporary(f"x_{gate}") for gate in "zrh"]
    h_parts = [site.temporary(f"R_{gate}") for gate in "zrh"]
    site.lines += [
        f"{', '.join(x_parts)} = np.split({total.text}, 3, axis=1)",
        f"{', '.join(h_parts)} = np.split({recurrent.text}, 3)",
        f"{z} = {_sigmoid(site, f'{x_parts[0]} + {h.text} @ {h_parts[0]}.T')}",
        f"{r} = {_sigmoid(site, f'{x_parts[1]} + {h.text} @ {h_parts[1]}.T')}",
        f"{g} = np.tanh({x_parts[2]} + ({r} * {h.text}) @ {h_parts[2]}.T)",
    ]
    return Expression(f"(1 - {z}) * {g} + {z} * {h.text}", _SUM)


def _gru_reset_late(site: Site, x: Expression, h: Expression, weights: Expression, recurrent: Expression) -> Made:
    """Return the reset gate comes after the recurrent product, which has a bias of its own: the last quarter of B."""
    if not site.has(4):
        return None
    z, r, g = (site.temporary(name) for name in ("update_gate", "reset_gate", "candidate"))
    bias, last = site.temporary("B_zrh"), site.temporary("B_of_h")
    x_parts = [site.temporary(f"x_{gate}") for gate in "zrh"]
    h_parts = [site.temporary(f"h_{gate}") for gate in "zrh"]
    site.lines += [
        f"{bias}, {last} = np.split({site.named(4).text}, [{weights.atom}.shape[0]])",
        f"{', '.join(x_parts)} = np.split({x.text} @ {weights.atom}.T + {bias}, 3, axis=1)",
        f"{', '.join(h_parts)} = np.split({h.text} @ {recurrent.atom}.T, 3, axis=1)",
        f"{z} = {_sigmoid(site, f'{x_parts[0]} + {h_parts[0]}')}",
        f"{r} = {_sigmoid(site, f'{x_parts[1]} + {h_parts[1]}')}",
        f"{g} = np.tanh({x_parts[2]} + {r} * ({h_parts[2]} + {last}))",
    ]
    return Expression(f"(1 - {z}) * {g} + {z} * {h.text}", _SUM)


def _rnn(site: Site) -> Made:
    if not _is_plain(site, ("tanh",), 2):
        return None
    x, h, weights, recurrent = (site.named(index) for index in range(4))
    return call("np.tanh", _with_bias(site, 4, _affine(x, weights, h, recurrent)))


MAKERS: Final[dict[str, Maker]] = {"LSTMCell": _lstm, "GRUCell": _gru, "RNNCell": _rnn}
"""By operation type. Where a maker gives None, the operation is a call of its kernel."""
