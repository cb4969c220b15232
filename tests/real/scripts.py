"""Networks as scripts: the structure as text in ONNX's own notation, the weights random and the same each time."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

Shape = tuple[int, ...]

_HEAD: Final = '<ir_version: 8, opset_import: ["": 17]>\n'


def _model(name: str, text: str, weights: Mapping[str, Shape], constants: Mapping[str, Any] | None = None) -> Any:
    """The model of a text, with random weights of these shapes, and constants."""
    import onnx
    from onnx import numpy_helper

    model = onnx.parser.parse_model(_HEAD + text)
    random = np.random.default_rng(zlib.crc32(name.encode()))
    arrays = {key: random.standard_normal(shape) / np.sqrt(max(shape)) for key, shape in weights.items()}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array, np.float32), key) for key, array in arrays.items()
    )
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), key) for key, value in (constants or {}).items()
    )
    onnx.checker.check_model(model)
    return model


def _recurrent(name: str, type: str, gates: int, layers: int, inputs: int, hidden: int, steps: int) -> Any:
    """So many bidirectional layers upon each other."""
    lines, weights, given, width = [], {}, "x", inputs
    for layer in range(layers):
        weights |= {
            f"W{layer}": (2, gates * hidden, width),
            f"R{layer}": (2, gates * hidden, hidden),
            f"B{layer}": (2, 2 * gates * hidden),
        }
        lines.append(
            f'y{layer} = {type} <direction = "bidirectional", hidden_size = {hidden}> '
            f"({given}, W{layer}, R{layer}, B{layer})"
        )
        out = "y" if layer == layers - 1 else f"x{layer + 1}"
        lines.append(f"t{layer} = Transpose <perm = [0, 2, 1, 3]> (y{layer})")
        lines.append(f"{out} = Reshape (t{layer}, joined)")
        given, width = out, 2 * hidden
    text = f"{name} (float[{steps},1,{inputs}] x) => (float[{steps},1,{2 * hidden}] y) {{ {'; '.join(lines)} }}"
    return _model(name, text.replace("; ", "\n"), weights, {"joined": np.array([0, 0, -1])})


def bilstm() -> Any:
    """Three bidirectional LSTM layers."""
    return _recurrent("bilstm", "LSTM", 4, 3, 80, 128, 60)


def bigru() -> Any:
    """Three bidirectional GRU layers."""
    return _recurrent("bigru", "GRU", 3, 3, 80, 128, 60)


def voice_encoder() -> Any:
    """The encoder of voices of the package resemblyzer: three LSTM layers, a projection, its direction."""
    sizes = {
        f"{name}{layer}": shape
        for layer in range(3)
        for name, shape in (("W", (1, 1024, 256 if layer else 40)), ("R", (1, 1024, 256)), ("B", (1, 2048)))
    }
    text = """voice_encoder (float[160,1,40] mels) => (float[1,256] embedding) {
        y0 = LSTM <hidden_size = 256> (mels, W0, R0, B0)
        x1 = Squeeze (y0, one)
        y1 = LSTM <hidden_size = 256> (x1, W1, R1, B1)
        x2 = Squeeze (y1, one)
        y2, last = LSTM <hidden_size = 256> (x2, W2, R2, B2)
        state = Squeeze (last, zero)
        raw = Gemm <transB = 1> (state, L, l)
        positive = Relu (raw)
        length = ReduceL2 <axes = [1]> (positive)
        embedding = Div (positive, length)
    }"""
    return _model(
        "voice_encoder", text, sizes | {"L": (256, 256), "l": (256,)}, {"one": np.array([1]), "zero": np.array([0])}
    )


def tacotron_decoder() -> Any:
    """The decoder of Tacotron 2, smaller: prenet, attention that knows where it was, two LSTM cells, and a stop."""
    text = """tacotron (float[1,24,64] memory) => (float[1,16] frame, float[n,1,16] frames) {
        keys = MatMul (memory, Wm)
        frame, q, qc, d, dc, context, before, frames = Loop <body = decoder
            (int64 i, bool going, float[1,16] frame_in, float[1,1,64] q_in, float[1,1,64] qc_in, float[1,1,64] d_in,
             float[1,1,64] dc_in, float[1,64] context_in, float[1,1,24] before_in) =>
            (bool on, float[1,16] frame_out, float[1,1,64] q_out, float[1,1,64] qc_out, float[1,1,64] d_out,
             float[1,1,64] dc_out, float[1,64] context_out, float[1,1,24] before_out, float[1,16] piece) {
                p1 = MatMul (frame_in, P1)
                p2 = Relu (p1)
                p3 = MatMul (p2, P2)
                prenet = Relu (p3)
                joined = Concat <axis = 1> (prenet, context_in)
                row = Unsqueeze (joined, zero)
                q_all, q_out, qc_out = LSTM <hidden_size = 64> (row, QW, QR, QB, , q_in, qc_in)
                query = MatMul (q_out, Wq)
                where = Conv <pads = [7, 7], kernel_shape = [15]> (before_in, K)
                place = Transpose <perm = [0, 2, 1]> (where)
                located = MatMul (place, Wl)
                s1 = Add (query, keys)
                s2 = Add (s1, located)
                s3 = Tanh (s2)
                s4 = MatMul (s3, v)
                s5 = Transpose <perm = [0, 2, 1]> (s4)
                weights = Softmax <axis = 2> (s5)
                before_out = Add (before_in, weights)
                attended = MatMul (weights, memory)
                context_out = Squeeze (attended, one)
                q_row = Squeeze (q_out, zero)
                both = Concat <axis = 1> (q_row, context_out)
                both_row = Unsqueeze (both, zero)
                d_all, d_out, dc_out = LSTM <hidden_size = 64> (both_row, DW, DR, DB, , d_in, dc_in)
                d_row = Squeeze (d_out, zero)
                end = Concat <axis = 1> (d_row, context_out)
                frame_out = Gemm <transB = 1> (end, F, f)
                piece = Identity (frame_out)
                gate = MatMul (end, G)
                chance = Sigmoid (gate)
                number = Squeeze (chance)
                on = Less (number, stop)
            }> (most, yes, frame0, state0, state0, state0, state0, context0, before0)
    }"""
    weights = {
        "Wm": (64, 32),
        "Wq": (64, 32),
        "Wl": (8, 32),
        "v": (32, 1),
        "K": (8, 1, 15),
        "P1": (16, 32),
        "P2": (32, 32),
        "QW": (1, 256, 96),
        "QR": (1, 256, 64),
        "QB": (1, 512),
        "DW": (1, 256, 128),
        "DR": (1, 256, 64),
        "DB": (1, 512),
        "F": (16, 128),
        "f": (16,),
        "G": (128, 1),
    }
    zeros = {"frame0": (1, 16), "state0": (1, 1, 64), "context0": (1, 64), "before0": (1, 1, 24)}
    constants = {name: np.zeros(shape, np.float32) for name, shape in zeros.items()}
    constants |= {"zero": np.array([0]), "one": np.array([1]), "most": np.array(60), "yes": np.array(True)}
    return _model("tacotron", text, weights, constants | {"stop": np.array(0.9, np.float32)})


def gpt() -> Any:
    """A transformer of one layer that writes tokens: keys and values of those before are kept, and grow."""
    text = """gpt (int64[1] token, float[4,p,16] past_keys, float[4,p,16] past_values) =>
        (int64[1] last, int64[n,1] written) {
        last, keys, values, written = Loop <body = token_by_token
            (int64 i, bool going, int64[1] token_in, float[4,m,16] keys_in, float[4,m,16] values_in) =>
            (bool on, int64[1] token_out, float[4,k,16] keys_out, float[4,k,16] values_out, int64[1] piece) {
                on = Identity (going)
                word = Gather (E, token_in)
                place = Gather (P, i)
                x = Add (word, place)
                normed = LayerNormalization (x, scale, shift)
                qkv = MatMul (normed, A)
                heads = Reshape (qkv, split)
                q, k, v = Split <axis = 0> (heads)
                keys_out = Concat <axis = 1> (keys_in, k)
                values_out = Concat <axis = 1> (values_in, v)
                turned = Transpose <perm = [0, 2, 1]> (keys_out)
                scores = MatMul (q, turned)
                scaled = Mul (scores, quarter)
                shares = Softmax <axis = 2> (scaled)
                seen = MatMul (shares, values_out)
                flat = Reshape (seen, joined)
                attended = MatMul (flat, O)
                r = Add (x, attended)
                again = LayerNormalization (r, scale, shift)
                wide = MatMul (again, U)
                cut = Relu (wide)
                narrow = MatMul (cut, D)
                y = Add (r, narrow)
                logits = MatMul (y, H)
                token_out = ArgMax <axis = 1, keepdims = 0> (logits)
                piece = Identity (token_out)
            }> (most, yes, token, past_keys, past_values)
    }"""
    weights = {
        "E": (200, 64),
        "P": (64, 64),
        "A": (64, 192),
        "O": (64, 64),
        "U": (64, 256),
        "D": (256, 64),
        "H": (64, 200),
        "scale": (64,),
        "shift": (64,),
    }
    constants = {"split": np.array([12, 1, 16]), "joined": np.array([1, 64]), "quarter": np.array(0.25, np.float32)}
    constants |= {"most": np.array(40), "yes": np.array(True)}
    return _model("gpt", text, weights, constants)


def rwkv() -> Any:
    """The time mixing of RWKV-4: a weighted mean of all before, kept as two sums and their largest exponent."""
    text = """rwkv (float[1,80,96] x) => (float[80,1,96] y) {
        turned = Transpose <perm = [1, 0, 2]> (x)
        keys = MatMul (turned, Wk)
        values = MatMul (turned, Wv)
        raw = MatMul (turned, Wr)
        r = Sigmoid (raw)
        above, below, top, mixed = Scan <num_scan_inputs = 2, body = mix
            (float[1,96] a, float[1,96] b, float[1,96] p, float[1,96] k, float[1,96] v) =>
            (float[1,96] a_out, float[1,96] b_out, float[1,96] p_out, float[1,96] w) {
                now = Add (k, bonus)
                m = Max (p, now)
                p_less = Sub (p, m)
                now_less = Sub (now, m)
                e1 = Exp (p_less)
                e2 = Exp (now_less)
                a1 = Mul (e1, a)
                v1 = Mul (e2, v)
                up = Add (a1, v1)
                b1 = Mul (e1, b)
                down = Add (b1, e2)
                w = Div (up, down)
                late = Add (p, decay)
                p_out = Max (late, k)
                late_less = Sub (late, p_out)
                k_less = Sub (k, p_out)
                e3 = Exp (late_less)
                e4 = Exp (k_less)
                a2 = Mul (e3, a)
                v2 = Mul (e4, v)
                a_out = Add (a2, v2)
                b2 = Mul (e3, b)
                b_out = Add (b2, e4)
            }> (none, none, lowest, keys, values)
        gated = Mul (r, mixed)
        y = MatMul (gated, Wo)
    }"""
    weights = dict.fromkeys(("Wk", "Wv", "Wr", "Wo"), (96, 96)) | {"bonus": (96,)}
    constants = {"none": np.zeros((1, 96), np.float32), "lowest": np.full((1, 96), -1e30, np.float32)}
    return _model("rwkv", text, weights, constants | {"decay": np.full(96, -0.3, np.float32)})


def mamba() -> Any:
    """A selective state space: how fast the state forgets depends on the input."""
    text = """mamba (float[60,64] x) => (float[60,64] y, float[64,16] state) {
        raw = MatMul (x, Wd)
        steps = Softplus (raw)
        B = MatMul (x, Wb)
        C = MatMul (x, Wc)
        state, y = Scan <num_scan_inputs = 4, body = select
            (float[64,16] h, float[64] u, float[64] dt, float[16] b, float[16] c) =>
            (float[64,16] h_out, float[64] piece) {
                column = Unsqueeze (dt, one)
                rate = Mul (column, A)
                kept = Exp (rate)
                old = Mul (kept, h)
                amount = Mul (dt, u)
                amounts = Unsqueeze (amount, one)
                new = Mul (amounts, b)
                h_out = Add (old, new)
                read = MatMul (h_out, c)
                skipped = Mul (D, u)
                piece = Add (read, skipped)
            }> (h0, x, steps, B, C)
    }"""
    weights = {"Wd": (64, 64), "Wb": (64, 16), "Wc": (64, 16), "D": (64,)}
    rates = -np.tile(np.arange(1, 17, dtype=np.float32), (64, 1))
    return _model("mamba", text, weights, {"A": rates, "h0": np.zeros((64, 16), np.float32), "one": np.array([1])})


def s4d() -> Any:
    """A diagonal state space with complex rates, as two real states."""
    text = """s4d (float[200,32] x) => (float[200,32] y) {
        re, im, y = Scan <num_scan_inputs = 1, body = rotate
            (float[32,8] re_in, float[32,8] im_in, float[32] u) =>
            (float[32,8] re_out, float[32,8] im_out, float[32] piece) {
                column = Unsqueeze (u, one)
                a = Mul (Ar, re_in)
                b = Mul (Ai, im_in)
                ab = Sub (a, b)
                given = Mul (column, Br)
                re_out = Add (ab, given)
                c = Mul (Ar, im_in)
                d = Mul (Ai, re_in)
                im_out = Add (c, d)
                seen_re = Mul (re_out, Cr)
                seen_im = Mul (im_out, Ci)
                both = Sub (seen_re, seen_im)
                piece = ReduceSum <keepdims = 0> (both, one)
            }> (none, none, x)
    }"""
    angles = np.linspace(0.1, 1.5, 8, dtype=np.float32) * np.ones((32, 1), np.float32)
    rates = {"Ar": np.float32(0.95) * np.cos(angles), "Ai": np.float32(0.95) * np.sin(angles)}
    weights = {"Br": (32, 8), "Cr": (32, 8), "Ci": (32, 8)}
    return _model("s4d", text, weights, rates | {"none": np.zeros((32, 8), np.float32), "one": np.array([1])})


def viterbi() -> Any:
    """The best path through states: forwards the best predecessor of each, backwards along them."""
    text = """viterbi (float[50,12] emissions) => (float[12] best, int64[50,1] path) {
        best, pointers = Scan <num_scan_inputs = 1, body = forward
            (float[12] score, float[12] emitted) => (float[12] score_out, int64[12] pointer) {
                column = Unsqueeze (score, one)
                ways = Add (column, T)
                most = ReduceMax <axes = [0], keepdims = 0> (ways)
                pointer = ArgMax <axis = 0, keepdims = 0> (ways)
                score_out = Add (most, emitted)
            }> (start, emissions)
        end = ArgMax <axis = 0, keepdims = 1> (best)
        first, path = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
            body = backward (int64[1] at, int64[12] pointers_of) => (int64[1] before, int64[1] piece) {
                piece = Identity (at)
                before = Gather (pointers_of, at)
            }> (end, pointers)
    }"""
    return _model("viterbi", text, {"T": (12, 12)}, {"start": np.zeros(12, np.float32), "one": np.array([1])})


def early_exit() -> Any:
    """One layer again and again, until it is sure of its answer."""
    text = """early_exit (float[1,64] x) => (float[1,64] h, float[n,1] sure) {
        h, sure = Loop <body = layer (int64 i, bool going, float[1,64] h_in) =>
            (bool on, float[1,64] h_out, float[1] piece) {
                wide = MatMul (h_in, U)
                bent = Tanh (wide)
                narrow = MatMul (bent, D)
                h_out = Add (h_in, narrow)
                logits = MatMul (h_out, H)
                chances = Softmax <axis = 1> (logits)
                piece = ReduceMax <axes = [1], keepdims = 0> (chances)
                number = Squeeze (piece)
                on = Less (number, enough)
            }> (most, yes, x)
    }"""
    weights = {"U": (64, 128), "D": (128, 64), "H": (64, 10)}
    constants = {"most": np.array(30), "yes": np.array(True), "enough": np.array(0.9, np.float32)}
    return _model("early_exit", text, weights, constants)


def runge_kutta() -> Any:
    """An equation solved with steps that grow and shrink: a step that is too coarse is taken again, half as long."""
    text = """runge_kutta (float[3] y0) => (float[3] y, float t, float[n] steps) {
        t, y, h, steps = Loop <body = step (int64 i, bool going, float t_in, float[3] y_in, float h_in) =>
            (bool on, float t_out, float[3] y_out, float h_out, float piece) {
                piece = Identity (h_in)
                k1 = MatMul (A, y_in)
                d1 = Mul (k1, h_in)
                euler = Add (y_in, d1)
                k2 = MatMul (A, euler)
                sum = Add (k1, k2)
                slope = Mul (sum, half)
                d2 = Mul (slope, h_in)
                heun = Add (y_in, d2)
                gap = Sub (heun, euler)
                size = ReduceL2 <keepdims = 0> (gap)
                fine = Less (size, tolerance)
                t_out, y_out, h_out = If (fine) <
                    then_branch = accept () => (float t1, float[3] y1, float h1) {
                        t1 = Add (t_in, h_in)
                        y1 = Identity (heun)
                        h1 = Mul (h_in, more)
                    },
                    else_branch = refuse () => (float t2, float[3] y2, float h2) {
                        t2 = Identity (t_in)
                        y2 = Identity (y_in)
                        h2 = Mul (h_in, half)
                    }>
                on = Less (t_out, until)
            }> (most, yes, zero, y0, first)
    }"""
    numbers = {"half": 0.5, "more": 1.3, "tolerance": 0.02, "until": 4.0, "zero": 0.0, "first": 1.0}
    constants: dict[str, Any] = {name: np.array(value, np.float32) for name, value in numbers.items()}
    turning = np.array([[-0.1, -2.0, 0.0], [2.0, -0.1, 0.0], [0.3, 0.0, -0.5]], np.float32)
    return _model("runge_kutta", text, {}, constants | {"A": turning, "most": np.array(200), "yes": np.array(True)})


SCRIPTS: Final[Mapping[str, Callable[[], Any]]] = {
    one.__name__: one
    for one in (
        *(bilstm, bigru, voice_encoder, tacotron_decoder, gpt, rwkv, mamba, s4d, viterbi, early_exit, runge_kutta),
    )
}
"""By name, what makes each model."""
