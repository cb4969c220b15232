"""Models of TensorFlow and PaddlePaddle, written by the rules of protocol buffers; their loops double x five times."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

# --- protocol buffers -----------------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    value &= 2**64 - 1
    found = b""
    while value >= 128:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, content: str | bytes) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def real(field: int, value: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", value)


# --- TensorFlow -----------------------------------------------------------------------------------------------------

FLOAT, INT, BOOL = 1, 3, 10
_FLOATS, _INTS = number(6, FLOAT), number(6, INT)


def node(name: str, kind: str, inputs: Sequence[str] = (), **attributes: bytes) -> bytes:
    said = b"".join(text(5, text(1, key) + text(2, value)) for key, value in attributes.items())
    return text(1, name) + text(2, kind) + b"".join(text(3, one) for one in inputs) + said


def _constant(name: str, value: int) -> bytes:
    tensor = text(8, number(1, INT) + text(2, b"") + text(4, np.int32(value).tobytes()))
    return node(name, "Const", dtype=_INTS, value=tensor)


def _function(
    name: str, inputs: Mapping[str, int], outputs: Mapping[str, tuple[int, str]], nodes: Sequence[bytes]
) -> bytes:
    signature = text(1, name)
    signature += b"".join(text(2, text(1, one) + number(3, type)) for one, type in inputs.items())
    signature += b"".join(text(3, text(1, one) + number(3, type)) for one, (type, _) in outputs.items())
    given = b"".join(text(4, text(1, one) + text(2, source)) for one, (_, source) in outputs.items())
    return text(1, text(1, signature) + b"".join(text(3, one) for one in nodes) + given)


_X = node("x", "Placeholder", dtype=_FLOATS, shape=text(7, text(2, number(1, 2))))


def _graph(nodes: Sequence[bytes], library: bytes = b"") -> bytes:
    return b"".join(text(1, one) for one in nodes) + text(2, library) + text(4, number(1, 1087))


def while_of_functions() -> bytes:
    """The While of TensorFlow 2: condition and body are functions of the library."""
    given = {"i": INT, "state": FLOAT}
    less = node("less", "Less", ["i", "limit:output:0"], T=_INTS)
    condition = _function("cond", given, {"going_on": (BOOL, "less:z:0")}, [_constant("limit", 5), less])
    body = _function(
        "body",
        given,
        {"i_next": (INT, "plus_one:z:0"), "state_next": (FLOAT, "doubled:z:0")},
        [
            _constant("one", 1),
            node("plus_one", "AddV2", ["i", "one:output:0"], T=_INTS),
            node("doubled", "AddV2", ["state", "state"], T=_FLOATS),
        ],
    )
    types = text(1, text(6, varint(INT) + varint(FLOAT)))
    named = {key: text(10, text(1, key)) for key in ("cond", "body")}
    loop = node("doubling", "StatelessWhile", ["i0", "x"], T=types, **named)
    return _graph([_constant("i0", 0), _X, loop, node("negated", "Neg", ["doubling:1"], T=_FLOATS)], condition + body)


def while_of_frames() -> bytes:
    """The control flow of TensorFlow 1: values enter a frame, merge, switch and go round."""
    nodes = [_constant("i0", 0), _X, _constant("w/limit", 5), _constant("w/one", 1)]
    for suffix, start, type, sum in (("", "i0", _INTS, "w/plus_one"), ("_1", "x", _FLOATS, "w/doubled")):
        nodes += [
            node(f"w/Enter{suffix}", "Enter", [start], T=type, frame_name=text(2, "frame")),
            node(f"w/Merge{suffix}", "Merge", [f"w/Enter{suffix}", f"w/Next{suffix}"], T=type, N=number(3, 2)),
            node(f"w/Switch{suffix}", "Switch", [f"w/Merge{suffix}", "w/LoopCond"], T=type),
            node(f"w/Inside{suffix}", "Identity", [f"w/Switch{suffix}:1"], T=type),
            node(f"w/Next{suffix}", "NextIteration", [sum], T=type),
            node(f"w/Exit{suffix}", "Exit", [f"w/Switch{suffix}"], T=type),
        ]
    nodes += [
        node("w/less", "Less", ["w/Merge", "w/limit"], T=_INTS),
        node("w/LoopCond", "LoopCond", ["w/less"]),
        node("w/plus_one", "Add", ["w/Inside", "w/one"], T=_INTS),
        node("w/doubled", "Add", ["w/Inside_1", "w/Inside_1"], T=_FLOATS),
        node("negated", "Neg", ["w/Exit_1"], T=_FLOATS),
    ]
    return _graph(nodes)


# --- PaddlePaddle ---------------------------------------------------------------------------------------------------

_FP32, _INT64, _BOOL = 5, 3, 0
_TENSOR, _FEED, _FETCH, _SCOPES = 7, 9, 10, 11


def _variable(name: str, dims: Sequence[int] | None = None, type: int = _FP32, kind: int = _TENSOR) -> bytes:
    described = number(1, kind)
    if dims is not None:
        described += text(3, text(1, number(1, type) + b"".join(number(2, dim) for dim in dims)))
    return text(3, text(1, name) + text(2, described) + number(3, int(kind in (_FEED, _FETCH))))


def _operator(
    kind: str, inputs: Mapping[str, Sequence[str]], outputs: Mapping[str, Sequence[str]], **given: bytes
) -> bytes:
    said = b""
    for field, named in ((1, inputs), (2, outputs)):
        for name, arguments in named.items():
            said += text(field, text(1, name) + b"".join(text(2, one) for one in arguments))
    said += text(3, kind)
    return text(4, said + b"".join(text(4, text(1, name) + value) for name, value in given.items()))


def _int(value: int) -> bytes:
    return number(2, 0) + number(3, value)


def _scaled(source: str, target: str, scale: float, bias: float) -> bytes:
    numbers = {"scale": number(2, 1) + real(4, scale), "bias": number(2, 1) + real(4, bias)}
    return _operator(
        "scale", {"X": [source]}, {"Out": [target]}, **numbers, bias_after_scale=number(2, 6) + number(10, 1)
    )


def _filled(target: str, value: int) -> bytes:
    given = {"shape": number(2, 11) + number(15, 1), "dtype": _int(_INT64), "value": number(2, 1) + real(4, value)}
    return _operator("fill_constant", {}, {"Out": [target]}, **given, str_value=number(2, 2) + text(5, str(value)))


def _between(first: str, last: str, parts: Sequence[bytes]) -> list[bytes]:
    feed = _operator("feed", {"X": ["feed"]}, {"Out": [first]}, col=_int(0))
    fetch = _operator("fetch", {"X": [last]}, {"Out": ["fetch"]}, col=_int(0))
    return [_variable("feed", kind=_FEED), _variable("fetch", kind=_FETCH), feed, *parts, fetch]


def _program(blocks: Sequence[Sequence[bytes]], version: int) -> bytes:
    said = b"".join(
        text(1, number(1, index) + number(2, index - 1) + b"".join(parts)) for index, parts in enumerate(blocks)
    )
    return said + text(4, number(1, version))


def paddle(version: int) -> bytes:
    """2 relu(x) + 1 for f32[2,3], as a program of that version (0: of before there were any)."""
    named = [_variable(name, [2, 3]) for name in ("x", "activated", "scaled")]
    relu = _operator("relu", {"X": ["x"]}, {"Out": ["activated"]})
    return _program([_between("x", "scaled", [*named, relu, _scaled("activated", "scaled", 2, 1)])], version)


def paddle_while() -> bytes:
    """The loop as a `while` over a block of its own."""
    less = _operator("less_than", {"X": ["i"], "Y": ["n"]}, {"Out": ["cond"]}, axis=_int(-1))
    loop = _operator(
        "while",
        {"X": ["i", "n", "one", "x"], "Condition": ["cond"]},
        {"Out": ["i", "x", "cond"], "StepScopes": ["scopes"]},
        sub_block=number(2, 8) + number(12, 1),
    )
    named = [_variable(name, [2]) for name in ("x", "negated")] + [_variable(n, [1], _INT64) for n in ("i", "n", "one")]
    named += [_variable("cond", [1], _BOOL), _variable("scopes", kind=_SCOPES)]
    filled = [_filled("i", 0), _filled("n", 5), _filled("one", 1)]
    main = _between("x", "negated", [*named, *filled, less, loop, _scaled("x", "negated", -1, 0)])
    inside = [_variable("doubled", [2]), _variable("i_next", [1], _INT64)]
    for (a, b), target, kept in ((("x", "x"), "doubled", "x"), (("i", "one"), "i_next", "i")):
        inside.append(_operator("elementwise_add", {"X": [a], "Y": [b]}, {"Out": [target]}, axis=_int(-1)))
        inside.append(_operator("assign", {"X": [target]}, {"Out": [kept]}))
    return _program([main, [*inside, less]], 0)
